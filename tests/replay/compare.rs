//! Compares an interrupted run with the undisturbed one.

use super::log::is_within;
use super::run::{Item, Observed, TurnView};
use std::collections::{BTreeMap, BTreeSet};

/// Things by the branch of the program that made them, in order.
type ByBranch<T> = BTreeMap<String, Vec<T>>;

/// What is different, in words. `branches` tells whether order counts within branches alone.
pub(super) fn differences(expected: &Observed, observed: &Observed, branches: bool) -> Vec<String> {
    let mut found = observed.violations.clone();
    let mut kept = (expected.clone(), observed.clone());
    kept.0.forget(&observed.dropped);
    kept.1.forget(&observed.dropped);
    let (expected, observed) = (&kept.0, &kept.1);
    if expected.turns.len() != observed.turns.len() {
        let (expected, observed) = (expected.turns.len(), observed.turns.len());
        found.push(format!("expected {expected} turns, got {observed}"));
    }
    for (number, (expected, got)) in expected.turns.iter().zip(&observed.turns).enumerate() {
        let turn = turn_differences(expected, got, &observed.sealed, branches);
        found.extend(
            turn.into_iter()
                .map(|text| format!("turn {number}: {text}")),
        );
    }
    let branch = |text: &&String| {
        if branches {
            branch_of(text)
        } else {
            String::new()
        }
    };
    let sorted =
        |texts: &Vec<String>| by_branch(texts.iter().map(|text| (branch(&text), text.clone())));
    differ(&mut found, "session", &expected.session, &observed.session);
    let (thread, got) = (sorted(&expected.thread), sorted(&observed.thread));
    differ(&mut found, "thread", &thread, &got);
    effect_differences(&mut found, expected, observed);
    found
}

fn differ<T: PartialEq + std::fmt::Debug>(
    found: &mut Vec<String>,
    what: &str,
    expected: &T,
    got: &T,
) {
    if expected != got {
        found.push(format!(
            "{what}:\n  expected {expected:?}\n  got      {got:?}"
        ));
    }
}

/// The branch at the begin of a text: `branch|place sum`.
fn branch_of(text: &str) -> String {
    let branch = text.split_once('|').map(|(branch, _)| branch);
    branch.unwrap_or_default().to_owned()
}

fn by_branch<T>(items: impl Iterator<Item = (String, T)>) -> ByBranch<T> {
    let mut sorted = ByBranch::new();
    for (branch, item) in items {
        sorted.entry(branch).or_default().push(item);
    }
    sorted
}

fn turn_differences(
    expected: &TurnView,
    got: &TurnView,
    sealed: &BTreeMap<String, usize>,
    branches: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let branch = |text: &str| {
        if branches {
            branch_of(text)
        } else {
            String::new()
        }
    };
    differ(&mut found, "state", &expected.state, &got.state);
    differ(&mut found, "status", &expected.status, &got.status);
    let history =
        |view: &TurnView| by_branch(view.history.iter().map(|text| (branch(text), text.clone())));
    differ(&mut found, "history", &history(expected), &history(got));
    let artifacts = |view: &TurnView| {
        let named = view.artifacts.iter().cloned();
        by_branch(named.map(|named| {
            (
                if branches {
                    owner_of(&named.0)
                } else {
                    String::new()
                },
                named,
            )
        }))
    };
    differ(
        &mut found,
        "artifacts",
        &artifacts(expected),
        &artifacts(got),
    );
    let events = |view: &TurnView| -> Vec<(String, Item)> {
        let branch = |item: &Item| {
            if branches {
                item.branch()
            } else {
                String::new()
            }
        };
        let items = view.events.iter().cloned();
        items.map(|item| (branch(&item), item)).collect()
    };
    stream_differences(&mut found, events(expected), &events(got));
    for (text, most) in sealed {
        let times = |view: &TurnView| view.events.iter().filter(|item| item.says(text)).count();
        if times(expected) == 1 && times(got) > *most {
            found.push(format!(
                "`{text}` was stored with a step, and is said again"
            ));
        }
    }
    found
}

impl Observed {
    /// Forgets what these branches did.
    fn forget(&mut self, dropped: &BTreeSet<String>) {
        let is_kept = |branch: &str| !dropped.iter().any(|it| is_within(branch, it));
        for turn in &mut self.turns {
            turn.events.retain(|item| is_kept(&item.branch()));
            turn.history.retain(|text| is_kept(&branch_of(text)));
            turn.artifacts.retain(|(name, _)| is_kept(&owner_of(name)));
        }
        self.thread.retain(|text| is_kept(&branch_of(text)));
        self.session.retain(|key, _| is_kept(&owner_of(key)));
        self.effects.by_key.retain(|key, _| is_kept(key));
        self.effects.order.retain(|branch, _| is_kept(branch));
    }
}

/// The branch in the name of an artifact: `branch:name`.
fn owner_of(name: &str) -> String {
    let owner = name.rsplit_once(':').map(|(branch, _)| branch);
    owner.unwrap_or_default().to_owned()
}

impl Item {
    fn branch(&self) -> String {
        match self {
            Self::Restarted => String::new(),
            Self::Status { text, .. } => branch_of(text),
            Self::Artifact { name, .. } => owner_of(name),
        }
    }

    fn says(&self, said: &str) -> bool {
        match self {
            Self::Restarted => false,
            Self::Status { text, .. } => text == said,
            Self::Artifact { texts, .. } => texts.iter().any(|text| text == said),
        }
    }
}

/// Each `restarted` event takes back the end of what came before it. What is left has to be
/// what the undisturbed stream shows.
fn stream_differences(
    found: &mut Vec<String>,
    expected: Vec<(String, Item)>,
    got: &[(String, Item)],
) {
    let mut text = format!("stream:\n  expected {expected:?}\n  got      {got:?}");
    let expected = by_branch(expected.into_iter());
    // How many items of each branch may be left; several, because no one knows how many are
    // taken back.
    let mut left: BTreeSet<BTreeMap<String, usize>> = BTreeSet::from([BTreeMap::new()]);
    let segments: Vec<_> = got.split(|(_, item)| *item == Item::Restarted).collect();
    for (number, segment) in segments.iter().enumerate() {
        let is_last = number + 1 == segments.len();
        let mut next = BTreeSet::new();
        for start in left {
            let (ways, fits) = ways(start, segment, &expected);
            if fits {
                next.extend(
                    ways.into_iter()
                        .rev()
                        .take(if is_last { 1 } else { usize::MAX }),
                );
            }
        }
        left = next;
    }
    let all: BTreeMap<String, usize> = expected
        .into_iter()
        .map(|(branch, items)| (branch, items.len()))
        .collect();
    if !left.contains(&all) {
        text.push_str("\n  no way to take back what `restarted` takes back leads there");
        found.push(text);
    }
}

/// What is left after each item of a segment, and whether all of them are expected there.
fn ways(
    start: BTreeMap<String, usize>,
    segment: &[(String, Item)],
    expected: &ByBranch<Item>,
) -> (Vec<BTreeMap<String, usize>>, bool) {
    let mut ways = vec![start.clone()];
    let mut counts = start;
    for (branch, item) in segment {
        let count = counts.entry(branch.clone()).or_default();
        let there = expected.get(branch).and_then(|items| items.get(*count));
        if there != Some(item) {
            return (ways, false);
        }
        *count += 1;
        ways.push(counts.clone());
    }
    (ways, true)
}

/// An effect occurs as often as undisturbed, and may occur once more for each interruption.
fn effect_differences(found: &mut Vec<String>, expected: &Observed, observed: &Observed) {
    let interruptions = observed.begun.saturating_sub(expected.begun);
    // A step that dropped a step in it is not tried again. The undisturbed run does not begin
    // what is dropped, so it tries again.
    let has_dropped = |key: &str| observed.dropped.iter().any(|it| is_within(it, key));
    let (expected, got) = (&expected.effects, &observed.effects);
    let keys: BTreeSet<_> = expected.by_key.keys().chain(got.by_key.keys()).collect();
    for key in keys {
        match (expected.by_key.get(key), got.by_key.get(key)) {
            (Some(one), Some(other)) => {
                let most = one.runs.max(other.tries) * (1 + interruptions);
                let least = if has_dropped(key) { 1 } else { one.runs };
                if other.runs < least || other.runs > most || one.values != other.values {
                    found.push(format!(
                        "the effect `{key}`: expected {one:?}, got {other:?}"
                    ));
                }
            }
            (Some(_), None) => found.push(format!("the effect `{key}` never occurs")),
            (None, _) => found.push(format!("the effect `{key}` is unexpected")),
        }
    }
    if expected.order != got.order {
        differ(found, "order of effects", &expected.order, &got.order);
    }
}
