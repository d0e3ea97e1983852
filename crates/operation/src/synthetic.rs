//! Values of operations without code: of the declared size, with fields that are drawn from the seed.

use std::any::Any;
use talea_channel::{Output, OutputPort};
use talea_model::FieldValues;
use talea_policy::demand;

/// A value that an operation without code publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyntheticValue {
    /// Its fields, in the order of the description.
    pub fields: Box<[i64]>,
    /// The rest of the bytes that are declared, so that making and reading the value has its price.
    pub bytes: Box<[u8]>,
}

impl SyntheticValue {
    /// Fields and then the rest, as bytes.
    pub(crate) fn encode(&self, to: &mut [u8]) -> Option<usize> {
        encode_fields((&self.fields, &self.bytes), to)
    }

    /// The same back, into a value of the same shape.
    pub(crate) fn decode(&mut self, from: &[u8]) -> bool {
        decode_fields((&mut self.fields, &mut self.bytes), from)
    }
}

/// Writes drawn fields and then the rest, and returns how many bytes that is; `None` if they do not fit.
pub fn encode_fields((fields, rest): (&[i64], &[u8]), to: &mut [u8]) -> Option<usize> {
    let numbers = size_of_val(fields);
    let all = to.get_mut(..numbers + rest.len())?;
    let (to_numbers, to_rest) = all.split_at_mut(numbers);
    for (field, bytes) in fields.iter().zip(to_numbers.chunks_exact_mut(size_of::<i64>())) {
        bytes.copy_from_slice(&field.to_le_bytes());
    }
    to_rest.copy_from_slice(rest);
    Some(all.len())
}

/// Reads the same back. False if these bytes are more or fewer.
pub fn decode_fields((fields, rest): (&mut [i64], &mut [u8]), from: &[u8]) -> bool {
    let numbers = size_of_val(fields);
    if from.len() != numbers + rest.len() {
        return false;
    }
    let (from_numbers, from_rest) = from.split_at(numbers);
    for (field, bytes) in fields.iter_mut().zip(from_numbers.chunks_exact(size_of::<i64>())) {
        *field = i64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    rest.copy_from_slice(from_rest);
    true
}

/// What the values of a synthetic output are made of.
pub(crate) struct Fields {
    pub draws: Box<[(FieldValues, u64)]>,
    /// Bytes behind the fields.
    pub rest: usize,
}

impl Fields {
    pub fn empty_value(&self) -> SyntheticValue {
        SyntheticValue { fields: vec![0; self.draws.len()].into(), bytes: vec![0; self.rest].into() }
    }

    /// Writes the value of this instance.
    ///
    /// # Panics
    /// If the output has values of another type.
    pub fn write(&self, output: &mut dyn Output, instance: u64) {
        let port: Option<&mut OutputPort<SyntheticValue>> = (output as &mut dyn Any).downcast_mut();
        let value = port.expect("an operation without code has synthetic values").value();
        for (field, (values, stream)) in value.fields.iter_mut().zip(&self.draws) {
            *field = demand::field_from(values, *stream, instance);
        }
        value.bytes.fill(instance as u8);
    }
}
