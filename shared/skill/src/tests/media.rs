//! Tests which parts a skill accepts and which output a client accepts.

use crate::media::{admits, check_accepted, check_input};
use crate::{SkillMetadata, is_media_type};
use a2a_lambda_model::task::{A2aError, Part, PartContent};
use serde_json::json;

#[test]
fn a_media_type_is_a_type_and_a_subtype_or_a_range() {
    for good in [
        "text/plain",
        "image/*",
        "*/*",
        "application/vnd.api+json",
        "x/y-z_1",
    ] {
        assert!(is_media_type(good), "{good}");
    }
    for bad in [
        "",
        "text",
        "text/",
        "/plain",
        "*/json",
        "te*t/plain",
        "text/pl*",
        "**/*",
        "*/**",
        "text/plain/x",
        "text/plain; charset=utf-8",
        "text /plain",
        "téxt/plain",
    ] {
        assert!(!is_media_type(bad), "{bad}");
    }
}

fn takes(input_modes: &'static [&'static str]) -> SkillMetadata {
    SkillMetadata {
        input_modes,
        output_modes: &["application/json", "image/*"],
        ..SkillMetadata::new("skill", "d", &["t"])
    }
}

fn typed(media_type: &str) -> Part {
    Part {
        media_type: Some(media_type.to_owned()),
        ..Part::new(PartContent::Raw(Vec::new().into()))
    }
}

#[test]
fn every_part_must_be_of_a_type_the_skill_takes() {
    let skill = takes(&["text/plain", "image/*"]);
    for parts in [
        vec![Part::text("a")],
        vec![Part::text("a"), typed("IMAGE/png")],
        vec![typed("image/jpeg; quality=1")],
    ] {
        assert!(admits(&skill, &parts), "{parts:?}");
    }
    for parts in [
        vec![Part::data(json!(1))],
        vec![Part::text("a"), Part::data(json!(1))],
        vec![typed("imagery/png")],
        vec![Part::text("a"), typed("audio/mp3")],
    ] {
        assert!(!admits(&skill, &parts), "{parts:?}");
        let refused = check_input(&skill, &parts);
        let kind = matches!(refused, Err(A2aError::ContentTypeNotSupported { .. }));
        assert!(kind, "{parts:?}");
    }
    assert!(admits(&takes(&["*/*"]), &[typed("a/b"), Part::text("")]));
}

fn file(bytes: &'static [u8], name: Option<&str>) -> Part {
    Part {
        filename: name.map(str::to_owned),
        ..Part::new(PartContent::Raw(bytes.into()))
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[test]
fn a_file_without_a_type_is_what_its_bytes_or_its_name_say() {
    for (part, wanted) in [
        (file(PNG, None), Some("image/png")),
        (file(PNG, Some("notes.txt")), Some("image/png")),
        (file(b"a,b", Some("Numbers.CSV")), Some("text/csv")),
        (file(b"?", Some("thing")), None),
        (file(b"", None), None),
    ] {
        assert_eq!(part.known_media_type(), wanted, "{part:?}");
        let is_admitted = admits(&takes(&["image/*"]), &[part]);
        assert_eq!(is_admitted, wanted != Some("text/csv"));
    }
}

#[test]
fn words_beside_a_file_are_its_caption() {
    let skill = takes(&["image/*"]);
    assert!(admits(
        &skill,
        &[Part::text("what is this?"), file(PNG, None)]
    ));
    assert!(!admits(&skill, &[Part::text("what is this?")]));
    assert!(!admits(
        &skill,
        &[Part::text("and this?"), typed("audio/mp3")]
    ));
}

#[test]
fn a_client_must_be_able_to_read_something_the_skill_gives() {
    let skill = takes(&["*/*"]);
    let accepts = |modes: &[&str]| {
        let modes: Vec<_> = modes.iter().map(|mode| (*mode).to_owned()).collect();
        check_accepted(&skill, &modes)
    };
    for modes in [
        &[][..],
        &["*/*"],
        &["text/plain", "Application/JSON; v=1"],
        &["image/png"],
        &["application/*"],
        &["text"],
        &["TEXT/Plain; charset=utf-8"],
        &["audio", "file"],
        &["application/json"],
        &["text/*", "audio/mp3"],
        &["", " "],
    ] {
        assert_eq!(accepts(modes), Ok(()), "{modes:?}");
    }
    let Err(A2aError::ContentTypeNotSupported { detail }) = accepts(&["audio", "video/mp4", "x"])
    else {
        panic!("accepted");
    };
    assert_eq!(
        detail,
        "skill `skill` gives `application/json`, `image/*`, and none of them is accepted"
    );
}
