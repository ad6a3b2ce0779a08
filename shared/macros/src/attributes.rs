//! Parses the arguments of `#[skill(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use std::fmt::Display;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Ident, LitBool, LitStr, Token, Type, bracketed};

/// All keys, for the error message that lists them.
pub(crate) const KEYS: &str = "`id`, `name`, `description`, `tags`, `examples`, `text`, `refines`, `input_modes`, `output_modes`, \
     `background`, `cancel_words`, `accepts_routed`, \
     `effect`, `keeps_input`, `states`";

#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) id: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) tags: Vec<LitStr>,
    /// The media types of input and output, to check them.
    pub(crate) modes: Vec<LitStr>,
    /// The other fields of the metadata, as code.
    pub(crate) fields: Vec<TokenStream>,
    /// The types of the states that a struct takes.
    pub(crate) states: Vec<Type>,
}

impl Parse for Attributes {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = Self::default();
        let mut keys: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if keys.contains(&key) {
                return fail(&key, format!("`{key}` is given twice"));
            }
            if !input.peek(Token![=]) {
                let value = match key.to_string().as_str() {
                    "background" | "cancel_words" | "accepts_routed" => "true",
                    "keeps_input" => "false",
                    _ => "…",
                };
                return fail(&key, format!("`{key}` needs a value: `{key} = {value}`"));
            }
            input.parse::<Token![=]>()?;
            attributes.set(&key, input)?;
            keys.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attributes)
    }
}

impl Attributes {
    fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match key.to_string().as_str() {
            "id" => self.id = Some(text(key, input)?),
            "name" => self.name = Some(text(key, input)?),
            "description" => self.description = Some(text(key, input)?),
            "tags" => self.tags = texts(key, input)?,
            "text" | "refines" if input.peek(LitStr) => self.add_texts(key, &[text(key, input)?]),
            "examples" | "text" | "refines" => self.add_texts(key, &texts(key, input)?),
            "input_modes" | "output_modes" => {
                let modes = texts(key, input)?;
                self.add_texts(key, &modes);
                self.modes.extend(modes);
            }
            "background" | "cancel_words" | "accepts_routed" | "keeps_input" => {
                let flag = flag(key, input)?;
                self.fields.push(quote!(#key: #flag));
            }
            "effect" => self.fields.push(effect(key, input)?),
            "states" => self.states = types(input)?,
            _ => return fail(key, format!("unknown key `{key}`; allowed are {KEYS}")),
        }
        Ok(())
    }

    fn add_texts(&mut self, key: &Ident, texts: &[LitStr]) {
        self.fields.push(quote!(#key: &[#(#texts),*]));
    }
}

/// The error `message` at the span of `at`.
pub(crate) fn fail<T>(at: &impl Spanned, message: impl Display) -> syn::Result<T> {
    Err(syn::Error::new(at.span(), message))
}

fn text(key: &Ident, input: ParseStream<'_>) -> syn::Result<LitStr> {
    let text: LitStr = input.parse().map_err(|error| {
        syn::Error::new(error.span(), format!("`{key}` is a text: `{key} = \"…\"`"))
    })?;
    if text.value().trim().is_empty() {
        return fail(&text, format!("`{key}` must not be empty"));
    }
    Ok(text)
}

fn effect(key: &Ident, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let effect = text(key, input)?;
    match effect.value().as_str() {
        "read" => Ok(quote!(#key: ::a2a_lambda::skill::SkillEffect::Read)),
        "write" => Ok(quote!(#key: ::a2a_lambda::skill::SkillEffect::Write)),
        _ => fail(&effect, "`effect` is `\"read\"` or `\"write\"`"),
    }
}

fn texts(key: &Ident, input: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    if !input.peek(syn::token::Bracket) {
        let message = format!("`{key}` is a list of texts: `{key} = [\"…\"]`");
        return Err(syn::Error::new(input.span(), message));
    }
    let list;
    bracketed!(list in input);
    let mut texts = Vec::new();
    while !list.is_empty() {
        texts.push(text(key, &list)?);
        if !list.is_empty() {
            list.parse::<Token![,]>()?;
        }
    }
    if texts.is_empty() {
        return fail(key, format!("`{key}` must not be empty"));
    }
    Ok(texts)
}

fn types(input: ParseStream<'_>) -> syn::Result<Vec<Type>> {
    let list;
    bracketed!(list in input);
    let types = Punctuated::<Type, Token![,]>::parse_terminated(&list)?;
    Ok(types.into_iter().collect())
}

fn flag(key: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
    let flag: LitBool = input
        .parse()
        .map_err(|error| syn::Error::new(error.span(), format!("`{key}` is `true` or `false`")))?;
    Ok(flag.value)
}
