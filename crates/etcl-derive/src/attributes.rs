//! What `#[filterable(...)]` says.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Error, Ident, LitStr, Path, Result};

/// What is said of a field or variant.
#[derive(Default)]
pub struct Part {
    pub rename: Option<String>,
    pub skip: bool,
}

impl Part {
    /// Whether fields can be left out, and variants not, is `may_skip`.
    pub fn read(attributes: &[Attribute], may_skip: bool) -> Result<Self> {
        let mut part = Part::default();
        each(attributes, |meta| {
            if meta.path.is_ident("rename") {
                let name: LitStr = meta.value()?.parse()?;
                if !is_name(&name.value()) {
                    let message = "a constraint cannot name this: begin with a letter, go on with letters, digits and _";
                    return Err(Error::new(name.span(), message));
                }
                part.rename = Some(name.value());
                Ok(())
            } else if meta.path.is_ident("skip") && may_skip {
                part.skip = true;
                Ok(())
            } else if may_skip {
                Err(meta.error("expected rename = \"name\" or skip"))
            } else {
                Err(meta.error("expected rename = \"name\""))
            }
        })?;
        Ok(part)
    }

    /// The name that constraints use.
    pub fn name(&self, ident: &Ident) -> Result<String> {
        if let Some(name) = &self.rename {
            return Ok(name.clone());
        }
        let name = ident.to_string();
        let name = name.strip_prefix("r#").unwrap_or(&name);
        if is_name(name) {
            return Ok(name.into());
        }
        let message =
            "a constraint cannot name this; give it another name with #[filterable(rename = \"name\")]";
        Err(Error::new(ident.span(), message))
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// What is said of a type: its identifier, as an expression of type `Option<&'static str>`, and where `talea-etcl` is.
pub struct Whole {
    pub id: TokenStream,
    pub root: Option<Path>,
}

pub fn whole(input: &DeriveInput) -> Result<Whole> {
    let mut id = quote!(::core::option::Option::None);
    let mut root = None;
    each(&input.attrs, |meta| {
        if meta.path.is_ident("crate") {
            let path: LitStr = meta.value()?.parse()?;
            root = Some(path.parse()?);
            return Ok(());
        }
        if meta.path.is_ident("id") {
            let text: LitStr = meta.value()?.parse()?;
            id = quote!(::core::option::Option::Some(#text));
            Ok(())
        } else {
            Err(meta.error("expected id = \"IDL:Module/Type:1.0\" or crate = \"path\""))
        }
    })?;
    Ok(Whole { id, root })
}

fn each(attributes: &[Attribute], mut read: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("filterable"))
        .try_for_each(|attribute| attribute.parse_nested_meta(&mut read))
}

/// Refuses a second part of the same name.
pub fn ensure_different(names: &[(String, Span)]) -> Result<()> {
    for (index, (name, span)) in names.iter().enumerate() {
        if names[..index].iter().any(|(known, _)| known == name) {
            return Err(Error::new(*span, format!("there are two parts of the name {name}")));
        }
    }
    Ok(())
}
