//! The ports of an operation, as the code that is registered for it opens them.

use crate::ends::EventEnds;
use crate::error::{OperationError, nearest};
use crate::kind::{OutputKind, Value};
use crate::reading::Reading;
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use talea_channel as channel;
use talea_channel::{OutputPort, Reader};
use talea_model::OperationId;

macro_rules! token {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        pub struct $name<T> {
            pub(crate) operation: OperationId,
            /// Among those of the operation.
            pub(crate) place: usize,
            of: PhantomData<fn() -> T>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "<{}>({}, {})"), std::any::type_name::<T>(), self.operation.index(), self.place)
            }
        }
    };
}

token! {
    /// The token of an input, by which jobs read what they took of it.
    Input
}

token! {
    /// The token of an output, by which jobs write what they publish.
    Output
}

/// The token of the descriptor that releases an operation's task, by which jobs read of it.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    pub(crate) operation: OperationId,
}

/// A type, by identity and for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueType {
    pub id: TypeId,
    pub name: &'static str,
}

impl ValueType {
    pub fn of<T: 'static>() -> Self {
        ValueType { id: TypeId::of::<T>(), name: std::any::type_name::<T>() }
    }
}

/// All ends of an output's connections.
pub(crate) struct AllEnds {
    pub output: Box<dyn channel::Output>,
    /// In the order of the readers.
    pub inputs: Vec<Box<dyn channel::Input>>,
    /// If its values are to be recorded, and can be bytes.
    pub kept: Option<Box<dyn channel::KeptEnd>>,
}

/// Who reads an output, and how.
pub(crate) struct Audience<'a> {
    pub readers: &'a [Reader],
    /// Room for values that are to be recorded, if they are.
    pub kept: Option<usize>,
    /// Whether each value is compared with the one before: a task is released by those that differ.
    pub compares: bool,
}

/// Makes all ends.
pub(crate) type Connect = Box<dyn FnOnce(&Audience<'_>) -> AllEnds>;

/// An output that code has opened.
pub(crate) struct OpenedOutput {
    pub value: ValueType,
    pub compares: bool,
    /// Whether values can be bytes.
    pub has_bytes: bool,
    /// Of a value in its slot, without the memory that it may have elsewhere.
    pub bytes: usize,
    /// Of a value that is to be recorded, about, with the memory that it may have elsewhere.
    pub kept_bytes: usize,
    pub connect: Connect,
}

/// What a value of a type with memory of its own, such as a vector, is taken to have of it.
const OWN_MEMORY: usize = 8 << 10;

/// All ends of the connections of an output of this kind, whose slots `value` fills.
pub(crate) fn connect<T: Send + Sync + 'static>(
    audience: &Audience<'_>,
    kind: OutputKind<T>,
    value: impl FnMut() -> T,
) -> AllEnds {
    let mut handling = kind.0;
    if !audience.compares {
        handling.same = None;
    }
    let (output, inputs, kept) = match audience.kept {
        Some(room) => OutputPort::kept(audience.readers, handling, room, value),
        None => {
            let (output, inputs) = OutputPort::new(audience.readers, handling, value);
            (output, inputs, None)
        }
    };
    let inputs = inputs.into_iter().map(|input| Box::new(input) as Box<dyn channel::Input>);
    AllEnds { output: Box::new(output), inputs: inputs.collect(), kept }
}

/// The ports of an operation, while its code is registered.
pub struct Ports<'a> {
    pub(crate) operation: OperationId,
    pub(crate) name: &'a str,
    /// Names of the inputs and of the outputs that the description has.
    pub(crate) inputs: Vec<&'a str>,
    pub(crate) outputs: Vec<&'a str>,
    /// What has been opened, in the same order.
    pub(crate) opened_inputs: Vec<Option<ValueType>>,
    pub(crate) opened_outputs: Vec<Option<OpenedOutput>>,
    pub(crate) is_outside: bool,
    /// Whether something outside releases its jobs.
    pub(crate) is_external: bool,
    /// Whether its jobs take events of a channel.
    pub(crate) takes_events: bool,
    /// What it reads of that, if it has opened it.
    pub(crate) reading: Option<Reading>,
    pub(crate) events: Option<&'a mut Box<dyn EventEnds>>,
    pub(crate) errors: &'a mut Vec<OperationError>,
}

impl fmt::Debug for Ports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

/// Stands for a port that there is not: the run is refused, so nobody uses the token.
const NOWHERE: usize = usize::MAX;

impl<'a> Ports<'a> {
    /// The operation's number.
    pub fn operation(&self) -> OperationId {
        self.operation
    }

    /// The operation reads something from outside, or does something there: a sensor, a socket, an actuator. When a run is replayed it is not
    /// called, and what it published is taken from the record. One that only reads the descriptor which releases its task
    /// [opens that](Self::descriptor) instead.
    pub fn outside(&mut self) {
        self.is_outside = true;
    }

    /// Opens the descriptor that releases the operation's task, of which a job [reads](crate::JobContext::read) so many bytes at most: for these
    /// there is room where a run is recorded. What a job reads beyond is not recorded, and counted as lost. A replayed job reads what was recorded.
    pub fn descriptor(&mut self, most: usize) -> Descriptor {
        let operation = self.name.to_owned();
        if !self.is_external {
            self.errors.push(OperationError::NoDescriptor { operation });
        } else if self.takes_events {
            let problem = "reads the descriptor that releases it and takes events, of which a recording keeps one or the other: let a subtask behind \
                           it take the events"
                .into();
            self.errors.push(OperationError::Events { operation, problem });
        } else if self.reading.replace(Reading::new(most)).is_some() {
            self.errors.push(OperationError::OpenedTwice { operation, name: "its descriptor".into() });
        }
        Descriptor { operation: self.operation }
    }

    /// The operation's ends at channels, if it has any, for who has made them.
    pub fn event_ends(&mut self) -> Option<&mut dyn EventEnds> {
        Some(self.events.as_mut()?.as_mut())
    }

    /// The code has opened an end at a channel that there is not, or in a way in which it cannot be; this says what is wrong, with all else that is.
    pub fn refuse_events(&mut self, problem: String) {
        self.errors.push(OperationError::Events { operation: self.name.to_owned(), problem });
    }

    /// Opens the input of this name for values of type `T`. That there is none, or that its producer's are of another type, is said when
    /// everything is known, with all else that is wrong.
    pub fn input<T: Value>(&mut self, name: &str) -> Input<T> {
        let place = self.inputs.iter().position(|known| *known == name);
        let place = match place {
            Some(place) if self.opened_inputs[place].is_none() => {
                self.opened_inputs[place] = Some(ValueType::of::<T>());
                place
            }
            _ => self.refuse("input", name, place.is_some()),
        };
        Input { operation: self.operation, place, of: PhantomData }
    }

    /// Opens the output of this name for values of type `T`, with a value of `T::default()` in each of its slots.
    pub fn output<T: Value>(&mut self, name: &str) -> Output<T> {
        self.output_of(name, OutputKind::any(), T::default)
    }

    /// The same with values of this kind, and slots that `value` fills: with room of their own, for one, which jobs then use again and again.
    pub fn output_of<T: Send + Sync + 'static>(
        &mut self,
        name: &str,
        kind: OutputKind<T>,
        value: impl FnMut() -> T + 'static,
    ) -> Output<T> {
        let place = self.outputs.iter().position(|known| *known == name);
        let place = match place {
            Some(place) if self.opened_outputs[place].is_none() => {
                let (compares, has_bytes) = (kind.0.same.is_some(), kind.0.codec.is_some());
                let connect = Box::new(|audience: &Audience<'_>| connect(audience, kind, value));
                let value = ValueType::of::<T>();
                let bytes = size_of::<T>();
                let kept_bytes = if std::mem::needs_drop::<T>() { bytes.max(OWN_MEMORY) } else { bytes };
                self.opened_outputs[place] =
                    Some(OpenedOutput { value, compares, has_bytes, bytes, kept_bytes, connect });
                place
            }
            _ => self.refuse("output", name, place.is_some()),
        };
        Output { operation: self.operation, place, of: PhantomData }
    }

    fn refuse(&mut self, direction: &'static str, name: &str, is_open: bool) -> usize {
        let operation = self.name.to_owned();
        let known = if direction == "input" { &self.inputs } else { &self.outputs };
        let error = match is_open {
            true => OperationError::OpenedTwice { operation, name: name.to_owned() },
            false => {
                let nearest = nearest(name, known.iter().copied());
                OperationError::UnknownPort { operation, direction, name: name.to_owned(), nearest }
            }
        };
        self.errors.push(error);
        NOWHERE
    }
}
