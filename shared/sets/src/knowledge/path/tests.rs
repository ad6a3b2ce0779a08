use super::{ItemLocation, ItemPath, PATH_MAX, SEGMENTS_MAX};
use crate::layer::Layer;
use proptest::prelude::*;

fn fault(path: &str) -> String {
    let refused = ItemPath::parse(path).expect_err(path);
    assert!(refused.to_string().starts_with("`path` "), "{refused}");
    refused.fault
}

#[test]
fn ordinary_names_of_any_script_are_paths() {
    for path in [
        "a",
        "adr/0001-use-dynamodb.md",
        "Policies/No secrets (v1.2) & more.json",
        "wissen/gr\u{f6}\u{df}e.md",
        "知识/数据库.md",
        "a..b/c...d",
        "git/gitmodules/config",
        "@team/#1+2=3!",
        "console.md",
        "{x}/[y]/'z'",
    ] {
        assert_eq!(ItemPath::parse(path).unwrap().as_str(), path);
    }
}

#[test]
fn a_path_never_leaves_its_folder() {
    for path in [
        "..", ".", "a/../b", "../a", "a/..", "./a", "a/./b", "a/.", "...", "a/... /b",
    ] {
        assert_eq!(
            fault(path),
            "has a segment that starts with a dot",
            "{path}"
        );
    }
    for path in ["/", "/a", "a/", "a//b", "//"] {
        assert_eq!(
            fault(path),
            "has an empty segment, expected a relative path with single `/`",
            "{path}"
        );
    }
    for (path, wrong) in [
        ("a\\b", '\\'),
        ("..\\..\\b", '\\'),
        ("c:/b", ':'),
        ("%2e%2e/a", '%'),
        ("a%2fb", '%'),
        ("a\0b", '\0'),
        ("a\nb", '\n'),
        ("a\u{7f}", '\u{7f}'),
        ("a\u{85}", '\u{85}'),
        ("a\u{202e}b", '\u{202e}'),
        ("~/a", '~'),
    ] {
        let wrong = format!(
            "has the character U+{:04X}, which is not allowed",
            u32::from(wrong)
        );
        assert_eq!(fault(path), wrong, "{path:?}");
    }
    assert_eq!(
        ItemPath::parse("a\nb").unwrap_err().to_string(),
        "`path` has the character U+000A, which is not allowed"
    );
}

#[test]
fn no_segment_is_a_name_of_git_on_any_system() {
    for path in [
        ".git",
        ".GIT/config",
        "a/.Git",
        ".gitmodules",
        ".gitattributes",
        ".git.",
        ".git ",
        ".git...",
        "git~1",
        "GIT~1/hooks",
        "gi7eba~1",
        ".g\u{200c}it",
        "\u{200d}.git",
        "\u{feff}.git",
        ".git\u{206a}",
        ".git::$INDEX_ALLOCATION",
        ".git\\config",
    ] {
        fault(path);
    }
}

#[test]
fn names_that_some_systems_change_are_refused() {
    for path in ["a.", "a ", " a", "a/b./c", "a/ b", "a\u{3000}", "a\u{a0}/b"] {
        assert_eq!(
            fault(path),
            "has a segment with a space or a dot at its edge",
            "{path:?}"
        );
    }
    for path in ["con", "NUL.md", "a/lpt1", "aux.tar.gz"] {
        assert_eq!(
            fault(path),
            "has a segment that is a reserved name",
            "{path}"
        );
    }
    for path in ["cafe\u{301}.md", "\u{212b}", "a/\u{1112}\u{1161}"] {
        assert_eq!(fault(path), "is not in Unicode normal form C", "{path}");
    }
}

#[test]
fn lengths_have_limits() {
    let segment = "a".repeat(255);
    assert!(ItemPath::parse(&segment).is_ok());
    assert_eq!(
        fault(&format!("{segment}a")),
        "has a segment of 256 bytes, expected at most 255"
    );
    let longest = format!("{segment}/{segment}/a");
    assert_eq!(longest.len(), PATH_MAX + 1);
    assert_eq!(fault(&longest), "has 513 bytes, expected 1 to 512");
    let longest = format!("{segment}/{}/b", "a".repeat(254));
    assert!(ItemPath::parse(&longest).is_ok());
    assert_eq!(fault(""), "has 0 bytes, expected 1 to 512");
    let deepest = vec!["a"; SEGMENTS_MAX].join("/");
    assert!(ItemPath::parse(&deepest).is_ok());
    assert_eq!(
        fault(&format!("{deepest}/a")),
        "has 17 segments, expected at most 16"
    );
}

#[test]
fn a_place_is_a_file_below_its_layer_and_scope() {
    let path = || ItemPath::parse("adr/1.md").unwrap();
    let team = ItemLocation::new(Layer::Team, Some("payments"), path()).unwrap();
    assert_eq!(team.file(), "team/payments/adr/1.md");
    let company = ItemLocation::new(Layer::Company, None, path()).unwrap();
    assert_eq!(company.file(), "company/adr/1.md");
    assert_eq!(
        (team.layer(), team.scope_id()),
        (Layer::Team, Some("payments"))
    );
    assert_eq!(
        (company.layer(), company.scope_id()),
        (Layer::Company, None)
    );
    for place in [team, company] {
        assert_eq!(place.path().as_str(), "adr/1.md");
        assert_eq!(ItemLocation::of_file(&place.file()), Some(place));
    }
    for file in [
        "company",
        "team/payments",
        "user/ann/a.md",
        "README.md",
        "team//a",
        "Team/a/b",
        "../team/a",
    ] {
        assert_eq!(ItemLocation::of_file(file), None, "{file}");
    }
}

#[test]
fn a_scope_is_one_name_that_its_layer_needs() {
    let place = |layer: Layer, scope: Option<&str>| {
        let place = ItemLocation::new(layer, scope, ItemPath::parse("a").unwrap());
        place.map_err(|refused| refused.to_string())
    };
    for scope in [
        "a/b",
        "..",
        ".git",
        "",
        "a\u{200d}",
        "a%2f",
        &"a".repeat(129),
    ] {
        let refused = place(Layer::Org, Some(scope)).unwrap_err();
        assert!(refused.starts_with("`scopeId` "), "{refused}");
    }
    assert!(
        place(Layer::Project, None)
            .unwrap_err()
            .starts_with("`scopeId` is needed")
    );
    assert!(
        place(Layer::Company, Some("a"))
            .unwrap_err()
            .starts_with("`scopeId` is needed")
    );
}

proptest! {
    #[test]
    fn an_accepted_path_has_only_plain_segments(
        path in prop_oneof![any::<String>(), "[a.gitGIT~1/% \\\\\u{200c}\u{301}:]{1,24}"],
    ) {
        if let Ok(path) = ItemPath::parse(&path) {
            let path = path.as_str();
            prop_assert!(path.len() <= PATH_MAX && !path.contains(['\\', '%', '\0']));
            for segment in path.split('/') {
                prop_assert!(!segment.is_empty() && segment != "." && segment != "..");
                prop_assert!(!segment.to_lowercase().starts_with(".git"));
                let names = std::path::Path::new(segment).components().collect::<Vec<_>>();
                prop_assert!(matches!(names.as_slice(), [std::path::Component::Normal(_)]));
            }
            let place = ItemLocation::new(Layer::Team, Some("x"), ItemPath::parse(path).unwrap()).unwrap();
            prop_assert_eq!(ItemLocation::of_file(&place.file()), Some(place));
        }
    }
}
