use crate::governance::glob::{GlobFault, regex_of};
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
        ("", GlobFault::EmptySegment),
        ("/a", GlobFault::EmptySegment),
        ("a/", GlobFault::EmptySegment),
        ("a//b", GlobFault::EmptySegment),
        ("../a", GlobFault::DotSegment),
        ("a/./b", GlobFault::DotSegment),
        ("a**", GlobFault::DoubleStar),
        ("***", GlobFault::DoubleStar),
        ("a/**b/c", GlobFault::DoubleStar),
        ("{a", GlobFault::Brace),
        ("a}", GlobFault::Brace),
        ("{a,{b,c}}", GlobFault::Brace),
        ("{a/b,c}", GlobFault::Brace),
        ("[ab]", GlobFault::Character('[')),
        ("a]", GlobFault::Character(']')),
        (r"a\*", GlobFault::Character('\\')),
        ("!a", GlobFault::Character('!')),
    ] {
        assert_eq!(regex_of(glob), Err(fault), "{glob}");
    }
}
