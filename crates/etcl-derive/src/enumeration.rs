//! Enums: enumerations, and unions where variants have fields.

use crate::attributes::{Part, ensure_different, whole};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Fields, Result, Type, Variant, parse_quote};

pub fn expand(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let mut names = Vec::new();
    for variant in &data.variants {
        names.push((Part::read(&variant.attrs, false)?.name(&variant.ident)?, variant.ident.span()));
    }
    ensure_different(&names)?;
    if names.is_empty() {
        return Err(Error::new_spanned(&input.ident, "an enum without variants has no labels"));
    }
    let names: Vec<&String> = names.iter().map(|(name, _)| name).collect();
    let type_name = input.ident.to_string();
    let id = whole(input)?.id;
    let labels = quote! {
        const LABELS: &::talea_etcl::EnumType = &::talea_etcl::EnumType {
            name: #type_name,
            repository_id: #id,
            labels: &[#(#names),*],
        };
    };
    if data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) {
        Ok(labelled(input, data, &labels))
    } else {
        union(input, data, &labels)
    }
}

/// An expression for the position of the variant that `self` is.
fn ordinal(data: &DataEnum) -> TokenStream {
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let ordinals = 0u32..;
    let ordinals = variants.clone().zip(ordinals).map(|(_, ordinal)| ordinal);
    quote!(match self { #(Self::#variants { .. } => #ordinals,)* })
}

fn labelled(input: &DeriveInput, data: &DataEnum, labels: &TokenStream) -> TokenStream {
    let ident = &input.ident;
    let (implementation, of, bounds) = input.generics.split_for_impl();
    let ordinal = ordinal(data);
    quote! {
        impl #implementation ::talea_etcl::View for #ident #of #bounds {
            fn kind() -> ::talea_etcl::Kind {
                #labels
                ::talea_etcl::Kind::Enum(LABELS)
            }

            #[inline]
            fn view(&self) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                ::core::option::Option::Some(::talea_etcl::Value::Enum(self))
            }
        }

        impl #implementation ::talea_etcl::Node for #ident #of #bounds {
            fn len(&self) -> usize {
                #labels
                LABELS.labels.len()
            }

            fn at(&self, position: usize) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                ::talea_etcl::Node::name_at(self, position).map(::talea_etcl::Value::Text)
            }

            fn name_at(&self, position: usize) -> ::core::option::Option<&str> {
                #labels
                LABELS.labels.get(position).copied()
            }

            fn type_name(&self) -> ::core::option::Option<&str> {
                #labels
                ::core::option::Option::Some(LABELS.name)
            }

            fn repository_id(&self) -> ::core::option::Option<&str> {
                #labels
                LABELS.repository_id
            }

            fn ordinal(&self) -> u32 {
                #ordinal
            }
        }
    }
}

/// The one field of a variant, if it has any.
fn field(variant: &Variant) -> Result<Option<&Type>> {
    match &variant.fields {
        Fields::Unit => Ok(None),
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Ok(Some(&fields.unnamed[0].ty)),
        _ => Err(Error::new_spanned(
            variant,
            "an arm of a union has one value: give the variant one unnamed field, of a struct where it needs several",
        )),
    }
}

fn union(input: &DeriveInput, data: &DataEnum, labels: &TokenStream) -> Result<TokenStream> {
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    let (mut arms, mut counts) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        let name = &variant.ident;
        match field(variant)? {
            Some(of) => {
                if !input.generics.params.is_empty() {
                    generics.make_where_clause().predicates.push(parse_quote!(#of: ::talea_etcl::View));
                }
                arms.push(quote!(Self::#name(value) => ::talea_etcl::View::view(value)));
                counts.push(quote!(Self::#name(..) => 1));
            }
            None => {
                arms.push(quote!(Self::#name => ::core::option::Option::None));
                counts.push(quote!(Self::#name => 0));
            }
        }
    }
    let (implementation, of, bounds) = generics.split_for_impl();
    let ordinal = ordinal(data);
    let count = data.variants.len();
    let positions = 0u32..;
    let positions = positions.take(count);
    Ok(quote! {
        impl #implementation ::talea_etcl::Node for #ident #of #bounds {
            fn len(&self) -> usize {
                match self { #(#counts,)* }
            }

            fn at(&self, position: usize) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                match self {
                    _ if position > 0 => ::core::option::Option::None,
                    #(#arms,)*
                }
            }

            fn name_at(&self, position: usize) -> ::core::option::Option<&str> {
                #labels
                if position == 0 {
                    LABELS.labels.get(#ordinal as usize).copied()
                } else {
                    ::core::option::Option::None
                }
            }

            fn type_name(&self) -> ::core::option::Option<&str> {
                #labels
                ::core::option::Option::Some(LABELS.name)
            }

            fn repository_id(&self) -> ::core::option::Option<&str> {
                #labels
                LABELS.repository_id
            }

            fn discriminator(&self) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                #labels
                static VARIANTS: [::talea_etcl::Label; #count] =
                    [#(::talea_etcl::Label { of: LABELS, ordinal: #positions }),*];
                VARIANTS.get(#ordinal as usize).map(|label| ::talea_etcl::Value::Enum(label))
            }

            fn is_selected_by(&self, selector: ::talea_etcl::SelectorValue<'_>) -> bool {
                ::talea_etcl::Node::discriminator(self)
                    .is_some_and(|discriminator| discriminator.is_selected_by(selector))
            }
        }

        impl #implementation ::talea_etcl::View for #ident #of #bounds {
            fn kind() -> ::talea_etcl::Kind {
                ::talea_etcl::Kind::Union
            }

            fn view(&self) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                ::core::option::Option::Some(::talea_etcl::Value::Union(self))
            }
        }
    })
}
