//! Tests push configs: their limits, whose they are, and what they change in a task.

use super::*;
use crate::auth::Caller;
use crate::outbound::AddressPolicy;
use crate::task::{CancelCommand, Message, Owner, PushListQuery, PushQuery, Subject};
use a2a_lambda_rows::{each_row, each_row_async};

#[tokio::test(start_paused = true)]
async fn webhook_registered_later_gets_only_later_events() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "ask", None).await;
    let before = fixture.logged(&task.id).await.len();
    fixture.create(&task.id, hook("a")).await.unwrap();
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.got(), [""; 0]);
    fixture.say(Some(&task.id), "blue", Some(hook("b"))).await;
    let image = TaskImage::of(&fixture.record(&task.id).await);
    crate::engine::relay_pushes(&*fixture.line, &[image]).await;
    assert_eq!(fixture.line.items.lock().unwrap().len(), 2);
    let after = fixture.logged(&task.id).await.split_off(before);
    for config in ["a", "b"] {
        fixture.hooks.got.lock().unwrap().clear();
        assert_eq!(fixture.deliver(&task.id, config).await, Ack::Delete);
        assert_eq!(fixture.got(), after, "{config}");
    }
    assert!(!fixture.is_open(&task.id).await);
}

#[tokio::test(start_paused = true)]
async fn push_config_raises_the_version_of_an_open_task_only() {
    let fixture = PushFixture::new();
    let done = fixture.say(None, "done", None).await;
    let before = fixture.record(&done.id).await;
    fixture.create(&done.id, hook("a")).await.unwrap();
    assert_eq!(fixture.record(&done.id).await, before);
    assert!(!fixture.is_open(&done.id).await);
    let open = fixture.say(None, "ask", None).await;
    let before = fixture.record(&open.id).await;
    fixture.create(&open.id, hook("a")).await.unwrap();
    let after = fixture.record(&open.id).await;
    assert_eq!(after.version, before.version + 1);
    assert!(after.differs_in_push_ids_only(&before));
    assert_eq!(after.notify(), None, "no event was logged");
}

#[tokio::test(start_paused = true)]
async fn removed_push_config_gets_no_event_and_keeps_no_task_open() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "ask", Some(hook("a"))).await;
    fixture.say(Some(&task.id), "blue", None).await;
    let query = PushQuery {
        task: task.id.clone(),
        id: Some(PushId::parse("a").unwrap()),
    };
    for _ in 0..2 {
        let caller = ann();
        fixture
            .engine
            .pushes
            .delete_push(&caller, &query)
            .await
            .unwrap();
    }
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.got(), [""; 0]);
    assert!(!fixture.is_open(&task.id).await);
    let gone = fixture.engine.reader.get_push(&ann(), &query).await;
    assert_eq!(gone.unwrap_err().a2a_error, A2aError::TaskNotFound);
}

#[tokio::test(start_paused = true)]
async fn only_a_public_https_url_is_registered() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "ask", None).await;
    let rows = [
        "http://hook.example/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://user@hook.example/",
        "https://2130706433/",
    ];
    each_row_async(rows, async |url| {
        let offer = PushOffer {
            url: url.to_owned(),
            ..hook("a")
        };
        let Err(A2aError::InvalidParams { field, .. }) = fixture.create(&task.id, offer).await
        else {
            panic!("{url} was accepted");
        };
        let url_field = "configuration.taskPushNotificationConfig.url";
        assert_eq!(field, url_field, "{url}");
    })
    .await;
    let mut policy = Policy::clone(&fixture.engine.reader.policy);
    policy.reach = AddressPolicy::Loopback;
    let mut engine = fixture.engine.clone();
    engine.pushes.reader.policy = Arc::new(policy);
    let local = CreatePush {
        task: task.id.clone(),
        offer: PushOffer {
            url: "http://localhost:9/hook".to_owned(),
            ..hook("a")
        },
    };
    engine.pushes.create_push(&ann(), &local).await.unwrap();
    // The worker checks the URL again: with the policy of a deployment it makes no call.
    fixture.say(Some(&task.id), "blue", None).await;
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.calls(), 0);
    assert_eq!(fixture.push(&task.id).await.delivery.attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn task_has_at_most_ten_push_configs() {
    let fixture = PushFixture::new();
    for text in ["ask", "done"] {
        let task = fixture.say(None, text, None).await;
        for index in 0..10 {
            let made = fixture.create(&task.id, hook(&format!("c{index}"))).await;
            assert!(made.is_ok(), "{index}");
        }
        assert!(
            fixture.create(&task.id, hook("c3")).await.is_ok(),
            "a config can be replaced"
        );
        let refused = fixture
            .create(&task.id, hook("eleventh"))
            .await
            .unwrap_err();
        let A2aError::InvalidParams { field, .. } = refused else {
            panic!("{refused:?}");
        };
        assert!(field.ends_with(".id"), "{field}");
        let mut seen = Vec::new();
        let mut token = None;
        loop {
            let query = PushListQuery {
                task: task.id.clone(),
                page_size: Some(4),
                page_token: token,
            };
            let caller = ann();
            let page = fixture.engine.reader.list_pushes(&caller, &query).await;
            let page = page.unwrap();
            seen.extend(page.configs.into_iter().map(|config| config.id));
            if page.next_page_token.is_empty() {
                break;
            }
            token = Some(page.next_page_token);
        }
        assert_eq!(seen.len(), 10);
        assert!(seen.is_sorted());
    }
}

#[tokio::test(start_paused = true)]
async fn continuation_and_cancel_do_not_lose_to_a_new_push_config() {
    // Another call registers a webhook after this one has read the task.
    let fixture = PushFixture::new();
    for cancel in [false, true] {
        let task = fixture.say(None, "ask", None).await;
        let stale = fixture.record(&task.id).await;
        fixture.create(&task.id, hook("a")).await.unwrap();
        let change = if cancel {
            crate::task::Change::Cancel
        } else {
            crate::task::Change::Resume {
                began_at: Timestamp::default(),
                message: Message::from_user("m-2", vec![Part::text("blue")]),
                secret: None,
                lease_until: stale.updated_at.plus(Duration::from_secs(60)),
            }
        };
        let commit = fixture.engine.turns.commits.commit_of(stale, change);
        let written = fixture.engine.turns.commits.commit(commit).await;
        let crate::engine::commit::CommitOutcome::Stored(record) = written.unwrap() else {
            panic!("the commit was lost");
        };
        assert_eq!(record.push_ids.len(), 1);
        assert_eq!(record.notify(), Some(record.last_seq));
    }
    let unused = CancelCommand {
        id: TaskId::made_of(1),
        metadata: serde_json::Map::new(),
    };
    let missing = fixture.engine.tasks.cancel(&ann(), &unused).await;
    assert_eq!(missing.unwrap_err().a2a_error, A2aError::TaskNotFound);
}

#[tokio::test(start_paused = true)]
async fn push_configs_of_another_callers_task_are_not_found() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "ask", Some(hook("a"))).await;
    let other = Caller::behind(
        &Owner {
            subject: Subject::parse("bob").unwrap(),
            ..owner()
        },
        None,
    );
    let query = PushQuery {
        task: task.id.clone(),
        id: None,
    };
    let list = PushListQuery {
        task: task.id.clone(),
        page_size: None,
        page_token: None,
    };
    let create = CreatePush {
        task: task.id.clone(),
        offer: hook("b"),
    };
    let engine = &fixture.engine;
    let rows = [
        engine.reader.get_push(&other, &query).await.map(|_| ()),
        engine.reader.list_pushes(&other, &list).await.map(|_| ()),
        engine.pushes.create_push(&other, &create).await.map(|_| ()),
        engine.pushes.delete_push(&other, &query).await,
    ];
    each_row(rows, |refused| {
        assert_eq!(refused.unwrap_err().a2a_error, A2aError::TaskNotFound);
    });
}

#[tokio::test(start_paused = true)]
async fn task_with_a_reused_id_has_no_earlier_push_configs() {
    for cleaned in [false, true] {
        let fixture = PushFixture::new();
        let id = TaskId::parse("order:1").unwrap();
        let none: Option<PushOffer> = None;
        let first = fixture.say_under(Some(&id), None, "talk", Some(hook("a")));
        assert_eq!(first.await.id, id);
        let late = fixture.item(&id, "a").await;
        // No event of the first task was delivered, and now the task has expired.
        let life = fixture.dispatcher.policy.task_ttl;
        tokio::time::advance(life).await;
        if cleaned {
            let now = fixture.clock.now();
            fixture.store.table.clean_up(now);
        }
        fixture.say_under(Some(&id), None, "talk", none).await;
        let list = PushListQuery {
            task: id.clone(),
            page_size: None,
            page_token: None,
        };
        let caller = ann();
        let shown = fixture.engine.reader.list_pushes(&caller, &list).await;
        assert_eq!(shown.unwrap().configs, []);
        // A message of the first task arrives late.
        assert_eq!(fixture.dispatcher.deliver(&late, None).await, Ack::Delete);
        assert_eq!(fixture.deliver(&id, "a").await, Ack::Delete);
        assert_eq!(fixture.got(), [""; 0], "cleaned {cleaned}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_task_accepts_at_most_100_push_config_ids() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "ask", None).await;
    let removed = |id: &str| PushQuery {
        task: task.id.clone(),
        id: Some(PushId::parse(id).unwrap()),
    };
    for number in 0..100 {
        let name = format!("c{number}");
        fixture.create(&task.id, hook(&name)).await.unwrap();
        let gone = removed(&name);
        let gone = fixture.engine.pushes.delete_push(&ann(), &gone).await;
        gone.unwrap();
    }
    let refused = fixture.create(&task.id, hook("one-more")).await;
    assert!(matches!(refused, Err(A2aError::InvalidParams { .. })));
    fixture.create(&task.id, hook("c99")).await.unwrap();
}
