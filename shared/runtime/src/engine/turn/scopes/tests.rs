use super::*;
use a2a_lambda_rows::each_row;
use serde_json::json;

fn saved(steps: &[(&str, u32, Option<&str>)]) -> Saved {
    let mut saved = Saved::default();
    for (path, ordinal, hash) in steps {
        let result = StepResult {
            outcome: StepOutcome::Value(json!(path)),
            ordinal: *ordinal,
            input_hash: hash.map(str::to_owned),
            ..StepResult::default()
        };
        saved.steps.insert((*path).to_owned(), result);
    }
    saved
}

fn asked(hash: Option<&str>) -> StepInput {
    StepInput {
        row: None,
        hash: hash.map(str::to_owned),
        circumstances: None,
    }
}

fn scopes(saved: &Saved) -> Scopes {
    Scopes::new(saved, &Base::default(), Timestamp::default())
}

fn with_outputs(outputs: OutputCounts) -> Scopes {
    let base = Base {
        outputs,
        ..Base::default()
    };
    Scopes::new(&Saved::default(), &base, Timestamp::default())
}

fn begin(scopes: &Scopes, name: &str) -> AgentResult<Step> {
    scopes.begin_step(name, StepInput::default())
}

/// Begins a step, asks for its result, and ends it.
fn step(scopes: &Scopes, saved: &Saved, name: &str, hash: Option<&str>) -> Result<bool, String> {
    let place = scopes.begin_step(name, asked(hash)).unwrap();
    let result = saved.steps.get(&place.key);
    let check = scopes.check(&place, result);
    scopes.leave(place.scope);
    check.map_err(|error| error.to_string())?;
    Ok(result.is_some())
}

#[test]
fn a_step_has_the_path_of_the_steps_around_it() {
    let scopes = scopes(&Saved::default());
    let mut paths = Vec::new();
    for _ in 0..2 {
        let pay = begin(&scopes, "pay").unwrap();
        let before = scopes.enter(pay.scope);
        let charge = begin(&scopes, "charge").unwrap();
        paths.extend([pay.key.clone(), charge.key.clone()]);
        scopes.leave(charge.scope);
        scopes.enter(before);
        scopes.leave(pay.scope);
    }
    let expected = ["pay#1", "pay#1>charge#1", "pay#2", "pay#2>charge#1"];
    assert_eq!(paths, expected);
}

#[test]
fn names_with_a_separator_make_no_path() {
    let scopes = scopes(&Saved::default());
    let step = begin(&scopes, "a#1>b").unwrap();
    assert_eq!(step.key, "a#1%3Eb#1");
}

#[test]
fn a_scope_and_a_step_of_one_name_have_different_paths() {
    let scopes = scopes(&Saved::default());
    let scope = scopes.begin_scope("a").unwrap();
    let (path, ..) = scopes.leave(scope);
    assert_eq!((&*path, &*begin(&scopes, "a").unwrap().key), ("a#1", "a#2"));
}

#[test]
fn a_second_open_step_of_a_scope_is_refused_with_the_way_out() {
    let scopes = scopes(&Saved::default());
    let first = begin(&scopes, "a").unwrap();
    let error = begin(&scopes, "b").unwrap_err();
    assert!(error.cause().unwrap().contains("`cx.scope`"), "{error:?}");
    scopes.leave(first.scope);
    begin(&scopes, "b").unwrap();
}

#[test]
fn two_open_scopes_of_one_name_are_refused_with_the_way_out() {
    let scopes = scopes(&Saved::default());
    let first = scopes.begin_scope("a").unwrap();
    scopes.begin_scope("b").unwrap();
    let error = scopes.begin_scope("a").unwrap_err();
    assert!(error.cause().unwrap().contains("`cx.scope`"), "{error:?}");
    scopes.leave(first);
    scopes.begin_scope("a").unwrap();
}

#[test]
fn the_same_steps_find_their_results() {
    let saved = saved(&[("a#1", 1, None), ("b#1", 2, Some("77"))]);
    let scopes = scopes(&saved);
    assert_eq!(step(&scopes, &saved, "a", None), Ok(true));
    assert_eq!(step(&scopes, &saved, "b", Some("77")), Ok(true));
    assert_eq!(step(&scopes, &saved, "c", None), Ok(false));
    scopes.check_end("").unwrap();
}

#[test]
fn a_step_that_did_not_end_runs_again() {
    // The step `a` failed in the run before, and its skill went on.
    let saved = saved(&[("b#1", 2, None)]);
    let scopes = scopes(&saved);
    assert_eq!(step(&scopes, &saved, "a", None), Ok(false));
    assert_eq!(step(&scopes, &saved, "b", None), Ok(true));
}

#[test]
fn a_change_of_the_steps_is_noticed() {
    let stored = [("a#1", 1, Some("77")), ("a#2", 2, Some("78"))];
    let rows = [
        (
            "renamed",
            vec![("b", Some("77"))],
            "`a#1` as step 1, the skill asks for `b#1` as step 1",
        ),
        (
            "added",
            vec![("a", Some("77")), ("x", None)],
            "`a#2` as step 2, the skill asks for `x#1` as step 2",
        ),
        (
            "other input",
            vec![("a", Some("78"))],
            "`a#1` with the input hash 77, the skill asks for `a#1` with the input hash 78",
        ),
        ("without input", vec![("a", None)], "the input hash none"),
    ];
    each_row(rows, |(what, steps, error)| {
        let saved = saved(&stored);
        let scopes = scopes(&saved);
        let results = steps
            .into_iter()
            .map(|(name, hash)| step(&scopes, &saved, name, hash));
        let last = results.last().unwrap().unwrap_err();
        assert!(last.contains(error), "{what}: {last}");
    });
}

#[test]
fn reordered_steps_are_noticed() {
    let saved = saved(&[("a#1", 1, None), ("b#1", 2, None)]);
    let scopes = scopes(&saved);
    let error = step(&scopes, &saved, "b", None).unwrap_err();
    assert!(error.contains("`a#1` as step 1"), "{error}");
}

#[test]
fn a_step_that_moved_behind_a_new_one_is_noticed() {
    let saved = saved(&[("a#1", 1, None)]);
    let scopes = scopes(&saved);
    // A skipped ordinal: the step at 1 did not end in the run before.
    let other = Saved::default();
    assert!(step(&scopes, &other, "x", None).is_err());
    let error = step(&scopes, &saved, "a", None).unwrap_err();
    assert!(error.contains("`a#1` as step 2"), "{error}");
}

#[test]
fn removed_steps_are_told_at_the_end() {
    let saved = saved(&[("a#1>b#1", 1, None), ("c#1", 2, None)]);
    let scopes = scopes(&saved);
    assert_eq!(step(&scopes, &saved, "a", None), Ok(false));
    let unasked = |path: &str| scopes.check_end(path).unwrap_err().to_string();
    assert!(unasked("a#1").contains("`a#1>b#1`"));
    scopes.number("a#1", Timestamp::default());
    assert!(unasked("").contains("`c#1`"));
}

#[test]
fn each_scope_drops_the_outputs_that_it_has_said() {
    let counts = OutputCounts::from([(String::new(), 1), ("a#1".to_owned(), 2)]);
    let scopes = with_outputs(counts);
    let is_said = || scopes.next_output().is_none();
    assert!(is_said());
    let place = begin(&scopes, "a").unwrap();
    let before = scopes.enter(place.scope);
    assert_eq!([is_said(), is_said(), is_said()], [true, true, false]);
    scopes.enter(before);
    assert!(!is_said());
}

#[test]
fn a_skill_that_loads_its_value_goes_on_behind_the_outputs_before_it() {
    let scopes = with_outputs(OutputCounts::from([(String::new(), 3)]));
    scopes.continue_behind(
        "done",
        &SavePlace {
            outputs: 2,
            ..SavePlace::default()
        },
        &BTreeMap::new(),
    );
    let is_said = || scopes.next_output().is_none();
    assert_eq!([is_said(), is_said()], [true, false]);
}

/// A run in which a branch with a stored result was not begun: another branch was at its end.
fn race(is_beside_branch: bool) -> Scopes {
    let mut saved = saved(&[("lost#1>pay#1", 1, None)]);
    for result in saved.steps.values_mut() {
        result.number = Some(1);
        result.is_beside_branch = is_beside_branch;
    }
    scopes(&saved)
}

#[test]
fn a_branch_that_is_at_its_end_at_once_wins_against_one_with_a_stored_result() {
    race(true).check_end("").unwrap();
    // What ran alone was no race.
    race(false).check_end("").unwrap_err();
    // A branch that has begun has to ask for its result.
    let begun = race(true);
    begun.begin_scope("lost").unwrap();
    begun.check_end("").unwrap_err();
}

#[test]
fn what_follows_a_race_does_not_wait_for_the_branch_that_has_lost() {
    let scopes = race(true);
    assert!(scopes.has_stored());
    assert!(scopes.give());
    assert!(!scopes.has_stored());
    assert!(!race(false).give());
}

#[test]
fn a_step_knows_whether_a_branch_runs_beside_it() {
    let scopes = scopes(&Saved::default());
    let outer = scopes.begin_scope("a").unwrap();
    let turn = scopes.enter(outer);
    let step = begin(&scopes, "pay").unwrap();
    assert!(!scopes.is_beside_branch(&step.key));
    scopes.enter(turn);
    scopes.begin_scope("b").unwrap();
    assert!(scopes.is_beside_branch(&step.key));
}

#[test]
fn a_saved_value_does_not_store_the_names_of_all_others() {
    let scopes = with_outputs(OutputCounts::new());
    for number in 0..3 {
        scopes.begin_save(&format!("value {number}"));
    }
    let place = scopes.save_place(Timestamp::default());
    assert_eq!(place.counts, BTreeMap::new());
}
