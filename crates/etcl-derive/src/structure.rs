//! Structs.

use crate::attributes::{Part, ensure_different, whole};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Fields, Result, parse_quote};

pub fn expand(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(
            &input.ident,
            "a struct without named fields has nothing to name in constraints",
        ));
    };
    let ident = &input.ident;
    let type_name = ident.to_string();
    let id = whole(input)?.id;
    let (mut members, mut names, mut types) = (Vec::new(), Vec::new(), Vec::new());
    let mut generics = input.generics.clone();
    for field in &fields.named {
        let part = Part::read(&field.attrs, true)?;
        let Some(name) = field.ident.as_ref().filter(|_| !part.skip) else { continue };
        members.push(name);
        names.push((part.name(name)?, name.span()));
        types.push(&field.ty);
    }
    ensure_different(&names)?;
    let names: Vec<&String> = names.iter().map(|(name, _)| name).collect();
    if !input.generics.params.is_empty() {
        let bounds = generics.make_where_clause();
        types.iter().for_each(|of| bounds.predicates.push(parse_quote!(#of: ::talea_etcl::View)));
    }
    let (implementation, of, bounds) = generics.split_for_impl();
    let positions = 0..members.len();
    let length = members.len();
    Ok(quote! {
        impl #implementation ::talea_etcl::Node for #ident #of #bounds {
            fn len(&self) -> usize {
                #length
            }

            #[inline]
            fn at(&self, position: usize) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                match position {
                    #(#positions => ::talea_etcl::View::view(&self.#members),)*
                    _ => ::core::option::Option::None,
                }
            }

            fn name_at(&self, position: usize) -> ::core::option::Option<&str> {
                <Self as ::talea_etcl::Filterable>::layout().name_at(position)
            }

            fn type_name(&self) -> ::core::option::Option<&str> {
                ::core::option::Option::Some(#type_name)
            }

            fn repository_id(&self) -> ::core::option::Option<&str> {
                #id
            }
        }

        impl #implementation ::talea_etcl::Filterable for #ident #of #bounds {
            fn layout() -> &'static ::talea_etcl::Layout {
                const {
                    &::talea_etcl::Layout {
                        name: #type_name,
                        repository_id: #id,
                        members: &[#(::talea_etcl::Member {
                            name: #names,
                            kind: <#types as ::talea_etcl::View>::kind,
                        }),*],
                    }
                }
            }
        }

        impl #implementation ::talea_etcl::View for #ident #of #bounds {
            fn kind() -> ::talea_etcl::Kind {
                ::talea_etcl::Kind::Struct(<Self as ::talea_etcl::Filterable>::layout)
            }

            fn view(&self) -> ::core::option::Option<::talea_etcl::Value<'_>> {
                ::core::option::Option::Some(::talea_etcl::Value::Struct(self))
            }
        }
    })
}
