//! The names of items: paths that mean the same on every machine that clones them.
//!
//! A path is refused, not repaired, so that an item has one name only. A `%` is refused as
//! well: nothing here decodes it, and no other program can then decode it to something else.
//! Two paths that differ in case only are two items, although some systems cannot check out
//! both.

#[cfg(test)]
mod tests;

use crate::access::Scope;
use crate::content::{ID_MAX, check_range};
use crate::layer::{KnowledgeLayer, Layer};
use a2a_lambda::skill::is_invisible;
use gix_object::bstr::ByteSlice as _;

/// The most bytes of a path.
pub(crate) const PATH_MAX: usize = 512;
/// The most segments of a path: a commit writes one object for each.
pub(crate) const SEGMENTS_MAX: usize = 16;
/// The most bytes of a segment, which file systems have as their limit.
const SEGMENT_MAX: usize = 255;

/// The path of an item in its layer and scope, as `adr/0001-use-dynamodb.md`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemPath(String);

/// Where an item is in the tree of a tenant: layer, scope and path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemLocation {
    layer: Layer,
    scope_id: Option<String>,
    path: ItemPath,
}

/// A path or a scope id is not valid. The text has the name of the argument and not its value,
/// which may contain control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {fault}")]
pub(crate) struct PathError {
    /// The argument: `path` or `scopeId`.
    pub(crate) field: &'static str,
    /// What is wrong with it.
    pub(crate) fault: String,
}

impl ItemPath {
    /// Checks a path.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        let field = "path";
        check(text, PATH_MAX, SEGMENTS_MAX).map_err(|fault| PathError { field, fault })?;
        Ok(Self(text.to_owned()))
    }

    /// The path.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl ItemLocation {
    /// A location in a layer. `scope_id` is the project, team or org.
    pub(crate) fn new(
        layer: Layer,
        scope_id: Option<&str>,
        path: ItemPath,
    ) -> Result<Self, PathError> {
        let is_company = layer == Layer::Company;
        let result = match scope_id {
            None if is_company => Ok(()),
            Some(scope) if !is_company => check(scope, ID_MAX, 1),
            _ => Err("is needed for all layers but `company`".to_owned()),
        };
        let field = "scopeId";
        result.map_err(|fault| PathError { field, fault })?;
        Ok(Self {
            layer,
            scope_id: scope_id.map(str::to_owned),
            path,
        })
    }

    /// The location of a file in the tree. `None` for a file that is no item.
    pub(crate) fn of_file(file: &str) -> Option<Self> {
        let (name, rest) = file.split_once('/')?;
        let mut layers = KnowledgeLayer::ALL.map(KnowledgeLayer::layer).into_iter();
        let layer = layers.find(|layer| layer.as_str() == name)?;
        let (scope_id, path) = match layer {
            Layer::Company => (None, rest),
            _ => rest
                .split_once('/')
                .map(|(scope, path)| (Some(scope), path))?,
        };
        Self::new(layer, scope_id, ItemPath::parse(path).ok()?).ok()
    }

    /// The file in the tree, as `team/payments/patterns/retry.md`.
    pub(crate) fn file(&self) -> String {
        self.segments().collect::<Vec<_>>().join("/")
    }

    /// The names from the root of the tree to the file.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.layer.as_str())
            .chain(self.scope_id.as_deref())
            .chain(self.path.0.split('/'))
    }

    /// Whether it is in a scope.
    pub(crate) fn is_in(&self, scope: &Scope) -> bool {
        (self.layer, self.scope_id()) == (scope.layer(), scope.membership())
    }

    /// The layer.
    pub(crate) const fn layer(&self) -> Layer {
        self.layer
    }

    /// The project, team or org. `None` for `company`.
    pub(crate) fn scope_id(&self) -> Option<&str> {
        self.scope_id.as_deref()
    }

    /// The path in its layer and scope.
    pub(crate) const fn path(&self) -> &ItemPath {
        &self.path
    }
}

/// Checks a text of segments, or says what is wrong with it.
fn check(text: &str, most_bytes: usize, most_segments: usize) -> Result<(), String> {
    check_range("bytes", text.len(), 1..=most_bytes)?;
    check_range("segments", text.split('/').count(), 0..=most_segments)?;
    text.split('/').try_for_each(check_segment)
}

fn check_segment(segment: &str) -> Result<(), String> {
    // The rules of git itself, with its protections for every system.
    let options = gix_validate::path::component::Options::default();
    let component = gix_validate::path::component(segment.as_bytes().as_bstr(), None, options);
    let fault = if segment.is_empty() {
        "has an empty segment, expected a relative path with single `/`"
    } else if segment.len() > SEGMENT_MAX {
        let bytes = segment.len();
        return Err(format!(
            "has a segment of {bytes} bytes, expected at most {SEGMENT_MAX}"
        ));
    } else if let Some(letter) = segment.chars().find(|letter| is_refused(*letter)) {
        return Err(format!(
            "has the character U+{:04X}, which is not allowed",
            u32::from(letter)
        ));
    } else if segment.starts_with('.') {
        // Without hidden names, `~` and invisible characters no name is `.git` for any system.
        "has a segment that starts with a dot"
    } else if segment.ends_with('.') || segment.trim() != segment {
        // Systems remove a space at the begin or the end, and a dot at the end.
        "has a segment with a space or a dot at its edge"
    } else if !unicode_normalization::is_nfc(segment) {
        // The same text has another spelling.
        "is not in Unicode normal form C"
    } else if component.is_err() {
        // Such as the name of a device on Windows.
        "has a segment that is a reserved name"
    } else {
        return Ok(());
    };
    Err(fault.to_owned())
}

/// Characters that no name has: separators and signs that a system interprets, control
/// characters, and those that cannot be seen.
fn is_refused(letter: char) -> bool {
    is_invisible(letter) || r#"\:*?"<>|%~"#.contains(letter)
}
