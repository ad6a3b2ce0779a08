use super::*;
use crate::{knowledge, memory};
use a2a_lambda::SkillTest;
use a2a_lambda::skill::{Agent, Content};
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::Reply;
use serde_json::{Value, json};

/// Reads groups of an identity provider, and lets only guests not write.
struct Groups;

impl Roles for Groups {
    fn check(&self, caller: &Caller, verb: Verb, _: Layer) -> Result<(), String> {
        let is_guest = caller.scopes.contains("group:guests");
        match verb {
            Verb::MemorySearch | Verb::KnowledgeQuery => Ok(()),
            _ if is_guest => Err("guests only read".to_owned()),
            _ => Ok(()),
        }
    }

    fn memberships(&self, caller: &Caller, layer: Layer) -> Vec<String> {
        let groups = caller.scopes.iter();
        let ids = groups.filter_map(|scope| scope.strip_prefix("group:team-"));
        let ids = ids.map(str::to_owned).filter(|_| layer == Layer::Team);
        // No folder and no key may be made of these.
        ids.chain(["../hr".to_owned(), String::new()]).collect()
    }
}

fn skill_test(subject: &str, groups: &[&str]) -> SkillTest {
    let agent = Agent::builder("groups")
        .roles(Groups)
        .skills(memory::set())
        .skills(knowledge::set());
    let mut skill_test = SkillTest::new(&agent.build().unwrap(), "memory_add");
    be(&mut skill_test, subject, groups);
    skill_test
}

fn be(skill_test: &mut SkillTest, subject: &str, groups: &[&str]) {
    skill_test.new_context().as_caller(Caller {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        tier: "default".to_owned(),
        scopes: groups
            .iter()
            .map(|group| format!("group:{group}"))
            .collect(),
    });
}

async fn call(skill_test: &mut SkillTest, skill: &str, input: Value) -> Reply {
    let input = Content::from_data(&input).unwrap();
    let test = skill_test.new_task().skill(skill);
    test.send(input).await.unwrap()
}

#[tokio::test]
async fn the_rule_of_an_author_decides_who_may_act_and_where() {
    let mut skill_test = skill_test("ann", &["team-pay"]);
    let memory = json!({"content": "We use tea", "layer": "team"});
    let reply = call(&mut skill_test, "memory_add", memory.clone()).await;
    assert_eq!(reply.artifact_data("memory_add").unwrap()["scopeId"], "pay");
    be(&mut skill_test, "bob", &["team-pay", "guests"]);
    let reply = call(&mut skill_test, "memory_add", memory.clone()).await;
    assert_eq!(reply.state(), Some(TaskState::Rejected));
    assert_eq!(reply.text(), "guests only read");
    let reply = call(&mut skill_test, "memory_search", json!({"query": "tea"})).await;
    assert_eq!(reply.artifact_data("memory_search").unwrap()["total"], 1);
    // Of the roles of the default rule nothing is left.
    be(&mut skill_test, "eve", &[]);
    let reply = call(&mut skill_test, "memory_add", memory).await;
    assert_eq!(reply.state(), Some(TaskState::Rejected));
}

#[tokio::test]
async fn a_rule_of_an_author_makes_no_scope_that_cannot_be_a_key() {
    let mut skill_test = skill_test("ann", &[]);
    let memory = json!({"content": "x", "layer": "team", "scopeId": "../hr"});
    let reply = call(&mut skill_test, "memory_add", memory).await;
    assert_eq!(reply.state(), Some(TaskState::Rejected));
}

#[test]
fn a_rule_is_kept_from_layers_that_a_verb_does_not_have() {
    let caller = Caller {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        },
        tier: "default".to_owned(),
        scopes: std::iter::empty::<String>().collect(),
    };
    assert_eq!(
        by_role(&caller, Verb::KnowledgeStore, Layer::User),
        Err("knowledge_store does not exist in the layer `user`".to_owned())
    );
}
