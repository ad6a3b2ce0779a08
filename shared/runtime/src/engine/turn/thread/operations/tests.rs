use super::*;
use serde_json::json;

fn add(many: u64) -> SessionUpdate {
    SessionUpdate(Arc::new(move |value| {
        let before = value.and_then(|value| value.as_u64()).unwrap_or(0);
        Ok(json!(before + many))
    }))
}

fn stored(value: u64) -> ThreadState {
    let mut state = ThreadState::default();
    state.session.insert("n".to_owned(), json!(value));
    state
}

fn value(state: &ThreadState) -> u64 {
    state.session["n"].as_u64().unwrap()
}

fn result(operations: Vec<ThreadOperation>) -> StepResult {
    StepResult {
        operations,
        ..StepResult::default()
    }
}

#[test]
fn an_update_is_applied_to_the_newest_state() {
    let mut operations = Operations::default();
    operations.update("".into(), "n".to_owned(), add(1));
    for before in [0, 41] {
        let mut state = stored(before);
        operations.apply(&mut state, None).unwrap();
        assert_eq!(value(&state), before + 1);
    }
}

#[test]
fn the_update_of_a_step_is_applied_once_over_its_crash() {
    let run = || {
        let mut operations = Operations::default();
        operations.set("".into(), "n".to_owned(), json!(10));
        operations
    };
    let mut first = run();
    first.update("s#1".into(), "n".to_owned(), add(1));
    let updates = first.updates_of("s#1");
    let kept = first.stored_of(&updates);
    let updates = [updates];
    let mut state = stored(3);
    first.apply(&mut state, Some(&updates)).unwrap();
    assert_eq!(value(&state), 11);
    first.note_applied(&updates, &state);
    first.leave("s#1", &"".into());
    let mut undisturbed = state.clone();
    first.apply(&mut undisturbed, None).unwrap();
    // The process dies after the commit of the step; the next run has the result alone.
    let mut second = run();
    second.replay(&"s#1".into(), &result(kept));
    second.leave("s#1", &"".into());
    second.apply(&mut state, None).unwrap();
    assert_eq!((value(&undisturbed), value(&state)), (11, 11));
}

/// The error of a step is stored with what comes next, so the skill may have gone on.
#[test]
fn a_value_saved_after_a_failed_step_is_read_after_its_late_commit() {
    let mut operations = Operations::default();
    operations.update("s#1".into(), "n".to_owned(), add(1));
    let updates = [operations.updates_of("s#1")];
    operations.leave("s#1", &"".into());
    operations.set("".into(), "n".to_owned(), json!(7));
    let mut state = stored(3);
    operations.apply(&mut state, Some(&updates)).unwrap();
    assert_eq!(value(&state), 4);
    operations.note_applied(&updates, &state);
    let view = operations.view("n").unwrap();
    assert!(matches!(view, SessionView::Known(value) if value == json!(7)));
    operations.apply(&mut state, None).unwrap();
    assert_eq!(value(&state), 7);
}

#[test]
fn the_step_of_a_branch_does_not_apply_an_update_of_the_other_branch() {
    let mut operations = Operations::default();
    operations.update("a#1>x#1".into(), "n".to_owned(), add(100));
    operations.update("b#1>y#1".into(), "n".to_owned(), add(1));
    let updates = [operations.updates_of("b#1>y#1")];
    let mut state = stored(0);
    operations.apply(&mut state, Some(&updates)).unwrap();
    assert_eq!(value(&state), 1);
    operations.note_applied(&updates, &state);
    operations.apply(&mut state, None).unwrap();
    assert_eq!(value(&state), 101);
}

#[test]
fn an_outer_step_keeps_what_the_steps_inside_it_did() {
    let mut operations = Operations::default();
    operations.set("s#1>t#1".into(), "k".to_owned(), json!("inner"));
    operations.leave("s#1>t#1", &"s#1".into());
    operations.set("s#1".into(), "k".to_owned(), json!("outer"));
    let stored = operations.stored_of(&operations.updates_of("s#1"));
    assert_eq!(stored.len(), 2);
    let mut second = Operations::default();
    second.replay(&"s#1".into(), &result(stored));
    let mut state = ThreadState::default();
    second.apply(&mut state, None).unwrap();
    assert_eq!(state.session["k"], json!("outer"));
}

#[test]
fn a_view_has_the_changes_of_the_turn_in_order() {
    let mut operations = Operations::default();
    operations.update("".into(), "n".to_owned(), add(1));
    assert!(matches!(
        operations.view("n"),
        Ok(SessionView::Stored(updates)) if updates.len() == 1
    ));
    operations.set("".into(), "n".to_owned(), json!(5));
    operations.update("".into(), "n".to_owned(), add(2));
    assert!(matches!(
        operations.view("n"),
        Ok(SessionView::Known(value)) if value == json!(7)
    ));
}

/// One run of a turn whose branches `a` and `b` update a value: `a` in a step.
struct Branches {
    operations: Operations,
    /// The stored result of the step of `a`.
    result: Option<StepResult>,
}

impl Branches {
    fn step_of_a(&mut self, state: &mut ThreadState) {
        if let Some(result) = &self.result {
            self.operations.replay(&"a#1>s#1".into(), result);
        } else {
            let step = || "a#1>s#1".into();
            self.operations.update(step(), "n".to_owned(), add(1));
            let updates = [self.operations.updates_of(&step())];
            let kept = self.operations.stored_of(&updates[0]);
            self.operations.apply(state, Some(&updates)).unwrap();
            self.operations.note_applied(&updates, state);
            self.result = Some(result(kept));
        }
        self.operations.leave("a#1>s#1", &"a#1".into());
    }

    fn scope_of_b(&mut self) {
        self.operations
            .update("b#1".into(), "n".to_owned(), add(10));
        self.operations.leave("b#1", &"".into());
    }
}

#[test]
fn an_update_of_another_branch_is_applied_once_over_a_crash() {
    for (b_is_first, b_is_first_again) in [(true, true), (true, false), (false, true)] {
        let mut state = stored(0);
        let operations = Operations::default();
        let mut first = Branches {
            operations,
            result: None,
        };
        if b_is_first {
            first.scope_of_b();
        }
        first.step_of_a(&mut state);
        // The process dies.
        let mut second = Branches {
            operations: Operations::default(),
            ..first
        };
        if b_is_first_again {
            second.scope_of_b();
        }
        second.step_of_a(&mut state);
        if !b_is_first_again {
            second.scope_of_b();
        }
        second.operations.apply(&mut state, None).unwrap();
        assert_eq!(value(&state), 11, "{b_is_first} {b_is_first_again}");
    }
}
