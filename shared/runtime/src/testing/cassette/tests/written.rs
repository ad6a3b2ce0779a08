//! The file of a cassette.

use super::*;

#[tokio::test]
async fn the_file_can_be_read_and_reviewed() {
    let folder = Folder::new("readable");
    let recording = folder.record(ScriptedModel::new().text("Oslo"));
    let asked = ModelRequest {
        messages: vec![ModelMessage::from_text("Norway")],
        ..request("Name the capital.")
    };
    recording.converse(asked).await.unwrap();
    let expected = r#"[
  {
    "request": {
      "system": "Name the capital.",
      "messages": [
        {
          "user": "Norway"
        }
      ],
      "tools": [],
      "toolChoice": "auto"
    },
    "reply": {
      "content": [
        {
          "text": "Oslo"
        }
      ],
      "stop": "endTurn",
      "usage": {
        "inputTokens": 10,
        "outputTokens": 5
      }
    }
  }
]
"#;
    assert_eq!(folder.text(), expected);
}

#[tokio::test]
async fn a_recording_is_in_the_file_before_the_next_call() {
    let folder = Folder::new("saved");
    // A folder that is not there yet.
    let path = folder.0.join("tests/cassettes/one.json");
    let live = Arc::new(ScriptedModel::new().text("1").text("2"));
    let recording = Cassette::record(&path, live).unwrap();
    for (at, system) in ["one", "two"].iter().enumerate() {
        recording.converse(request(system)).await.unwrap();
        assert_eq!(read(&path).unwrap().unwrap().len(), at + 1);
    }
}

#[tokio::test]
async fn a_new_recording_replaces_the_old_one() {
    let folder = Folder::new("replaces");
    for system in ["old", "new"] {
        let recording = folder.record(ScriptedModel::new().text(system));
        recording.converse(request(system)).await.unwrap();
    }
    let replay = folder.replay();
    assert_eq!(texts(replay.converse(request("new")).await), [text("new")]);
    replay.converse(request("old")).await.unwrap_err();
}

#[test]
fn a_broken_or_foreign_file_is_refused_by_name_and_kept() {
    let folder = Folder::new("foreign");
    for foreign in [
        "",
        "not JSON",
        r#"{"name": "a-package", "version": "1.0.0"}"#,
        "[] {}",
        r#"[{"request": {}}]"#,
        r#"[{"request": {}, "answer": {"poem": 1}}]"#,
    ] {
        std::fs::write(folder.path(), foreign).unwrap();
        let live = Arc::new(ScriptedModel::never());
        for refused in [
            Cassette::replay(folder.path()).unwrap_err(),
            Cassette::record(folder.path(), live).unwrap_err(),
        ] {
            let why = refused.to_string();
            assert!(matches!(refused, CassetteError::File { .. }), "{why}");
            assert!(why.contains(&name(&folder.path())), "{why}");
        }
        assert_eq!(folder.text(), foreign);
    }
}

#[test]
fn a_replay_without_a_file_says_how_to_record_it() {
    let folder = Folder::new("missing");
    let missing = Cassette::replay(folder.path()).unwrap_err().to_string();
    assert!(missing.contains(&name(&folder.path())), "{missing}");
    assert!(missing.contains("Cassette::record"), "{missing}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_fails_the_call() {
    let folder = Folder::new("unwritable");
    let recording = folder.record(ScriptedModel::new().text("lost"));
    // A folder is in the place of the file.
    std::fs::create_dir(folder.path()).unwrap();
    let error = recording.converse(request("")).await.unwrap_err();
    let cause = error.cause().unwrap_or_default();
    assert!(cause.contains(&name(&folder.path())), "{cause}");
}
