use super::*;
use a2a_lambda::prelude::*;
use a2a_lambda::settings::{Setting, SettingsError};

/// A variable that no machine has.
const VARIABLE: &str = "SUPPLIER_URL_OF_A_TEST";

struct Supplier {
    url: String,
}

impl Supplier {
    async fn load() -> Result<Self, SettingsError> {
        let url = Setting::read(VARIABLE)?;
        Ok(Self { url })
    }
}

/// Orders an article.
#[skill(id = "order", tags = ["shop"], examples = ["order tea"])]
async fn order(supplier: State<Supplier>, article: String) -> AgentResult<String> {
    Ok(format!("{article} at {}", supplier.url))
}

/// Says when the shop is open.
#[skill(id = "hours", tags = ["shop"], examples = ["hours"])]
async fn hours(_: String) -> AgentResult<String> {
    Ok("from nine".to_owned())
}

fn shop() -> a2a_lambda::skill::AgentBuilder {
    let agent = Agent::builder("shop").state(Supplier::load);
    agent.skill(order).skill(hours)
}

/// The faults of each row.
async fn faults(name: &str, agent: &AgentDefinition) -> Vec<String> {
    let file = std::env::temp_dir().join(format!("{name}-{}.jsonl", std::process::id()));
    let rows = [
        r#"{"text": "hours", "skill": "hours", "contains": "from nine"}"#,
        r#"{"text": "order tea", "skill": "order"}"#,
        r#"{"text": "/order milk", "contains": "milk at a double"}"#,
    ];
    std::fs::write(&file, rows.join("\n")).unwrap();
    let rows = Row::read(&file, agent).unwrap();
    let options = Eval {
        file: file.clone(),
        agent: None,
        cassettes: None,
        record: false,
    };
    let build = |_: Option<&str>, _: &Settings| Ok(agent.clone());
    let result = options.run(&build, &NoVariables).await;
    std::fs::remove_file(file).unwrap();
    let mut faults = Vec::new();
    for row in &rows {
        faults.extend(outcome(row, agent, &Models::default()).await.faults);
    }
    assert_eq!(result.is_ok(), faults.is_empty());
    faults
}

struct NoVariables;

impl Source for NoVariables {
    fn get(&self, _: &str) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn only_a_row_that_needs_a_state_fails_without_its_variable() {
    let agent = shop().build().unwrap();
    let faults = faults("no-variable", &agent).await;
    assert_eq!(faults.len(), 2, "{faults:?}");
    let named = format!("setting `{VARIABLE}` is missing: set the variable");
    assert!(faults.iter().any(|it| it.contains(&named)), "{faults:?}");
}

#[tokio::test]
async fn a_row_gets_the_double_of_a_state() {
    let url = || "a double".to_owned();
    let agent = shop().double(move || Supplier { url: url() });
    let faults = faults("a-double", &agent.build().unwrap()).await;
    assert_eq!(faults, Vec::<String>::new());
}
