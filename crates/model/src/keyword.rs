//! Values that are one of a few words.

/// A value with one text per case, the same in system files, on the command line and in results.
macro_rules! keywords {
    ($(#[$attribute:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $text:literal),* $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $(#[$attribute])*
        pub enum $name {
            $($(#[$case_doc])* #[serde(rename = $text)] $case),*
        }
        impl $name {
            /// Every case, in the order of the documentation.
            pub const ALL: &[$name] = &[$($name::$case),*];

            /// The text that stands for this case.
            pub const fn keyword(self) -> &'static str {
                match self { $($name::$case => $text),* }
            }
        }
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.keyword())
            }
        }
        impl std::str::FromStr for $name {
            type Err = $crate::keyword::UnknownKeyword;
            fn from_str(text: &str) -> Result<Self, $crate::keyword::UnknownKeyword> {
                Self::ALL.iter().copied().find(|case| case.keyword() == text).ok_or_else(|| $crate::keyword::UnknownKeyword {
                    text: text.into(),
                    known: Self::ALL.iter().map(|case| case.keyword()).collect(),
                })
            }
        }
    };
}

pub(crate) use keywords;

/// A text that names no case of a keyword type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is none of {}", known.join(", "))]
pub struct UnknownKeyword {
    /// What was given.
    pub text: String,
    /// What would have been understood.
    pub known: Vec<&'static str>,
}
