//! Which file uses which, by the paths as the compiler resolves them, and the circles of files.
//! Cargo forbids circles of packages.

use crate::source::Source;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

pub(crate) type Module = Vec<String>;

/// A name that a `use` brings into a file.
struct Import {
    path: Vec<String>,
    /// `*` for all names.
    name: String,
    is_exported: bool,
}

/// What a file declares and names.
#[derive(Default)]
struct Contents {
    items: BTreeSet<String>,
    children: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths of two names or more outside of `use`.
    paths: Vec<Vec<String>>,
    /// The first names of all paths outside of `use`.
    words: BTreeSet<String>,
}

/// The modules of a package.
struct Package(BTreeMap<Module, Contents>);

/// The files that each file of a package uses.
pub(crate) fn arrows(sources: &[&Source]) -> BTreeMap<Module, BTreeSet<Module>> {
    let contents = sources.iter().map(|source| {
        let mut contents = Contents::default();
        contents.visit_file(&source.file);
        for item in &source.file.items {
            contents.declare(item);
        }
        (source.module.clone(), contents)
    });
    Package(contents.collect()).arrows()
}

impl Contents {
    fn declare(&mut self, item: &Item) {
        let name = match item {
            Item::Const(it) => &it.ident,
            Item::Enum(it) => &it.ident,
            Item::Fn(it) => &it.sig.ident,
            Item::Static(it) => &it.ident,
            Item::Struct(it) => &it.ident,
            Item::Trait(it) => &it.ident,
            Item::Type(it) => &it.ident,
            Item::Macro(syn::ItemMacro {
                ident: Some(ident), ..
            }) => ident,
            Item::Mod(it) if it.content.is_none() => {
                self.children.insert(it.ident.to_string());
                return;
            }
            _ => return,
        };
        self.items.insert(name.to_string());
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_exported: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &with(&path.ident), is_exported),
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(tree, before, is_exported));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned().unwrap_or_default())
            }
            UseTree::Name(name) => (with(&name.ident), name.ident.to_string()),
            UseTree::Rename(rename) if rename.ident == "self" => {
                (before.to_vec(), rename.rename.to_string())
            }
            UseTree::Rename(rename) => (with(&rename.ident), rename.rename.to_string()),
            UseTree::Glob(_) => (before.to_vec(), "*".to_owned()),
        };
        self.imports.push(Import {
            path,
            name,
            is_exported,
        });
    }

    fn path(&mut self, path: Vec<String>) {
        self.words.extend(path.first().cloned());
        if path.len() > 1 {
            self.paths.push(path);
        }
    }

    /// The paths in the arguments of a macro, which are tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.path(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => colons = 0,
            }
        }
        if !path.is_empty() {
            self.path(path);
        }
    }
}

impl<'a> Visit<'a> for Contents {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let is_exported = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], is_exported);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.path(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect(),
        );
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'a Visibility) {
        // `pub(in crate::engine)` uses nothing.
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}

impl Package {
    /// The path from the root, or `None` for one of another package.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let base = module.get(..module.len().checked_sub(ups)?)?;
                Some([base, &path[ups..]].concat())
            }
            name => self
                .0
                .get(module)?
                .children
                .contains(name)
                .then(|| [module, path].concat()),
        }
    }

    /// The module that declares the item of a path, and the rest of the path behind the module.
    fn resolve(&self, path: &[String], seen: &BTreeSet<Module>) -> (Module, Vec<String>) {
        let mut length = path.len();
        while !self.0.contains_key(&path[..length]) {
            length -= 1;
        }
        let (module, rest) = path.split_at(length);
        let here = (module.to_vec(), rest.to_vec());
        let contents = &self.0[module];
        let Some(name) = rest.first() else {
            return here;
        };
        if contents.items.contains(name) || seen.contains(path) {
            return here;
        }
        let seen = &seen.iter().cloned().chain([path.to_vec()]).collect();
        for import in contents
            .imports
            .iter()
            .filter(|import| import.name == *name || import.name == "*")
        {
            let Some(target) = self.absolute(module, &import.path) else {
                continue;
            };
            let behind = if import.name == "*" { rest } else { &rest[1..] };
            let (other, behind) = self.resolve(&[&target, behind].concat(), seen);
            let is_item = behind
                .first()
                .is_none_or(|name| self.0[&other].items.contains(name));
            if import.name != "*" || is_item {
                return (other, behind);
            }
        }
        here
    }

    /// The modules that a module uses.
    fn uses(&self, module: &Module, contents: &Contents) -> BTreeSet<Module> {
        let mut uses = BTreeSet::new();
        let mut add = |path: &[String]| {
            uses.insert(self.resolve(path, &BTreeSet::new()).0);
        };
        for import in &contents.imports {
            // A name that is only handed on is no use of the file that declares it.
            if import.is_exported && !contents.words.contains(&import.name) {
                continue;
            }
            let Some(target) = self.absolute(module, &import.path) else {
                continue;
            };
            let is_module = self.0.contains_key(&target);
            let inner: Vec<&Vec<String>> = contents
                .paths
                .iter()
                .filter(|path| is_module && path[0] == import.name)
                .collect();
            for path in &inner {
                add(&[&target[..], &path[1..]].concat());
            }
            if inner.is_empty() && !(is_module && import.name == "*") {
                add(&target);
            }
        }
        for path in contents
            .paths
            .iter()
            .filter_map(|path| self.absolute(module, path))
        {
            add(&path);
        }
        uses.remove(module);
        uses
    }

    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        self.0
            .iter()
            .map(|(module, contents)| (module.clone(), self.uses(module, contents)))
            .collect()
    }
}

/// The circles of more than one file of a package, the largest first: each file reaches each.
pub(crate) fn circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = arrows
        .keys()
        .map(|module| (module, reach(arrows, module)))
        .collect();
    let mut components: Vec<Vec<Module>> = Vec::new();
    for module in arrows.keys() {
        if components
            .iter()
            .any(|component| component.contains(module))
        {
            continue;
        }
        let component: Vec<Module> = arrows
            .keys()
            .filter(|other| {
                *other == module
                    || reached[module].contains(other) && reached[other].contains(module)
            })
            .cloned()
            .collect();
        if component.len() > 1 {
            components.push(component);
        }
    }
    components.sort_by_key(|component| std::cmp::Reverse(component.len()));
    components
}

fn reach<'a>(
    arrows: &'a BTreeMap<Module, BTreeSet<Module>>,
    module: &'a Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        open.extend(arrows[module].iter().filter(|other| reached.insert(*other)));
    }
    reached
}
