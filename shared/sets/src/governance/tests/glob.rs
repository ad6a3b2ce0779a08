use crate::governance::glob::regex_of;
use regex_lite::Regex;

fn matches(glob: &str, path: &str) -> bool {
    let regex = format!("(?s)^(?:{})$", regex_of(glob).unwrap());
    Regex::new(&regex).unwrap().is_match(path)
}

#[test]
fn a_glob_matches_whole_paths_by_its_signs() {
    for (glob, path, expected) in [
        ("a.rs", "a.rs", true),
        ("a.rs", "abrs", false),
        ("a.rs", "x/a.rs", false),
        ("*.rs", "a.rs", true),
        ("*.rs", "src/a.rs", false),
        ("*.rs", "a.rs.bak", false),
        ("*", "a\nb", true),
        ("src/*/x", "src/a/x", true),
        ("src/*/x", "src/a/b/x", false),
        ("?.rs", "a.rs", true),
        ("?.rs", "/.rs", false),
        ("?", "é", true),
        ("**", "a/b/c", true),
        ("**/a", "a", true),
        ("**/a", "x/y/a", true),
        ("**/a", "xa", false),
        ("src/**", "src/a/b", true),
        ("src/**", "src", false),
        ("src/**", "srcs/a", false),
        ("src/**/a.rs", "src/a.rs", true),
        ("src/**/a.rs", "src/x/y/a.rs", true),
        ("src/**/a.rs", "src/xa.rs", false),
        ("*.{rs,toml}", "a.toml", true),
        ("*.{rs,toml}", "a.txt", false),
        ("*.{rs,}", "a.", true),
        ("a,b", "a,b", true),
        ("(a|b)+$^", "(a|b)+$^", true),
        ("(a|b)", "a", false),
        ("@acme/*", "@acme/x", true),
        ("a b", "a b", true),
        ("Src/*", "src/a", false),
    ] {
        assert_eq!(matches(glob, path), expected, "{glob} {path}");
    }
}

#[test]
fn a_glob_with_another_meaning_elsewhere_is_refused() {
    for (glob, fault) in [
        ("", "has an empty segment"),
        ("/a", "has an empty segment"),
        ("a/", "has an empty segment"),
        ("a//b", "has an empty segment"),
        ("../a", "has the segment"),
        ("a/./b", "has the segment"),
        ("a**", "has `**`"),
        ("***", "has `**`"),
        ("a/**b/c", "has `**`"),
        ("{a", "has a brace"),
        ("a}", "has a brace"),
        ("{a,{b,c}}", "has a brace"),
        ("{a/b,c}", "has a brace"),
        ("[ab]", "has one of"),
        ("a]", "has one of"),
        (r"a\*", "has one of"),
        ("!a", "has one of"),
    ] {
        let error = regex_of(glob).unwrap_err();
        assert!(error.starts_with(fault), "{glob}: {error}");
    }
}

/// What a glob means, by recursion over segments and characters instead of an expression.
fn means(glob: &[&str], path: &[&str]) -> bool {
    match (glob, path) {
        ([], _) => path.is_empty(),
        (["**"], _) => !path.is_empty(),
        (["**", rest @ ..], _) => (0..=path.len()).any(|skipped| means(rest, &path[skipped..])),
        ([first, rest @ ..], [name, names @ ..]) => {
            let (first, name): (Vec<_>, Vec<_>) = (first.chars().collect(), name.chars().collect());
            segment_means(&first, &name) && means(rest, names)
        }
        (_, []) => false,
    }
}

fn segment_means(glob: &[char], name: &[char]) -> bool {
    match (glob, name) {
        ([], _) => name.is_empty(),
        (['*', rest @ ..], _) => {
            (0..=name.len()).any(|skipped| segment_means(rest, &name[skipped..]))
        }
        ([sign, rest @ ..], [letter, letters @ ..]) => {
            (*sign == '?' || sign == letter) && segment_means(rest, letters)
        }
        (_, []) => false,
    }
}

/// Every text of 1 to `most` of the letters.
fn texts(letters: &str, most: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut last = vec![String::new()];
    for _ in 0..most {
        let longer = |text: &String| {
            letters
                .chars()
                .map(|letter| format!("{text}{letter}"))
                .collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[test]
fn every_short_glob_matches_what_its_signs_mean() {
    let mut paths = texts("ab/", 5);
    paths.retain(|path| path.split('/').all(|segment| !segment.is_empty()));
    let mut cases = 0;
    for glob in texts("a*?/", 5) {
        let Ok(regex) = regex_of(&glob) else {
            continue;
        };
        let regex = Regex::new(&format!("(?s)^(?:{regex})$")).unwrap();
        let signs: Vec<_> = glob.split('/').collect();
        for path in &paths {
            let names: Vec<_> = path.split('/').collect();
            assert_eq!(regex.is_match(path), means(&signs, &names), "{glob} {path}");
            cases += 1;
        }
    }
    assert!(cases > 50_000, "{cases}");
}
