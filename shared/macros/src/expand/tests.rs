use super::skill;
use crate::attributes::KEYS;
use a2a_lambda_rows::each_row;

fn message(attributes: &str, item: &str) -> String {
    let parse = |text: &str| text.parse().unwrap();
    skill(parse(attributes), parse(item))
        .unwrap_err()
        .to_string()
}

fn written(attributes: &str, item: &str) -> String {
    let parse = |text: &str| text.parse().unwrap();
    skill(parse(attributes), parse(item)).unwrap().to_string()
}

const WHOLE: &str = r#"id = "x", tags = ["t"], description = "d""#;
const STRUCT: &str = "struct X;";

#[test]
fn each_mistake_in_the_attribute_has_its_own_message() {
    let rows = [
        ("", "a skill needs `id = \"…\"`"),
        (r#"id = "x""#, "a skill needs `tags = [\"…\"]`"),
        (r#"id = "x", tags = ["t"]"#, "a skill needs a description"),
        (r#"id = "x", id = "y""#, "`id` is given twice"),
        (r#"tag = ["t"]"#, "unknown key `tag`; allowed are `id`,"),
        ("id = 5", "`id` is a text: `id = \"…\"`"),
        (r#"id = """#, "`id` must not be empty"),
        (
            r#"id = "Book Table", tags = ["t"], description = "d""#,
            "the skill id `Book Table` must be `[a-z0-9][a-z0-9._-]{0,63}`",
        ),
        (
            r#"tags = "t""#,
            "`tags` is a list of texts: `tags = [\"…\"]`",
        ),
        ("tags = []", "`tags` must not be empty"),
        (r#"tags = [" "]"#, "`tags` must not be empty"),
        ("background = 1", "`background` is `true` or `false`"),
        (
            r#"effect = "trusted""#,
            "`effect` is `\"read\"` or `\"write\"`",
        ),
        (
            "background",
            "`background` needs a value: `background = true`",
        ),
    ];
    each_row(rows, |(attributes, part)| {
        let message = message(attributes, STRUCT);
        assert!(message.contains(part), "{attributes}: {message}");
    });
}

#[test]
fn documentation_of_the_attribute_names_each_argument() {
    let docs = include_str!("../lib.rs");
    let keys = KEYS.split(['`', ' ', ',']).filter(|it| !it.is_empty());
    let keys: Vec<&str> = keys.collect();
    assert_eq!(keys.len(), 15);
    each_row(keys, |key| {
        let is_named = [format!("`{key}`"), format!("`{key} = ")];
        assert!(is_named.iter().any(|name| docs.contains(name)), "{key}");
        let message = message(&format!("{key} = X"), STRUCT);
        assert!(!message.contains("unknown key"), "{message}");
    });
}

#[test]
fn each_mistake_in_the_item_has_its_own_message() {
    let rows = [
        ("enum X {}", "goes on a struct or an `async fn`"),
        ("fn x(a: String) -> R {}", "a skill is an `async fn`"),
        ("async fn x<T>(a: T) -> R {}", "no generic parameters"),
        ("async fn x(a: String) {}", "returns `AgentResult<_>`"),
        ("async fn x() -> R {}", "and last its one input"),
        (
            "async fn x(a: A, b: B, c: C) -> R {}",
            "each `State<…>`, and last its one input",
        ),
        (
            "async fn x(a: A, cx: &mut TaskContext<'_>) -> R {}",
            "a skill takes `cx: &mut TaskContext<'_>` first",
        ),
        (
            "async fn x(a: String, s: State<T>) -> R {}",
            "each `State<…>`, and last its one input",
        ),
        (
            "async fn x(cx: &TaskContext<'_>, a: A) -> R {}",
            "the context is `cx: &mut",
        ),
        (
            "async fn x(cx: TaskContext<'_>, a: A) -> R {}",
            "the context is `cx: &mut",
        ),
        (
            "async fn x(a: &str) -> R {}",
            "write `String` instead of a reference",
        ),
        (
            "async fn x(s: State, a: A) -> R {}",
            "a state is `State<T>`",
        ),
        ("async fn x(&self) -> R {}", "a skill has no `self`"),
        (
            "async fn x(a: A) -> AgentResult<OnRequestResult<String, Ask>> {}",
            "write `impl SkillHandler<Ask>`",
        ),
    ];
    each_row(rows, |(item, part)| {
        let message = message(WHOLE, item);
        assert!(message.contains(part), "{item}: {message}");
    });
}

#[test]
fn doc_comment_becomes_the_description_one_line_per_paragraph() {
    let item = "/// Says back\n/// what you said.\n///\n/// Twice.\nstruct X;";
    let code = written(r#"id = "x", tags = ["t"]"#, item);
    let description = r#"description : "Says back what you said.\nTwice.""#;
    assert!(code.contains(description), "{code}");
}

#[test]
fn a_struct_gets_metadata_and_no_handler() {
    let code = written(WHOLE, "pub struct X<T>(T);");
    assert!(code.contains("impl < T > :: a2a_lambda :: skill :: Skill for X < T >"));
    assert!(!code.contains("SkillHandler"), "{code}");
}

#[test]
fn a_function_becomes_a_skill_of_its_name_and_visibility() {
    let code = written(WHOLE, "pub(crate) async fn x(a: String) -> R { a }");
    assert!(code.contains("pub (crate) const fn x () -> x"), "{code}");
    assert!(code.contains("pub (crate) struct x { }"), "{code}");
}
