use super::*;
use a2a_lambda::task::{Owner, Subject, TenantId};

const ROLES: [CallerRole; 6] = [
    CallerRole::Member,
    CallerRole::Viewer,
    CallerRole::Developer,
    CallerRole::TechLead,
    CallerRole::Architect,
    CallerRole::Admin,
];

const VERBS: [Verb; 12] = [
    Verb::MemoryAdd,
    Verb::MemorySearch,
    Verb::MemoryDelete,
    Verb::KnowledgeQuery,
    Verb::KnowledgeShow,
    Verb::KnowledgeCheck,
    Verb::KnowledgeStore,
    Verb::KnowledgeStatus,
    Verb::GovernanceValidate,
    Verb::GovernanceDrift,
    Verb::GovernancePolicyStore,
    Verb::SessionContext,
];

/// Who may act in its own scope: for each verb a column a layer (agent, user, session,
/// project, team, org, company), and in it the first letters of all roles that may
/// (Member, Viewer, Developer, Tech lead, aRchitect, Admin), or `-`.
const EXPECTED: &str = "
MemoryAdd             MVDTRA MVDTRA MVDTRA DTRA   DTRA   TRA    TRA
MemorySearch          MVDTRA MVDTRA MVDTRA VDTRA  VDTRA  VDTRA  VDTRA
MemoryDelete          MVDTRA MVDTRA MVDTRA DTRA   DTRA   TRA    TRA
KnowledgeQuery        -      -      -      MVDTRA MVDTRA MVDTRA MVDTRA
KnowledgeShow         -      -      -      MVDTRA MVDTRA MVDTRA MVDTRA
KnowledgeCheck        -      -      -      MVDTRA MVDTRA MVDTRA MVDTRA
KnowledgeStore        -      -      -      DTRA   DTRA   TRA    TRA
KnowledgeStatus       -      -      -      TRA    TRA    TRA    TRA
GovernanceValidate    -      -      -      VDTRA  VDTRA  VDTRA  VDTRA
GovernanceDrift       -      -      -      VDTRA  VDTRA  VDTRA  VDTRA
GovernancePolicyStore -      -      -      TRA    TRA    RA     RA
SessionContext        -      -      MVDTRA -      -      -      -
";

fn letter(role: CallerRole) -> char {
    match role {
        CallerRole::Member => 'M',
        CallerRole::Viewer => 'V',
        CallerRole::Developer => 'D',
        CallerRole::TechLead => 'T',
        CallerRole::Architect => 'R',
        CallerRole::Admin => 'A',
    }
}

fn expected(verb: Verb, layer: Layer, role: CallerRole) -> bool {
    let name = format!("{verb:?}");
    let mut rows = EXPECTED.lines().map(str::split_whitespace);
    let mut row = rows
        .find_map(|mut row| (row.next() == Some(name.as_str())).then_some(row))
        .unwrap_or_else(|| panic!("no row for {name}"));
    let cell = row.nth(layer as usize).unwrap();
    cell.contains(letter(role))
}

fn caller(tenant: &str, subject: &str, scopes: &[&str]) -> Caller {
    Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        tier: "default".to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    }
}

fn access<'a>(caller: &'a Caller, context: &'a ContextId) -> Access<'a> {
    Access { caller, context }
}

fn context() -> ContextId {
    ContextId::parse("trip-1").unwrap()
}

/// Ann of `acme`, who belongs to one scope of each layer.
fn ann(role: Option<&str>) -> Caller {
    let mut scopes = vec!["project:shop", "team:pay", "org:eu"];
    scopes.extend(role);
    caller("acme", "ann", &scopes)
}

fn own_id(layer: Layer) -> &'static str {
    match layer {
        Layer::Agent | Layer::User => "ann",
        Layer::Session => "trip-1",
        Layer::Project => "shop",
        Layer::Team => "pay",
        Layer::Org => "eu",
        Layer::Company => "acme",
    }
}

/// Every role, verb and layer, with a caller of the role.
fn cases() -> Vec<(CallerRole, Caller, Verb, Layer)> {
    let mut cases = Vec::new();
    for role in ROLES {
        let scope = format!("role:{role}");
        let scope = Some(scope.as_str()).filter(|_| role != CallerRole::Member);
        for verb in VERBS {
            cases.extend(Layer::ALL.map(|layer| (role, ann(scope), verb, layer)));
        }
    }
    cases
}

#[test]
fn each_role_may_exactly_what_the_table_says() {
    let context = context();
    for (role, caller, verb, layer) in cases() {
        let access = access(&caller, &context);
        for id in [Some(own_id(layer)), None] {
            let scope = access.scope(verb, layer, id);
            let may = expected(verb, layer, role);
            assert_eq!(scope.is_ok(), may, "{role:?} {verb:?} {layer} {id:?}");
            if let Ok(scope) = scope {
                assert_eq!((scope.layer(), scope.id()), (layer, own_id(layer)));
            }
        }
    }
}

#[test]
fn no_role_may_act_in_a_foreign_scope() {
    let context = context();
    for (role, caller, verb, layer) in cases() {
        let access = access(&caller, &context);
        let mut foreign: Vec<&str> = vec!["bob", "trip-2", "evil", "", "*", "shop/../hr"];
        // The id of a scope of another layer is foreign as well.
        foreign.extend(
            Layer::ALL
                .map(own_id)
                .iter()
                .filter(|id| **id != own_id(layer)),
        );
        for id in foreign {
            let denied = access.scope(verb, layer, Some(id));
            assert!(denied.is_err(), "{role:?} {verb:?} {layer} {id}");
            if expected(verb, layer, role) {
                assert_eq!(denied, Err(Denial::Foreign));
            }
        }
    }
}

#[test]
fn a_caller_without_memberships_has_no_shared_scope() {
    let context = context();
    let caller = caller("acme", "ann", &["role:admin"]);
    let access = access(&caller, &context);
    for verb in VERBS {
        for layer in [Layer::Project, Layer::Team, Layer::Org] {
            for id in [None, Some(own_id(layer))] {
                assert!(access.scope(verb, layer, id).is_err());
            }
        }
    }
}

#[test]
fn a_malformed_scope_gives_neither_role_nor_membership() {
    let bad = [
        "role:root",
        "role:Admin",
        "role:admin ",
        "admin",
        "ROLE:admin",
        "project:",
        "project:.",
        "project:..",
        "project:.git",
        "project:a/b",
        "project:a#b",
        "project:a.",
        "project:é",
        "project",
        "Project:shop",
        " project:shop",
    ];
    let caller = caller("acme", "ann", &bad);
    let context = context();
    let access = access(&caller, &context);
    assert_eq!(role_of(&caller), CallerRole::Member);
    assert_eq!(access.scope_ids(Layer::Project).len(), 0);
    assert!(!is_scope_id(&"a".repeat(129)));
}

#[test]
fn the_highest_role_counts() {
    let caller = caller(
        "acme",
        "ann",
        &["role:viewer", "role:tech-lead", "role:developer"],
    );
    assert_eq!(role_of(&caller), CallerRole::TechLead);
}

#[test]
fn a_missing_scope_id_is_named_when_several_fit() {
    let caller = caller("acme", "ann", &["role:developer", "project:a", "project:b"]);
    let context = context();
    let access = access(&caller, &context);
    let denial = access
        .scope(Verb::MemoryAdd, Layer::Project, None)
        .unwrap_err();
    let rejection = denial.rejection::<(), (), ()>();
    let error = rejection.unwrap_err();
    assert_eq!(error.code().as_str(), "MISSING_IDENTIFIER");
    assert!(
        access
            .scope(Verb::MemoryAdd, Layer::Project, Some("b"))
            .is_ok()
    );
}

#[test]
fn the_list_of_scopes_has_each_scope_once() {
    let caller = caller(
        "acme",
        "ann",
        &["role:viewer", "project:b", "project:a", "org:eu"],
    );
    let context = context();
    let access = access(&caller, &context);
    let names = |scopes: Vec<Scope>| -> Vec<String> {
        let scopes = scopes.iter();
        scopes
            .map(|scope| format!("{}:{}", scope.layer(), scope.id()))
            .collect()
    };
    assert_eq!(
        names(access.scopes(Verb::MemorySearch, Layer::ALL)),
        [
            "agent:ann",
            "user:ann",
            "session:trip-1",
            "project:a",
            "project:b",
            "org:eu",
            "company:acme"
        ]
    );
    let shared = [Layer::Project, Layer::Company];
    assert_eq!(access.scopes(Verb::MemoryAdd, shared), []);
    assert_eq!(access.scopes(Verb::KnowledgeQuery, Layer::ALL).len(), 4);
}

#[test]
fn a_write_needs_the_right_for_what_it_replaces() {
    let context = context();
    let may = |role, policy, decided, layer| {
        let caller = ann(role);
        access(&caller, &context)
            .scope(Verb::of_write(policy, decided), layer, None)
            .is_ok()
    };
    let developer = Some("role:developer");
    assert!(may(developer, false, false, Layer::Project));
    assert!(!may(developer, false, true, Layer::Project));
    assert!(!may(developer, true, false, Layer::Project));
    let lead = Some("role:tech-lead");
    assert!(may(lead, false, true, Layer::Company));
    assert!(may(lead, true, true, Layer::Team));
    assert!(!may(lead, true, false, Layer::Org));
    assert!(may(Some("role:architect"), true, true, Layer::Company));
}

#[test]
fn a_denial_says_which_role_is_needed() {
    let caller = ann(None);
    let context = context();
    let access = access(&caller, &context);
    let denial = access.scope(Verb::MemoryAdd, Layer::Org, None).unwrap_err();
    assert_eq!(
        denial.to_string(),
        "memory_add in the layer `org` needs the role `tech-lead`, or a higher one"
    );
    let denial = access
        .scope(Verb::KnowledgeShow, Layer::User, None)
        .unwrap_err();
    assert_eq!(
        denial.to_string(),
        "knowledge_show does not exist in the layer `user`"
    );
}

#[test]
fn only_projects_teams_and_orgs_have_a_membership() {
    let (caller, context) = (ann(Some("role:viewer")), context());
    let scopes = access(&caller, &context).scopes(Verb::MemorySearch, Layer::ALL);
    let memberships = scopes.iter().filter_map(Scope::membership);
    assert_eq!(memberships.collect::<Vec<_>>(), ["shop", "pay", "eu"]);
}
