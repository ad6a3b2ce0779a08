//! Generates the code of `#[skill]`.

use crate::attributes::{Attributes, fail};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Expr, FnArg, GenericArgument, Item, ItemFn, ItemStruct, Lit, LitStr, Meta,
    PathArguments, ReturnType, Type,
};

pub(crate) fn skill(attributes: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let attributes: Attributes = syn::parse2(attributes)?;
    match syn::parse2(item)? {
        Item::Struct(item) => of_struct(&attributes, &item),
        Item::Fn(item) => of_fn(&attributes, item),
        other => fail(&other, "`#[skill]` goes on a struct or an `async fn`"),
    }
}

fn of_struct(attributes: &Attributes, item: &ItemStruct) -> syn::Result<TokenStream> {
    let name = &item.ident;
    let metadata = metadata(attributes, &item.attrs)?;
    let checks = checks(attributes);
    let (generics, arguments, bounds) = item.generics.split_for_impl();
    let members = members(&metadata, &attributes.states);
    Ok(quote! {
        #item
        #checks
        impl #generics ::a2a_lambda::skill::Skill for #name #arguments #bounds {
            #members
        }
    })
}

/// The members of `impl Skill`.
fn members(metadata: &TokenStream, states: &[impl ToTokens]) -> TokenStream {
    let sources = crate::sources::of_this_crate();
    quote! {
        const METADATA: ::a2a_lambda::skill::SkillMetadata = #metadata;
        const SOURCES: &'static str = #sources;

        fn states() -> ::std::vec::Vec<::a2a_lambda::skill::NeededState> {
            ::std::vec![#(::a2a_lambda::skill::State::<#states>::need()),*]
        }
    }
}

/// The skill becomes a struct and a function that makes it, both with the name and the visibility
/// of the author's function, which moves into the handler and hides the generated one there. A unit
/// struct will not do: its name would be a pattern, and no variable could have it.
fn of_fn(attributes: &Attributes, mut item: ItemFn) -> syn::Result<TokenStream> {
    let metadata = metadata(attributes, &item.attrs)?;
    let checks = checks(attributes);
    let signature = Signature::of(&item)?;
    if let Some(first) = attributes.states.first() {
        let message = "an `async fn` skill takes its states as arguments: `State<…>`";
        return fail(first, message);
    }
    let (docs, rest) = item.attrs.into_iter().partition(is_doc);
    let docs: Vec<Attribute> = docs;
    item.attrs = rest;
    let visibility = std::mem::replace(&mut item.vis, syn::Visibility::Inherited);
    let name = &item.sig.ident;
    let Signature {
        input,
        reply,
        cx,
        states,
    } = signature;
    let members = members(&metadata, &states);
    let cx = cx.then(|| quote!(__cx,));
    let bindings: Vec<_> = (0..states.len())
        .map(|number| quote::format_ident!("__state{number}"))
        .collect();
    let arguments = quote!(#cx #(#bindings,)* __input);
    // With the span of the return type, the compiler reports a wrong type there.
    let output = quote_spanned! {reply.span()=>
        <<#reply as ::a2a_lambda::skill::SkillReturn>::Reply
            as ::a2a_lambda::skill::IntoReply>::Output
    };
    Ok(quote! {
        #(#docs)*
        #[must_use]
        #visibility const fn #name() -> #name {
            #name {}
        }

        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #name {}

        #checks

        impl ::a2a_lambda::skill::Skill for #name {
            #members
        }

        impl ::a2a_lambda::skill::SkillHandler for #name {
            type Input = #input;
            type Output = #output;

            async fn on_request(
                &self,
                __cx: &mut ::a2a_lambda::skill::TaskContext<'_>,
                __input: Self::Input,
            ) -> ::a2a_lambda::skill::AgentResult<
                ::a2a_lambda::skill::OnRequestResult<Self::Output>,
            > {
                #item
                // Avoids a warning about an unused parameter when the function takes no
                // context.
                let _ = &__cx;
                #(let #bindings = ::a2a_lambda::skill::State::<#states>::of(__cx).await?;)*
                ::a2a_lambda::skill::SkillReturn::into_result(#name(#arguments).await)
                    .map(::a2a_lambda::skill::IntoReply::into_reply)
            }
        }
    })
}

/// The parts of an `async fn([cx,] [state, …] input) -> reply`.
struct Signature {
    input: TokenStream,
    reply: TokenStream,
    cx: bool,
    /// The `T` of each `State<T>`.
    states: Vec<TokenStream>,
}

/// What an argument of a skill is.
enum Argument<'a> {
    Context,
    State(&'a GenericArgument),
    Input(&'a Type),
}

impl Signature {
    fn of(item: &ItemFn) -> syn::Result<Self> {
        let signature = &item.sig;
        if signature.asyncness.is_none() {
            return fail(&signature.fn_token, "a skill is an `async fn`");
        }
        if !signature.generics.params.is_empty() {
            return fail(&signature.generics, "a skill has no generic parameters");
        }
        let ReturnType::Type(_, reply) = &signature.output else {
            let message = "a skill returns `AgentResult<_>`";
            return Err(syn::Error::new(signature.paren_token.span.close(), message));
        };
        if let Some(slot) = slot_in(reply) {
            let slot = slot.to_token_stream();
            let message = format!(
                "an `async fn` skill cannot ask: put `#[skill]` on a struct, and write \
                 `impl SkillHandler<{slot}>` for it"
            );
            return fail(reply, message);
        }
        let (mut cx, mut states, mut input) = (false, Vec::new(), None);
        for (index, argument) in signature.inputs.iter().enumerate() {
            if input.is_some() {
                return fail(argument, ORDER);
            }
            match Argument::of(argument)? {
                Argument::Context if index == 0 => cx = true,
                Argument::Context => return fail(argument, ORDER),
                Argument::State(state) => states.push(state.to_token_stream()),
                Argument::Input(ty) => input = Some(ty.to_token_stream()),
            }
        }
        let no_input = || syn::Error::new(signature.paren_token.span.join(), ORDER);
        Ok(Self {
            input: input.ok_or_else(no_input)?,
            reply: reply.to_token_stream(),
            cx,
            states,
        })
    }
}

/// The order of a skill's arguments.
const ORDER: &str = "a skill takes `cx: &mut TaskContext<'_>` first if it needs one, then each \
                     `State<…>`, and last its one input";

const CONTEXT: &str = "the context is `cx: &mut TaskContext<'_>`";

impl<'a> Argument<'a> {
    fn of(argument: &'a FnArg) -> syn::Result<Self> {
        let ty = match argument {
            FnArg::Typed(argument) => &*argument.ty,
            FnArg::Receiver(receiver) => {
                let message = "a skill has no `self`: put `#[skill]` on a struct and implement `SkillHandler`";
                return fail(receiver, message);
            }
        };
        match ty {
            Type::Reference(to) if is_named(&to.elem, "TaskContext") => match to.mutability {
                Some(_) => Ok(Self::Context),
                None => fail(ty, CONTEXT),
            },
            Type::Reference(to) => {
                let replacement = if is_named(&to.elem, "str") {
                    "`String`"
                } else {
                    "the owned type"
                };
                let message =
                    format!("a skill owns its input: write {replacement} instead of a reference");
                fail(ty, message)
            }
            Type::Path(path) => match path.path.segments.last() {
                Some(last) if last.ident == "State" => match &last.arguments {
                    PathArguments::AngleBracketed(types) if types.args.len() == 1 => {
                        Ok(types.args.first().map_or(Self::Input(ty), Self::State))
                    }
                    _ => fail(ty, "a state is `State<T>`"),
                },
                Some(last) if last.ident == "TaskContext" => fail(ty, CONTEXT),
                _ => Ok(Self::Input(ty)),
            },
            _ => Ok(Self::Input(ty)),
        }
    }
}

/// The `S` of an `OnRequestResult<O, S>` in the return type of a skill.
fn slot_in(ty: &Type) -> Option<&GenericArgument> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(types) = &last.arguments else {
        return None;
    };
    if last.ident == "OnRequestResult" {
        return types.args.iter().nth(1);
    }
    types.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) => slot_in(inner),
        _ => None,
    })
}

/// Whether a type is a path that ends with `name`.
fn is_named(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|segment| segment.ident == name)
}

fn metadata(attributes: &Attributes, docs: &[Attribute]) -> syn::Result<TokenStream> {
    let error = |what| syn::Error::new(Span::call_site(), what);
    let id = (attributes.id.as_ref()).ok_or_else(|| error("a skill needs `id = \"…\"`"))?;
    if !is_skill_id(&id.value()) {
        let message = format!(
            "the skill id `{}` must be `[a-z0-9][a-z0-9._-]{{0,63}}`",
            id.value()
        );
        return fail(id, message);
    }
    if attributes.tags.is_empty() {
        return Err(error("a skill needs `tags = [\"…\"]`"));
    }
    let description = match &attributes.description {
        Some(text) => text.clone(),
        None => described_by(docs).ok_or_else(|| {
            error("a skill needs a description: a doc comment or `description = \"…\"`")
        })?,
    };
    let name = attributes.name.as_ref().unwrap_or(id);
    let Attributes { tags, fields, .. } = attributes;
    Ok(quote! {
        ::a2a_lambda::skill::SkillMetadata {
            name: #name,
            description: #description,
            #(#fields,)*
            ..::a2a_lambda::skill::SkillMetadata::new(#id, "", &[#(#tags),*])
        }
    })
}

/// Whether an agent takes a skill with this id: the rule of `SkillId`.
fn is_skill_id(id: &str) -> bool {
    let is_inner = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let first = id.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && id.len() <= 64
        && id.as_bytes().iter().all(is_inner)
}

/// Checks the media types at compile time, with the library's own function.
fn checks(attributes: &Attributes) -> TokenStream {
    let checks = attributes.modes.iter().map(|mode| {
        let message = format!(
            "`{}` is not a media type: write `type/subtype`, `type/*` or `*/*`",
            mode.value()
        );
        quote_spanned! {mode.span()=>
            const _: () = ::core::assert!(::a2a_lambda::skill::is_media_type(#mode), #message);
        }
    });
    quote!(#(#checks)*)
}

fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The doc comment as a description; the lines of a paragraph become one line.
fn described_by(attributes: &[Attribute]) -> Option<LitStr> {
    let lines = attributes.iter().filter(|one| is_doc(one)).filter_map(line);
    let mut text = String::new();
    for line in lines {
        match line.trim() {
            "" => text.push('\n'),
            line if text.is_empty() || text.ends_with('\n') => text.push_str(line),
            line => {
                text.push(' ');
                text.push_str(line);
            }
        }
    }
    let text = text.trim();
    (!text.is_empty()).then(|| LitStr::new(text, Span::call_site()))
}

fn line(doc: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &doc.meta else {
        return None;
    };
    let Expr::Lit(literal) = &pair.value else {
        return None;
    };
    match &literal.lit {
        Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
