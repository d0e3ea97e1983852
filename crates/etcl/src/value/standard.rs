//! Views of the types of the standard library, and of instants and durations, which are nanoseconds.

use super::{Kind, Node, Value, View};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use talea_time::{Duration, Instant, Work};

macro_rules! numbers {
    ($($kind:ident as $wide:ty: $($number:ty),*;)*) => {
        $($(impl View for $number {
            fn kind() -> Kind {
                numbers!(@kind $kind)
            }

            fn view(&self) -> Option<Value<'_>> {
                Some(Value::$kind(*self as $wide))
            }
        })*)*
    };
    (@kind Unsigned) => { Kind::Integer };
    (@kind $kind:ident) => { Kind::$kind };
}

numbers! {
    Boolean as bool: bool;
    Integer as i64: i8, i16, i32, i64, isize;
    Unsigned as u64: u8, u16, u32, u64, usize;
    Float as f64: f32, f64;
}

macro_rules! nanoseconds {
    ($($time:ty),*) => {
        $(impl View for $time {
            fn kind() -> Kind {
                Kind::Integer
            }

            fn view(&self) -> Option<Value<'_>> {
                Some(Value::Integer(self.as_nanos()))
            }
        })*
    };
}

nanoseconds!(Duration, Instant, Work);

macro_rules! texts {
    ($($text:ty),*) => {
        $(impl View for $text {
            fn kind() -> Kind {
                Kind::Text
            }

            fn view(&self) -> Option<Value<'_>> {
                Some(Value::Text(self))
            }
        })*
    };
}

texts!(String, &str, Cow<'_, str>, Box<str>, Arc<str>, Rc<str>);

macro_rules! pointers {
    ($($pointer:ty),*) => {
        $(impl<T: View> View for $pointer {
            fn kind() -> Kind {
                T::kind()
            }

            fn view(&self) -> Option<Value<'_>> {
                (**self).view()
            }
        })*
    };
}

pointers!(Box<T>, Arc<T>, Rc<T>, &T);

impl<T: View> View for Option<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn view(&self) -> Option<Value<'_>> {
        self.as_ref().and_then(View::view)
    }
}

macro_rules! sequences {
    ($([$($generics:tt)*] $sequence:ty;)*) => {
        $(
            impl<$($generics)*> View for $sequence {
                fn kind() -> Kind {
                    Kind::Sequence(T::kind)
                }

                fn view(&self) -> Option<Value<'_>> {
                    Some(Value::Sequence(self))
                }
            }

            impl<$($generics)*> Node for $sequence {
                fn len(&self) -> usize {
                    <[T]>::len(self)
                }

                fn at(&self, position: usize) -> Option<Value<'_>> {
                    self.get(position).and_then(View::view)
                }
            }
        )*
    };
}

sequences! {
    [T: View] Vec<T>;
    [T: View] Box<[T]>;
    [T: View] Arc<[T]>;
    [T: View] &[T];
    [T: View, const LENGTH: usize] [T; LENGTH];
}
