//! The paths of steps, scopes, waits and saved values: `invoice#2>charge#1`.

use crate::task::{PATH_SEPARATOR, StepOutcome, StepResult, is_below};
use std::collections::BTreeMap;

/// Before the name of a wait in a path. Names of steps and scopes cannot begin with it.
pub(super) const WAIT: char = '~';
/// Before the key of a saved value in a path.
pub(super) const SAVE: char = '!';

/// The path of a result, and its number in the order of results.
pub(super) type NumberedPath = (String, u64);

/// A name as an element of a path: it must not look like two elements, a wait or a save.
pub(super) fn encode(name: &str) -> String {
    let name = name.replace('%', "%25").replace(PATH_SEPARATOR, "%3E");
    match name.strip_prefix([WAIT, SAVE]) {
        Some(rest) if name.starts_with(WAIT) => format!("%7E{rest}"),
        Some(rest) => format!("%21{rest}"),
        None => name,
    }
}

/// The saves of a scope up to the last one with this name: the name of each, and its number
/// among its name. With the path of the last one, and its number among the results.
pub(super) fn saves_until<'a>(
    last: &str,
    scope: &str,
    steps: &'a BTreeMap<String, StepResult>,
) -> (Vec<(&'a str, u32)>, Option<NumberedPath>) {
    let saves = steps.iter().filter_map(|(path, result)| {
        let is_here = result.outcome == StepOutcome::Saved && outer_path(path) == scope;
        let element = path.rsplit(PATH_SEPARATOR).next().filter(|_| is_here);
        let (name, count) = element?.rsplit_once('#')?;
        Some((name, count.parse().ok()?, result.number, path))
    });
    let saves: Vec<_> = saves.collect();
    let of_last = saves.iter().filter(|(name, ..)| *name == last);
    let end = of_last.filter_map(|(.., number, path)| Some(((*number)?, *path)));
    let end = end.max();
    let until = end.map(|(number, _)| number);
    let saves = saves
        .into_iter()
        .filter(|(_, _, number, _)| *number <= until);
    let saves = saves.map(|(name, count, ..)| (name, count)).collect();
    (saves, end.map(|(number, path)| (path.clone(), number)))
}

/// The path of the scope around a path.
pub(super) fn outer_path(path: &str) -> &str {
    path.rsplit_once(PATH_SEPARATOR)
        .map_or("", |(outer, _)| outer)
}

/// Whether a wait has this path.
pub(super) fn is_wait(path: &str) -> bool {
    let last = path.rsplit(PATH_SEPARATOR).next();
    last.is_some_and(|last| last.starts_with(WAIT))
}

/// Whether `path` is `outer`, or below it.
pub(super) fn is_within(path: &str, outer: &str) -> bool {
    path == outer || is_below(path, outer)
}
