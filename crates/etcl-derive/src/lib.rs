//! `#[derive(Filterable)]`, which `talea-etcl` re-exports.

#![forbid(unsafe_code)]

mod attributes;
mod enumeration;
mod structure;

use proc_macro::TokenStream;
use proc_macro2::{Group, TokenStream as TokenStream2, TokenTree};
use quote::ToTokens;
use syn::{Data, DeriveInput, Error, parse_macro_input};

/// Makes a type something that constraints look at.
///
/// * A struct with named fields becomes a struct whose members are its fields, and an event of its own.
/// * An enum without fields becomes an enumeration; a label's position is that of its variant.
/// * An enum whose variants have one unnamed field or none becomes a union. Its discriminator is an enumeration of the variants.
///
/// Each field has to implement `View`, as numbers, strings, options, vectors and all types with this macro do.
///
/// `#[filterable(rename = "name")]` on a field or variant gives it another name, `#[filterable(skip)]` on a field leaves it out,
/// and `#[filterable(id = "IDL:Plant/Alarm:1.0")]` on the type is what `._repos_id` gives. Where `talea-etcl` is no dependency of the crate itself,
/// `#[filterable(crate = "talea::notification::etcl")]` on the type says under which path it is.
#[proc_macro_derive(Filterable, attributes(filterable))]
pub fn filterable(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let expanded = match &input.data {
        Data::Struct(data) => structure::expand(&input, data),
        Data::Enum(data) => enumeration::expand(&input, data),
        Data::Union(data) => Err(Error::new(
            data.union_token.span,
            "a Rust union cannot be looked at; use an enum with fields",
        )),
    };
    let root = attributes::whole(&input).ok().and_then(|whole| whole.root);
    let expanded = expanded.unwrap_or_else(Error::into_compile_error);
    match root {
        None => expanded.into(),
        Some(root) => under(&root.to_token_stream(), expanded).into(),
    }
}

/// The same with another path in the place of `::talea_etcl`.
fn under(root: &TokenStream2, tokens: TokenStream2) -> TokenStream2 {
    let mut changed: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), under(root, group.stream()));
                inner.set_span(group.span());
                changed.push(inner.into());
            }
            TokenTree::Ident(name) if name == "talea_etcl" => {
                // The two colons before it.
                changed.truncate(changed.len().saturating_sub(2));
                changed.extend(root.clone());
            }
            other => changed.push(other),
        }
    }
    changed.into_iter().collect()
}
