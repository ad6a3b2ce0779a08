use super::{Denial, Role, Verb, decide, least};
use crate::layer::Layer;
use a2a_lambda::auth::Caller;
use a2a_lambda::task::{Owner, Subject, TenantId};

const VERBS: [Verb; 8] = [
    Verb::AddMemory,
    Verb::SearchMemories,
    Verb::DeleteMemory,
    Verb::ReadKnowledge,
    Verb::StoreKnowledge,
    Verb::StorePolicy,
    Verb::DecideKnowledge,
    Verb::Check,
];
const ROLES: [Option<&str>; 6] = [
    None,
    Some("role:viewer"),
    Some("role:developer"),
    Some("role:tech-lead"),
    Some("role:architect"),
    Some("role:admin"),
];
/// For each verb and each layer, from agent to company, the number of the first of [`ROLES`]
/// that may do it; 9 is none.
const FIRST: [[usize; 7]; 8] = [
    [0, 0, 0, 2, 2, 3, 5],
    [0, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 3, 3, 4, 5],
    [9, 9, 9, 0, 0, 0, 0],
    [9, 9, 9, 2, 2, 3, 4],
    [9, 9, 9, 3, 3, 4, 4],
    [9, 9, 9, 3, 3, 4, 4],
    [9, 9, 9, 0, 0, 0, 0],
];

fn caller(role: Option<&str>) -> Caller {
    let scopes = [
        "project:shop",
        "team:red",
        "org:eu",
        "project:../x",
        "team:",
    ];
    let scopes = scopes.into_iter().chain(role);
    Caller {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        },
        tier: "default".to_owned(),
        scopes: scopes.map(str::to_owned).collect(),
    }
}

/// The id of the caller's scope of a layer.
const fn own(layer: Layer) -> &'static str {
    match layer {
        Layer::Agent | Layer::User => "ann",
        Layer::Session => "ctx-1",
        Layer::Project => "shop",
        Layer::Team => "red",
        Layer::Org => "eu",
        Layer::Company => "acme",
    }
}

#[test]
fn a_caller_may_do_what_the_table_says_and_nothing_else() {
    for (verb, first) in VERBS.into_iter().zip(FIRST) {
        for (layer, first) in Layer::ALL.into_iter().zip(first) {
            for (number, role) in ROLES.into_iter().enumerate() {
                let caller = caller(role);
                for scope in [None, Some(own(layer))] {
                    let permit = decide(&caller, "ctx-1", verb, layer, scope);
                    let case = format!("{verb:?} {layer:?} {role:?} {scope:?}");
                    match permit {
                        Ok(permit) => {
                            assert!(number >= first, "{case}");
                            assert_eq!((permit.layer(), permit.scope()), (layer, own(layer)));
                        }
                        Err(denial) => {
                            assert!(number < first, "{case}");
                            let needed = least(verb, layer).map_or(Denial::NoRole, Denial::Role);
                            assert_eq!(denial, needed, "{case}");
                            assert_eq!(denial == Denial::NoRole, first == 9, "{case}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn no_role_may_do_anything_in_a_scope_of_others() {
    for verb in VERBS {
        for layer in Layer::ALL {
            for role in ROLES {
                for foreign in [
                    "bob", "ctx-2", "bank", "blue", "us", "other", "../x", "", "*",
                ] {
                    let permit = decide(&caller(role), "ctx-1", verb, layer, Some(foreign));
                    assert_eq!(permit, Err(Denial::Foreign(layer)), "{foreign}");
                }
            }
        }
    }
}

#[test]
fn a_caller_with_several_projects_has_to_name_one() {
    let mut caller = caller(Some("role:admin"));
    caller.scopes.insert("project:bank".to_owned());
    let decide = |scope| decide(&caller, "ctx-1", Verb::AddMemory, Layer::Project, scope);
    assert_eq!(decide(None), Err(Denial::Unnamed(Layer::Project)));
    assert_eq!(decide(Some("bank")).unwrap().scope(), "bank");
    caller.scopes.retain(|scope| !scope.starts_with("project:"));
    let none = super::decide(&caller, "ctx-1", Verb::SearchMemories, Layer::Project, None);
    assert_eq!(none, Err(Denial::Unnamed(Layer::Project)));
}

#[test]
fn a_caller_has_the_highest_of_its_roles() {
    let mut caller = caller(Some("role:architect"));
    caller.scopes.insert("role:developer".to_owned());
    assert_eq!(Role::of(&caller), Role::Architect);
    caller.scopes.clear();
    caller.scopes.insert("role:king".to_owned());
    assert_eq!(Role::of(&caller), Role::Member);
}
