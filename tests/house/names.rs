//! The functions, public items, types and values that a file declares.

use crate::source::Source;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Visibility};

/// Participles without `-ed`, and three words that say as little. The name of a value says what
/// the value is: `record`, not `found`. `docs/style.md` has the rule.
const PARTICIPLES: &str = "begun born bound broken brought built caught chosen done drawn forgotten found given \
    gone got grown held hidden kept known left lost made meant met own paid place said seen sent shown sold spent \
    taken taught thought told torn understood whole won written";
/// Words in `-ed` that are names all the same.
const IN_ED: &str = "embed embedded exceed indeed need proceed succeed speed unbounded used";

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// What a file declares.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) functions: Vec<Function>,
    /// Names of public items, with their lines and whether they have documentation.
    pub(crate) public: Vec<(String, usize, bool)>,
    /// Structs, enums, traits, unions and aliases, with their lines.
    pub(crate) types: Vec<(String, usize)>,
    /// The names that values get, with their lines: in patterns and as fields.
    pub(crate) values: Vec<(String, usize)>,
    /// Constants, variants, modules and methods without a body, with their lines.
    pub(crate) others: Vec<(String, usize)>,
    /// Traits, with the number of their methods.
    pub(crate) traits: Vec<(String, usize)>,
}

/// Reads the names of a file.
pub(crate) fn names(source: &Source) -> Names {
    let mut names = Names::default();
    names.visit_file(&source.file);
    names
}

/// Whether a value has the name of what happened to it.
pub(crate) fn is_participle(name: &str) -> bool {
    let mut letters = name.chars();
    let in_ed = name.len() >= 5
        && name.ends_with("ed")
        && letters.all(|letter| letter.is_ascii_lowercase());
    PARTICIPLES.split(' ').any(|word| word == name)
        || in_ed && !IN_ED.split(' ').any(|word| word == name)
}

/// The words of a name, in small letters: `load_thread`, `LoadThread` and `LOAD_THREAD` have two.
pub(crate) fn words(name: &str) -> Vec<String> {
    if !name.contains(char::is_lowercase) {
        return name.to_lowercase().split('_').map(str::to_owned).collect();
    }
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter.is_ascii_uppercase() || letter == '_' {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter != '_', words.last_mut()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}

impl Names {
    fn public(
        &mut self,
        visibility: &Visibility,
        name: &impl ToString,
        attributes: &[Attribute],
        is_module: bool,
    ) {
        if let Visibility::Public(word) = visibility {
            let is_documented = is_module
                || attributes
                    .iter()
                    .any(|attribute| attribute.path().is_ident("doc"));
            self.public
                .push((name.to_string(), word.span().start().line, is_documented));
        }
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let line = signature.fn_token.span().start().line;
        let lines = body.span().end().line + 1 - line;
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            lines,
        });
    }

    fn value(&mut self, name: &syn::Ident) {
        self.values
            .push((name.to_string(), name.span().start().line));
    }

    fn other(&mut self, name: &syn::Ident) {
        self.others
            .push((name.to_string(), name.span().start().line));
    }

    fn declare(&mut self, name: &syn::Ident) {
        self.types
            .push((name.to_string(), name.span().start().line));
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.public(&item.vis, &item.sig.ident, &item.attrs, false);
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.public(&item.vis, &item.sig.ident, &item.attrs, false);
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        } else {
            self.other(&item.sig.ident);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.declare(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.declare(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.declare(&item.ident);
        let methods = item
            .items
            .iter()
            .filter(|part| matches!(part, syn::TraitItem::Fn(_)))
            .count();
        self.traits.push((item.ident.to_string(), methods));
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.declare(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.other(&item.ident);
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.other(&item.ident);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        self.public(&item.vis, &item.ident, &item.attrs, false);
        self.other(&item.ident);
        visit::visit_item_static(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        // The lint `missing_docs` finds a public module without a `//!`.
        self.public(&item.vis, &item.ident, &item.attrs, true);
        self.other(&item.ident);
        visit::visit_item_mod(self, item);
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        self.other(&variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        self.value(&pattern.ident);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        field.ident.iter().for_each(|name| self.value(name));
        visit::visit_field(self, field);
    }

    fn visit_field_pat(&mut self, field: &'a syn::FieldPat) {
        // `{ name }` has the name of the field, which counts where it is declared.
        if field.colon_token.is_some() {
            visit::visit_field_pat(self, field);
        }
    }
}
