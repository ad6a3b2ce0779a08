//! Explores a model completely and reports violations and unreached states.

use stateright::{Checker, HasDiscoveries, Model, Path};
use std::fmt::{Debug, Write};
use std::hash::Hash;
use std::time::Instant;

/// The bounds of a model that [`holds`] and [`caught`] explore.
pub(crate) trait Explorable:
    Model<State: Step, Action: Act> + Send + Sync + 'static
{
}
impl<M: Model<State: Step, Action: Act> + Send + Sync + 'static> Explorable for M {}

/// The bounds of a state.
pub(crate) trait Step: Clone + Debug + Hash + PartialEq + Send + Sync + 'static {}
impl<T: Clone + Debug + Hash + PartialEq + Send + Sync + 'static> Step for T {}

/// The bounds of an action.
pub(crate) trait Act: Clone + Debug + PartialEq + Send + Sync + 'static {}
impl<T: Clone + Debug + PartialEq + Send + Sync + 'static> Act for T {}

/// The proofs are budgeted for two cores.
const THREADS: usize = 2;

/// Explores every state.
///
/// # Panics
///
/// If a property is violated, or if a `sometimes` property is never reached.
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

/// Explores a model with a planted fault. A property whose name starts with `by`
/// must be violated. Prints the length of a shortest trace.
pub(crate) fn caught<M: Explorable + Clone>(name: &str, model: &M, by: &str) {
    let began = Instant::now();
    let (first, states) = failures(model, None);
    let hit = |found: &Failures<M>| found.iter().find(|(name, _)| name.starts_with(by)).cloned();
    let Some(mut found) = hit(&first) else {
        for (property, path) in &first {
            println!(
                "{name} violates another property: {property}\n{}",
                trace::<M>(path)
            );
        }
        panic!("{name} was not caught by {by}");
    };
    // The checker explores states in blocks and reports the last violation of a block, so
    // its first trace need not be a shortest one.
    while let Some(shorter) = hit(&failures(model, Some(found.1.clone().into_actions().len())).0) {
        found = shorter;
    }
    println!(
        "caught {name:<40} in {:>2} steps, {states:>7} states, {:>4.1} s: {}",
        found.1.into_actions().len(),
        began.elapsed().as_secs_f32(),
        found.0,
    );
}

/// Violated properties, each with a trace.
type Failures<M> = Vec<(
    &'static str,
    Path<<M as Model>::State, <M as Model>::Action>,
)>;

/// Explores breadth first on one thread until a property is violated, by traces of fewer
/// than `below` actions. Also returns the number of states explored.
fn failures<M: Explorable + Clone>(model: &M, below: Option<usize>) -> (Failures<M>, usize) {
    let mut builder = model
        .clone()
        .checker()
        .finish_when(HasDiscoveries::AnyFailures);
    if let Some(below) = below {
        // The checker counts depth in states, starting with 1 for the first state.
        builder = builder.target_max_depth(below + 1);
    }
    let checker = builder.spawn_bfs().join();
    let failures = checker
        .model()
        .properties()
        .into_iter()
        .filter(|property| property.expectation.discovery_is_failure())
        .filter_map(|property| Some((property.name, checker.discovery(property.name)?)));
    (failures.collect(), checker.unique_state_count())
}

/// The actions of `path`, one per line. Repeated in this order from the first state, they
/// lead to the same violation.
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
