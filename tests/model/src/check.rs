//! Runs a model to its end and says what was found.

use stateright::{Checker, HasDiscoveries, Model, Path};
use std::fmt::{Debug, Write};
use std::hash::Hash;
use std::time::Instant;

/// What a model needs to be explored here.
pub(crate) trait Explorable:
    Model<State: Step, Action: Act> + Send + Sync + 'static
{
}
impl<M: Model<State: Step, Action: Act> + Send + Sync + 'static> Explorable for M {}

/// What a state needs.
pub(crate) trait Step: Clone + Debug + Hash + PartialEq + Send + Sync + 'static {}
impl<T: Clone + Debug + Hash + PartialEq + Send + Sync + 'static> Step for T {}

/// What an action needs.
pub(crate) trait Act: Clone + Debug + PartialEq + Send + Sync + 'static {}
impl<T: Clone + Debug + PartialEq + Send + Sync + 'static> Act for T {}

/// Two cores is what the proofs are budgeted for.
const THREADS: usize = 2;

/// Explores every state: no property may be violated, every `sometimes` must
/// have been seen.
pub(crate) fn holds<M: Explorable>(name: &str, model: M) {
    let began = Instant::now();
    let checker = model
        .checker()
        .threads(THREADS)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let found = checker.discoveries();
    let mut violations = 0;
    let mut unseen = Vec::new();
    for property in checker.model().properties() {
        match (
            property.expectation.discovery_is_failure(),
            found.get(property.name),
        ) {
            (true, Some(path)) => {
                violations += 1;
                println!("VIOLATED {name}: {}\n{}", property.name, trace::<M>(path));
            }
            (false, None) => unseen.push(property.name),
            _ => {}
        }
    }
    println!(
        "{name:<28} {:>9} states, depth {:>3}, {:>5.1} s, violations {violations}",
        checker.unique_state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f32(),
    );
    assert_eq!(violations, 0, "{name}: the trace is above");
    assert!(unseen.is_empty(), "{name} never saw: {unseen:?}");
}

/// Explores a model with a planted fault, breadth first on one thread so that
/// the trace is a shortest one: the fault must be noticed, by a property whose
/// name starts with `by`.
pub(crate) fn caught<M: Explorable>(name: &str, model: M, by: &str) {
    let began = Instant::now();
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let failures: Vec<_> = checker
        .model()
        .properties()
        .into_iter()
        .filter(|property| property.expectation.discovery_is_failure())
        .filter_map(|property| Some((property.name, checker.discovery(property.name)?)))
        .collect();
    let hit = failures
        .iter()
        .find(|(property, _)| property.starts_with(by));
    if let Some((property, path)) = hit {
        println!(
            "caught {name:<40} in {:>2} steps, {:>7} states, {:>4.1} s: {property}",
            path.clone().into_actions().len(),
            checker.unique_state_count(),
            began.elapsed().as_secs_f32(),
        );
    }
    for (property, path) in failures.iter().filter(|_| hit.is_none()) {
        println!(
            "{name} was noticed by another promise: {property}\n{}",
            trace::<M>(path)
        );
    }
    assert!(hit.is_some(), "{name} was not caught by {by}");
}

/// The actions of `path`, one a line: done in this order from the first state
/// they lead to the violation again.
fn trace<M: Explorable>(path: &Path<M::State, M::Action>) -> String {
    let mut text = String::new();
    for (number, (state, action)) in path.clone().into_vec().into_iter().enumerate() {
        match action {
            Some(action) => drop(writeln!(text, "  {:>2}. {action:?}", number + 1)),
            None => drop(writeln!(text, "  => {state:?}")),
        }
    }
    text
}
