//! The production files, each without its tests.
//!
//! Production is what the crates below `shared`, `functions` and `infra` reach by `mod`. Test
//! modules, contract suites and fuzz code do not count, nor do the test kit and the examples.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, Meta};

/// What authors test with, and what shows how an agent is written.
const NOT_PRODUCTION: [&str; 2] = ["shared/runtime/src/testing", "shared/agent/src/examples"];

/// A production file.
pub(crate) struct Source {
    /// The path from the root of the workspace.
    pub(crate) path: String,
    /// The folder of its package, for example `shared/wire`.
    pub(crate) package: String,
    /// The names of the modules that lead to it.
    pub(crate) module: Vec<String>,
    /// The items that are no tests.
    pub(crate) file: syn::File,
    /// All lines but those of tests.
    pub(crate) lines: usize,
    /// The lines with a token that belongs to no comment and no test.
    pub(crate) code: usize,
}

impl Source {
    fn read(root: &Path, package: &str, path: &Path, module: Vec<String>) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut file =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut tests = Tests::default();
        tests.visit_file_mut(&mut file);
        let mut code = BTreeSet::new();
        code_lines(file.to_token_stream(), &mut code);
        Self {
            path: path.strip_prefix(root).unwrap().display().to_string(),
            package: package.to_owned(),
            module,
            lines: text.lines().count() - tests.lines.len(),
            code: code.len(),
            file,
        }
    }

    /// The modules with a file of their own that this file declares, each with its file.
    fn children(&self, root: &Path) -> Vec<(String, PathBuf)> {
        let path = root.join(&self.path);
        let is_root = ["lib.rs", "main.rs", "mod.rs"]
            .iter()
            .any(|name| path.ends_with(name));
        let folder = if is_root {
            path.parent().unwrap().to_owned()
        } else {
            path.with_extension("")
        };
        let file_of = |name: &str| {
            let files = [
                folder.join(format!("{name}.rs")),
                folder.join(name).join("mod.rs"),
            ];
            files.into_iter().find(|file| file.is_file())
        };
        let modules = self.file.items.iter().filter_map(|item| match item {
            Item::Mod(module) if module.content.is_none() => Some(module.ident.to_string()),
            _ => None,
        });
        modules
            .filter_map(|name| file_of(&name).map(|file| (name, file)))
            .collect()
    }
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap()
}

/// The lines of Rust and those for the browser, for each package.
pub(crate) fn lines_of_packages() -> BTreeMap<String, [usize; 2]> {
    let mut packages = BTreeMap::new();
    for group in ["functions", "infra", "shared", "tests"] {
        for package in fs::read_dir(root().join(group)).unwrap() {
            let folder = package.unwrap().path();
            let name = folder.strip_prefix(root()).unwrap().display().to_string();
            let mut lines = [0; 2];
            count_lines(&folder, &mut lines);
            if lines != [0; 2] {
                packages.insert(name, lines);
            }
        }
    }
    packages
}

fn count_lines(path: &Path, lines: &mut [usize; 2]) {
    if path.is_dir() {
        // Nothing that a build or a run left.
        let is_source = !["target", "node_modules", "venv"]
            .iter()
            .any(|it| path.ends_with(it));
        for entry in fs::read_dir(path).unwrap().filter(|_| is_source) {
            count_lines(&entry.unwrap().path(), lines);
        }
        return;
    }
    let count = || fs::read_to_string(path).unwrap().lines().count();
    match path.extension().and_then(|it| it.to_str()) {
        Some("rs") => lines[0] += count(),
        Some("js" | "css" | "html") => lines[1] += count(),
        _ => {}
    }
}

/// All production files, ordered by path.
pub(crate) fn production() -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    for group in ["shared", "functions", "infra"] {
        for package in fs::read_dir(root.join(group)).unwrap() {
            let folder = package.unwrap().path();
            let package = folder.strip_prefix(root).unwrap().display().to_string();
            let roots = ["lib.rs", "main.rs"].map(|name| folder.join("src").join(name));
            let mut paths: Vec<(PathBuf, Vec<String>)> = roots
                .into_iter()
                .filter(|path| path.is_file())
                .map(|path| (path, Vec::new()))
                .collect();
            while let Some((path, module)) = paths.pop() {
                let source = Source::read(root, &package, &path, module);
                for (name, file) in source.children(root) {
                    paths.push((file, [source.module.clone(), vec![name]].concat()));
                }
                if !NOT_PRODUCTION
                    .iter()
                    .any(|folder| source.path.starts_with(folder))
                {
                    sources.push(source);
                }
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

/// Takes the tests out of a file, and notes their lines.
#[derive(Default)]
struct Tests {
    lines: BTreeSet<usize>,
}

impl Tests {
    /// Whether an item with these attributes stays.
    fn stays(&mut self, attributes: &[Attribute], item: &impl Spanned) -> bool {
        let is_test = attributes.iter().any(is_test_cfg);
        if is_test {
            self.lines
                .extend(item.span().start().line..=item.span().end().line);
        }
        !is_test
    }
}

impl VisitMut for Tests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items
            .retain(|item| self.stays(attributes_of(item), item));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| self.stays(attributes_of(item), item));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|part| match part {
            syn::ImplItem::Fn(method) => self.stays(&method.attrs, part),
            syn::ImplItem::Const(constant) => self.stays(&constant.attrs, part),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|part| match part {
            syn::TraitItem::Fn(method) => self.stays(&method.attrs, part),
            _ => true,
        });
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            syn::Stmt::Item(item) => self.stays(attributes_of(item), statement),
            syn::Stmt::Local(local) => self.stays(&local.attrs, statement),
            _ => true,
        });
        visit_mut::visit_block_mut(self, block);
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]`, and `any` or `all` that begin with it.
fn is_test_cfg(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    let condition = list.tokens.to_string().replace(' ', "");
    let is_test = ["test", "any(test", "all(test"].iter().any(|begin| {
        condition
            .strip_prefix(begin)
            .is_some_and(|rest| !rest.starts_with(|sign: char| sign.is_alphanumeric()))
    });
    list.path.is_ident("cfg") && is_test
}

/// Notes the line of each token, but not those of documentation.
fn code_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let behind_mark = 1 + usize::from(
            matches!(tokens.get(at + 1), Some(TokenTree::Punct(mark)) if mark.as_char() == '!'),
        );
        if matches!(&tokens[at], TokenTree::Punct(mark) if mark.as_char() == '#')
            && tokens.get(at + behind_mark).is_some_and(is_doc)
        {
            at += behind_mark + 1;
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                lines.extend([
                    group.span_open().start().line,
                    group.span_close().end().line,
                ]);
                code_lines(group.stream(), lines);
            }
            token => lines.extend(token.span().start().line..=token.span().end().line),
        }
        at += 1;
    }
}

fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}
