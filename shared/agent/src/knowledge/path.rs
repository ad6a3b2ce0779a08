//! The names of items: paths that mean the same on every machine that clones them.
//!
//! A path is refused, not repaired, so that an item has one name only. A `%` is refused as
//! well: nothing here decodes it, and no other program can then decode it to something else.
//! Two paths that differ in case only are two items, although some systems cannot check out
//! both.

#[cfg(test)]
mod tests;

use gix_object::bstr::ByteSlice as _;
use std::fmt;

/// The most bytes of a path.
pub(crate) const PATH_MAX: usize = 512;
/// The most segments of a path: a commit writes one object for each.
pub(crate) const SEGMENTS_MAX: usize = 16;
/// The most bytes of a segment, which file systems have as their limit.
const SEGMENT_MAX: usize = 255;
/// The most bytes of a scope id.
const SCOPE_MAX: usize = 128;
/// The layers that have a folder for each scope.
const SCOPED: [&str; 3] = ["project", "team", "org"];
/// The layer without scopes: a tenant is one company.
const COMPANY: &str = "company";

/// The path of an item in its layer and scope, as `adr/0001-use-dynamodb.md`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemPath(String);

/// Where an item is in the tree of a tenant: layer, scope and path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemPlace {
    layer: String,
    scope_id: Option<String>,
    path: ItemPath,
}

/// A path, a scope id or a layer is not valid. The text has the name of the argument and not
/// its value, which may contain control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {fault}")]
pub(crate) struct PathError {
    /// The argument: `path`, `scopeId` or `layer`.
    pub(crate) field: &'static str,
    /// What is wrong with it.
    pub(crate) fault: PathFault,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathFault {
    /// Too many bytes.
    #[error("has {bytes} bytes, expected 1 to {most}")]
    Length {
        /// The size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Too many segments.
    #[error("has {0} segments, expected at most {SEGMENTS_MAX}")]
    Depth(usize),
    /// A segment is empty: a `/` at the begin or the end, or two together.
    #[error("has an empty segment, expected a relative path with single `/`")]
    EmptySegment,
    /// A segment has too many bytes.
    #[error("has a segment of {0} bytes, expected at most {SEGMENT_MAX}")]
    SegmentLength(usize),
    /// A segment is `.`, `..`, `.git` or another hidden name.
    #[error("has a segment that starts with a dot")]
    Dot,
    /// A character that is not in names, or that some system interprets.
    #[error("has the character U+{:04X}, which is not allowed", u32::from(*.0))]
    Character(char),
    /// Systems remove a space at the begin or the end, and a dot at the end.
    #[error("has a segment with a space or a dot at its edge")]
    Edge,
    /// The name of a device on Windows, as `con.md`.
    #[error("has a segment that is a reserved name")]
    Reserved,
    /// Not in Unicode normal form C: the same text has another spelling.
    #[error("is not in Unicode normal form C")]
    NotNormal,
    /// A layer without a folder.
    #[error("is not `project`, `team`, `org` or `company`")]
    Layer,
    /// The layer needs a scope, or has none.
    #[error("is needed for `project`, `team` and `org`, and not allowed for `company`")]
    Scope,
}

impl ItemPath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`PathError`] for `path`.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        check(text).map_err(|fault| PathError {
            field: "path",
            fault,
        })?;
        Ok(Self(text.to_owned()))
    }

    /// The path.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ItemPlace {
    /// A place in the layer with this name. `scope_id` is the project, team or org.
    ///
    /// # Errors
    /// [`PathError`] for `layer` or `scopeId`.
    pub(crate) fn new(
        layer: &str,
        scope_id: Option<&str>,
        path: ItemPath,
    ) -> Result<Self, PathError> {
        let of_scope = |fault| PathError {
            field: "scopeId",
            fault,
        };
        match (layer, scope_id) {
            (COMPANY, None) => {}
            (layer, Some(scope)) if SCOPED.contains(&layer) => {
                check_scope(scope).map_err(of_scope)?;
            }
            (layer, _) if layer == COMPANY || SCOPED.contains(&layer) => {
                return Err(of_scope(PathFault::Scope));
            }
            _ => {
                return Err(PathError {
                    field: "layer",
                    fault: PathFault::Layer,
                });
            }
        }
        Ok(Self {
            layer: layer.to_owned(),
            scope_id: scope_id.map(str::to_owned),
            path,
        })
    }

    /// The place of a file in the tree. `None` for a file that is no item.
    pub(crate) fn of_file(file: &str) -> Option<Self> {
        let (layer, rest) = file.split_once('/')?;
        let (scope_id, path) = if layer == COMPANY {
            (None, rest)
        } else {
            let (scope, path) = rest.split_once('/')?;
            (Some(scope), path)
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

    /// The name of the layer.
    pub(crate) fn layer(&self) -> &str {
        &self.layer
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

fn check(path: &str) -> Result<(), PathFault> {
    let (bytes, most) = (path.len(), PATH_MAX);
    if path.is_empty() || bytes > most {
        return Err(PathFault::Length { bytes, most });
    }
    let depth = path.split('/').count();
    if depth > SEGMENTS_MAX {
        return Err(PathFault::Depth(depth));
    }
    path.split('/').try_for_each(check_segment)
}

fn check_scope(scope: &str) -> Result<(), PathFault> {
    let (bytes, most) = (scope.len(), SCOPE_MAX);
    if scope.is_empty() || bytes > most {
        return Err(PathFault::Length { bytes, most });
    }
    if scope.contains('/') {
        return Err(PathFault::Character('/'));
    }
    check_segment(scope)
}

fn check_segment(segment: &str) -> Result<(), PathFault> {
    if segment.is_empty() {
        return Err(PathFault::EmptySegment);
    }
    if segment.len() > SEGMENT_MAX {
        return Err(PathFault::SegmentLength(segment.len()));
    }
    if let Some(wrong) = segment.chars().find(|letter| is_refused(*letter)) {
        return Err(PathFault::Character(wrong));
    }
    // Without hidden names, `~` and invisible characters no name is `.git` for any system.
    if segment.starts_with('.') {
        return Err(PathFault::Dot);
    }
    if segment.ends_with('.') || segment.trim() != segment {
        return Err(PathFault::Edge);
    }
    if !unicode_normalization::is_nfc(segment) {
        return Err(PathFault::NotNormal);
    }
    // The rules of git itself, with its protections for every system.
    let options = gix_validate::path::component::Options::default();
    gix_validate::path::component(segment.as_bytes().as_bstr(), None, options)
        .map_err(|_| PathFault::Reserved)?;
    Ok(())
}

/// Characters that no name has: separators and signs that a system interprets, control
/// characters, and those that cannot be seen.
fn is_refused(letter: char) -> bool {
    letter.is_control()
        || r#"\:*?"<>|%~"#.contains(letter)
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}'
        )
}
