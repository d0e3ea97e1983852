//! The kernel's description of its own types (BTF), as far as it is asked: the offsets of a structure's fields, and the numbers of the
//! types by which tracepoints are attached.
//!
//! A header, then the types one after another, each of 12 bytes and more that depend on its kind, then the names. A type's number is
//! its place in that order, from 1 on.

use super::BpfError;
use std::collections::HashMap;

/// Where the kernel has it.
const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const TYPEDEF: u32 = 8;

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// Numbers of types by name.
    typedefs: HashMap<String, u32>,
    /// Offsets in bytes of the fields of the structure.
    fields: HashMap<String, i16>,
}

impl Types {
    /// Reads the running kernel's.
    ///
    /// # Errors
    /// It has none, or some of what is asked for is not in it.
    pub fn of_kernel(typedefs: &[&str], structure: &str, fields: &[&str]) -> Result<Self, BpfError> {
        let bytes = std::fs::read(FILE).map_err(|error| BpfError::NoTypes(format!("its types ({error})")))?;
        let types = Types::read(&bytes, typedefs, structure, fields)
            .ok_or_else(|| BpfError::NoTypes("its types in a known way".into()))?;
        let missing = typedefs.iter().find(|name| !types.typedefs.contains_key(**name));
        let missing = missing.or_else(|| fields.iter().find(|name| !types.fields.contains_key(**name)));
        match missing {
            Some(name) => Err(BpfError::NoTypes((*name).to_owned())),
            None => Ok(types),
        }
    }

    /// The number of a type that was asked for.
    pub fn typedef(&self, name: &str) -> u32 {
        self.typedefs[name]
    }

    /// The offset of a field that was asked for.
    pub fn field(&self, name: &str) -> i16 {
        self.fields[name]
    }

    fn read(bytes: &[u8], typedefs: &[&str], structure: &str, fields: &[&str]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if u16_at(0)? != MAGIC {
            return None;
        }
        let header = u32_at(4)? as usize;
        let (first, length) = (header + u32_at(8)? as usize, u32_at(12)? as usize);
        let names = bytes.get(header + u32_at(16)? as usize..)?;
        let is_named = |at: u32, name: &str| {
            let found = names.get(at as usize..at as usize + name.len() + 1);
            found.is_some_and(|found| found.split_last() == Some((&0, name.as_bytes())))
        };
        let mut types = Types::default();
        let (mut at, mut number) = (first, 1);
        while at < first + length {
            let (name, info) = (u32_at(at)?, u32_at(at + 4)?);
            let (kind, count) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
            let of_kind = at + 12;
            if kind == TYPEDEF
                && let Some(found) = typedefs.iter().find(|asked| is_named(name, asked))
            {
                types.typedefs.insert((*found).to_owned(), number);
            }
            if kind == STRUCT && is_named(name, structure) {
                for member in 0..count {
                    let (name, offset) = (u32_at(of_kind + 12 * member)?, u32_at(of_kind + 12 * member + 8)?);
                    // With bit fields the upper byte holds the number of bits.
                    let bits = if info >> 31 == 1 { offset & 0x00ff_ffff } else { offset };
                    if let Some(found) = fields.iter().find(|asked| is_named(name, asked)) {
                        types.fields.insert((*found).to_owned(), i16::try_from(bits / 8).ok()?);
                    }
                }
            }
            at = of_kind + of_length(kind, count)?;
            number += 1;
        }
        Some(types)
    }
}

/// How many bytes follow the first 12 of a type.
fn of_length(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Numbers, variables and declaration tags.
        1 | 14 | 17 => 4,
        // Pointers, forward declarations, other names, qualifiers, functions, floats and type tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Arrays.
        3 => 12,
        // Structures, unions, sections and enumerations of 64 bits.
        4 | 5 | 15 | 19 => 12 * count,
        // Enumerations and the parameters of functions.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Vec<u8> {
        let names = b"\0task_struct\0pid\0btf_trace_x\0flags\0";
        let types: Vec<u32> = [
            // 1: int, with a word of its own.
            [0, 1 << 24, 4, 32].to_vec(),
            // 2: task_struct of flags (a bit field at bit 3) and pid (at byte 1448).
            [1, (1 << 31) | (4 << 24) | 2, 2000, 29, 1, (5 << 24) | 3, 13, 1, 1448 * 8].to_vec(),
            // 3: the type of a tracepoint.
            [17, 8 << 24, 2].to_vec(),
        ]
        .concat();
        let mut bytes = [MAGIC.to_ne_bytes(), [1, 0]].concat();
        let length = types.len() as u32 * 4;
        for word in [24, 0, length, length, names.len() as u32] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        types.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(names);
        bytes
    }

    #[test]
    fn fields_and_types_are_found_by_name() {
        let types = Types::read(&description(), &["btf_trace_x"], "task_struct", &["pid", "flags"]).unwrap();
        assert_eq!((types.typedef("btf_trace_x"), types.field("pid"), types.field("flags")), (3, 1448, 0));
        let other = Types::read(&description(), &["btf_trace_"], "task", &["pid"]).unwrap();
        assert_eq!(other, Types::default(), "beginnings of names are other names");
    }

    #[test]
    fn a_description_that_is_cut_is_none() {
        let whole = description();
        for length in 0..whole.len() - 40 {
            assert_eq!(Types::read(&whole[..length], &["btf_trace_x"], "task_struct", &["pid"]), None);
        }
    }
}
