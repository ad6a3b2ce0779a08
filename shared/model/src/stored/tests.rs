use super::*;
use crate::store::ThreadStatus;
use crate::task::distinct::Values;
use crate::task::{
    Artifact, ArtifactUpdate, Base, Blob, Change, ContextId, Delivery, Generation, Message,
    Metadata, OutputCounts, Owner, Part, PartContent, PushRecord, SavedSlot, Sealed, SkillId,
    Status, StepOutcome, StepResult, Subject, TaskId, TaskState, TenantId, Timestamp, TokenUse,
    TurnRequest, Used, WriteId,
};
use a2a_lambda_rows::each_row;
use serde_json::json;

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("a#n\u{1F600}n").unwrap(),
    }
}

fn said(parts: Vec<Part>) -> Message {
    let mut message = Message::from_agent("m-1", parts);
    message.context_id = Some(ContextId::parse("c:1").unwrap());
    message.task_id = Some(TaskId::parse("t:1").unwrap());
    message.reference_task_ids = vec!["any text".to_owned()];
    message.extensions = vec!["https://x".to_owned()];
    message.metadata = meta();
    message
}

fn meta() -> Metadata {
    let mut metadata = Metadata::new();
    metadata.insert(
        "k".to_owned(),
        json!({"n": null, "f": 0.1, "s": "\u{0}\u{2028}"}),
    );
    metadata
}

/// Members that a later version could add.
fn later() -> Metadata {
    let mut later = Metadata::new();
    later.insert("later".to_owned(), json!({"of": [0.1, u64::MAX, null]}));
    later
}

fn every_part() -> Vec<Part> {
    let mut raw = Part::new(PartContent::Raw(vec![0, 255, 1].into()));
    raw.filename = Some("a.bin".to_owned());
    raw.media_type = Some("application/x".to_owned());
    raw.metadata = meta();
    vec![
        Part::text(""),
        raw,
        Part::new(PartContent::Url("https://x/y".to_owned())),
        Part::data(Value::Null),
        Part::data(json!([1.5, {"a": [true]}])),
        Part::new(PartContent::Stored(Blob {
            key: "v1/k".to_owned(),
            size: u64::MAX,
            sha256: "00".to_owned(),
            upload: None,
        })),
    ]
}

/// A record with every member in use.
fn full() -> TaskRecord {
    let at = Timestamp::from_millis(5);
    let mut record = TaskRecord::create(
        TaskId::parse("order:1").unwrap(),
        owner(),
        ContextId::made_of(9),
        WriteId::made_of(1),
        Generation::V03,
        meta(),
        at,
    )
    .next(
        every_change(at),
        WriteId::made_of(2),
        at,
        Timestamp::from_millis(i64::MAX),
    )
    .unwrap();
    record.fields_mut().lease_until = Some(Timestamp::from_millis(-1));
    record.fields_mut().last_dispatch = 7;
    record.fields_mut().dispatched_at = Some(Timestamp::from_millis(6));
    record.fields_mut().not_before = Some(Timestamp::from_millis(-3));
    record.fields_mut().secret = Some(Sealed::from_text("key"));
    record.fields_mut().fingerprint = Some("fingerprint".to_owned());
    record.fields_mut().request = Some(TurnRequest {
        tier: "gold".to_owned(),
        scopes: ["read".to_owned()].into(),
        accepted_output_modes: vec!["text/plain".to_owned()],
        trace_parent: Some("00-1-2-01".to_owned()),
        consent: Some("digest".to_owned()),
    });
    record.fields_mut().used = Used {
        hand_overs: 3,
        progress_at: Some(Timestamp::from_millis(-2)),
        deaths: 2,
        models: TokenUse {
            calls: 1,
            input: 2,
            output: 3,
            cached: 4,
        },
        is_partial: true,
    };
    record.fields_mut().replaced = record.artifacts.clone();
    record.fields_mut().base.history = 1;
    record.fields_mut().epoch = 4;
    record.fields_mut().unknown = later();
    record.fields_mut().saved.unknown = later();
    record
}

fn every_change(at: Timestamp) -> Vec<Change> {
    let slot = SavedSlot {
        version: 3,
        value: json!({"q": 1}),
    };
    let update = ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: "a-1".to_owned(),
            name: Some("report".to_owned()),
            description: Some("d".to_owned()),
            parts: every_part(),
            extensions: vec!["https://e".to_owned()],
            metadata: meta(),
        },
        append: true,
        last_chunk: true,
        metadata: meta(),
    };
    vec![
        Change::Accept {
            message: said(every_part()),
        },
        Change::Pin(SkillId::parse("echo").unwrap(), None),
        Change::Start { lease_until: at },
        Change::Artifact(update),
        Change::Update {
            message: Some(said(vec![Part::text("…")])),
            metadata: meta(),
        },
        Change::Save {
            key: "k".to_owned(),
            value: Value::Null,
            outputs: OutputCounts::new(),
            reads: Vec::new(),
            save_place: Box::default(),
            order: None,
        },
        Change::Step {
            key: "s#1".to_owned(),
            result: Box::new(StepResult {
                outcome: StepOutcome::Value(json!(1)),
                ordinal: 1,
                ..StepResult::default()
            }),
            outputs: OutputCounts::new(),
            reads: Vec::new(),
        },
        Change::AskInput {
            message: said(vec![Part::text("?")]),
            slot,
        },
    ]
}

/// A record in this state, of whose members no two are equal.
fn distinct(state: TaskState) -> TaskRecord {
    let mut record: TaskRecord = Values::first();
    let status = Status {
        state,
        ..record.status.clone()
    };
    record.fields_mut().status = status;
    record
}

/// An ordinary record before its first commit.
pub(super) fn plain() -> TaskRecord {
    TaskRecord::create(
        TaskId::made_of(1),
        owner(),
        ContextId::made_of(2),
        WriteId::made_of(3),
        Generation::V10,
        Metadata::new(),
        Timestamp::from_millis(4),
    )
}

/// A record before its first commit, of whose members no two are equal: for tests that make
/// its content themselves.
pub(super) fn submitted() -> TaskRecord {
    let empty = plain();
    let mut record = distinct(TaskState::Submitted);
    // The ids of the events of a task with a client-made id have a mark.
    record.fields_mut().id = empty.id.clone();
    record.fields_mut().status = empty.status.clone();
    record.fields_mut().version = empty.version;
    record.fields_mut().last_seq = empty.last_seq;
    record.fields_mut().metadata.clear();
    record.fields_mut().history.clear();
    record.fields_mut().artifacts.clear();
    record.fields_mut().replaced.clear();
    record.fields_mut().log.clear();
    record.fields_mut().saved.data.clear();
    record.fields_mut().layout = empty.layout.clone();
    record
}

#[test]
fn a_record_reads_back_as_it_was_written() {
    let states = TaskState::ALL.map(distinct);
    each_row(states.into_iter().chain([full()]), |record| {
        assert_eq!(decode(encode(&record)).unwrap(), record);
    });
}

#[test]
fn a_record_reads_back_from_facts_and_body() {
    let states = TaskState::ALL.map(distinct);
    each_row(states.into_iter().chain([full()]), |mut record| {
        record.fields_mut().layout = Layout::default();
        let head = pieces(&record).unwrap().head;
        let read = head_of(&head, TaskFacts::of(&record)).unwrap();
        assert_eq!(read, record);
    });
}

#[test]
fn a_record_at_its_start_or_end_reads_back_as_it_was_written() {
    let mut record = full();
    record.fields_mut().base = Base::default();
    assert_eq!(decode(encode(&record)).unwrap(), record);
    let (write, at) = (WriteId::made_of(3), Timestamp::from_millis(9));
    let ended = record.next([Change::Cancel], write, at, at).unwrap();
    assert!(encode(&ended).get("base").is_none());
    assert_eq!(decode(encode(&ended)).unwrap(), ended);
}

#[test]
fn a_thread_reads_back_as_it_was_written() {
    for status in [ThreadStatus::Active, ThreadStatus::Cleared] {
        let mut thread = ThreadRecord {
            status,
            ..Values::first()
        };
        thread.state.events.push(said(every_part()));
        assert_eq!(decode_thread(encode_thread(&thread)).unwrap(), thread);
        let state = encode_state(&thread.state).unwrap();
        assert_eq!(decode_state(&state).unwrap(), thread.state);
    }
}

#[test]
fn a_push_config_reads_back_as_it_was_written() {
    let mut values = Values::default();
    for _ in 0..2 {
        // The progress of its deliveries is stored apart.
        let push = PushRecord {
            delivery: Delivery::default(),
            ..values.make()
        };
        assert_eq!(push_of_text(&push_text(&push).unwrap()).unwrap(), push);
    }
}

#[test]
fn members_of_a_later_version_stay_in_a_record_that_is_written_again() {
    let mut record = full();
    record.fields_mut().unknown.clear();
    record.fields_mut().saved.unknown.clear();
    let mut value = encode(&record);
    value["new"] = json!({"x": 1});
    value["saved"]["new"] = json!(0.1);
    let read = decode(value).unwrap();
    let (write, at) = (WriteId::made_of(3), Timestamp::from_millis(9));
    let lease_until = Timestamp::from_millis(90);
    let resume = Change::Resume {
        began_at: Timestamp::default(),
        message: said(vec![Part::text("yes")]),
        secret: None,
        lease_until,
    };
    let next = read.next([resume], write.clone(), at, at).unwrap();
    let again = encode(&next);
    assert_eq!(again["new"], json!({"x": 1}));
    assert_eq!(again["saved"]["new"], json!(0.1));
    let ended = next.next([Change::Cancel], write, at, at).unwrap();
    assert_eq!(encode(&ended)["new"], json!({"x": 1}));
    // The terminal commit clears the saved data, with its unknown members.
    assert_eq!(encode(&ended).get("saved"), None);
}

#[test]
fn members_of_a_later_version_stay_in_a_thread_and_its_state() {
    let at = Timestamp::from_millis(5);
    let mut thread = ThreadRecord::new(owner(), ContextId::made_of(9), at, at);
    thread.unknown = later();
    thread.state.unknown = later();
    let value = encode_thread(&thread);
    assert_eq!(value["later"], later()["later"]);
    assert_eq!(value["state"]["later"], later()["later"]);
    assert_eq!(decode_thread(value).unwrap(), thread);
    let state = encode_state(&thread.state).unwrap();
    assert_eq!(decode_state(&state).unwrap(), thread.state);
}

#[test]
fn a_body_does_not_repeat_facts_and_defaults() {
    let task = plain();
    let write = task.incarnation.clone();
    let opening = [
        Change::Accept {
            message: said(vec![Part::text("go")]),
        },
        Change::Start {
            lease_until: Timestamp::from_millis(9),
        },
        Change::Update {
            message: Some(said(vec![Part::text("so far")])),
            metadata: meta(),
        },
    ];
    let at = Timestamp::from_millis(5);
    let task = task.next(opening, write, at, at).unwrap();
    let body = pieces(&task).unwrap().head;
    let body = body.json().unwrap();
    let facts = [
        task.id.as_str(),
        task.context_id.as_str(),
        "acme",
        "n\u{1F600}n",
    ];
    for fact in facts.into_iter().chain([task.incarnation.as_str()]) {
        assert!(!body.contains(fact), "{fact} in {body}");
    }
    let rows = ["attempt", "generation", "turnWrite", "writeIds"];
    each_row(rows, |default| {
        assert!(!body.contains(default), "{default} in {body}");
    });
}

proptest::proptest! {
    #[test]
    fn every_number_of_a_payload_reads_back_exactly(
        number in proptest::num::f64::NORMAL,
    ) {
        let data = |number: f64| vec![Message::from_agent("m", vec![Part::data(json!(number))])];
        let state = ThreadState { events: data(number), ..ThreadState::default() };
        let read = decode_state(&encode_state(&state).unwrap()).unwrap();
        proptest::prop_assert_eq!(read.events, data(number));
    }
}

/// The values that replace a member to break it.
fn breaks() -> [Value; 6] {
    [
        Value::Null,
        json!(-1),
        json!(1.5),
        json!("\u{0}#/ "),
        json!([]),
        json!({}),
    ]
}

/// Calls `visit` with copies of `value`, each broken in one place.
fn broken(value: &Value, visit: &mut dyn FnMut(Value)) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                let mut gone = members.clone();
                gone.remove(name);
                visit(Value::Object(gone));
                broken(inner, &mut |bad| {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), bad);
                    visit(Value::Object(changed));
                });
            }
        }
        Value::Array(items) => {
            for (place, inner) in items.iter().enumerate() {
                broken(inner, &mut |bad| {
                    let mut changed = items.clone();
                    changed[place] = bad;
                    visit(Value::Array(changed));
                });
            }
        }
        _ => {}
    }
    for bad in breaks() {
        visit(bad);
    }
}

#[test]
fn a_damaged_record_is_an_error_and_never_a_panic() {
    let mut errors = 0;
    broken(&encode(&full()), &mut |bad| {
        if let Err(error) = decode(bad) {
            let is_known = matches!(error, StoreError::Corrupt(_) | StoreError::Form(_));
            assert!(is_known, "{error}");
            errors += 1;
        }
    });
    assert!(errors > 100, "{errors}");
}

#[test]
fn a_record_of_another_form_is_no_damage_whatever_else_it_has() {
    for schema in [0, SCHEMA - 1, SCHEMA + 1] {
        let mut value = encode(&full());
        value["schema"] = json!(schema);
        for value in [value, json!({"schema": schema, "epoch": "another type"})] {
            let text = value.to_string();
            let task = decode(value).map(|_| ());
            let push = push_of_text(&text).map(|_| ());
            for read in [task, push] {
                assert!(matches!(read, Err(StoreError::Form(form)) if form == schema));
            }
        }
    }
    let cut = Encoded::Text("{".into());
    let read = head_of(&cut, TaskFacts::of(&full()));
    assert!(matches!(read, Err(StoreError::Corrupt(_))));
}

#[test]
fn a_record_nested_too_deeply_is_not_written() {
    let nested = |levels: usize| {
        let mut record = full();
        let deep = (0..levels).fold(json!("}]\\\""), |inner, _| json!([inner]));
        record.fields_mut().history = vec![said(vec![Part::data(deep)])];
        record
    };
    let fits = nested(100);
    let head = pieces(&fits).unwrap().head;
    assert_eq!(head_of(&head, TaskFacts::of(&fits)).unwrap(), fits);
    assert!(matches!(pieces(&nested(124)), Err(StoreError::TooLarge(_))));
}
