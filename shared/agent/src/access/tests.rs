use super::*;
use a2a_lambda::task::{Owner, Subject};

const ROLES: [(CallerRole, Option<&str>); 6] = [
    (CallerRole::Member, None),
    (CallerRole::Viewer, Some("role:viewer")),
    (CallerRole::Developer, Some("role:developer")),
    (CallerRole::TechLead, Some("role:tech-lead")),
    (CallerRole::Architect, Some("role:architect")),
    (CallerRole::Admin, Some("role:admin")),
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
    let cell = row.nth(usize::from(layer.rank())).unwrap();
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

/// Every role, verb and layer.
fn cases() -> Vec<(CallerRole, Option<&'static str>, Verb, Layer)> {
    let mut cases = Vec::new();
    for (role, scope) in ROLES {
        for verb in Verb::ALL {
            cases.extend(Layer::ALL.map(|layer| (role, scope, *verb, layer)));
        }
    }
    assert_eq!(cases.len(), 6 * 12 * 7);
    cases
}

#[test]
fn each_role_may_exactly_what_the_table_says() {
    let (tenant, context) = (TenantId::parse("acme").unwrap(), context());
    for (role, scope, verb, layer) in cases() {
        let caller = ann(scope);
        let access = Access::of(&caller, &context);
        for id in [Some(own_id(layer)), None] {
            let granted = access.check(verb, &tenant, layer, id);
            let may = expected(verb, layer, role);
            assert_eq!(granted.is_ok(), may, "{role} {verb:?} {layer} {id:?}");
            if let Ok(granted) = granted {
                assert_eq!((granted.layer(), granted.id()), (layer, own_id(layer)));
            }
        }
    }
}

#[test]
fn no_role_may_act_in_a_foreign_scope() {
    let (tenant, context) = (TenantId::parse("acme").unwrap(), context());
    for (role, scope, verb, layer) in cases() {
        let caller = ann(scope);
        let access = Access::of(&caller, &context);
        let mut foreign: Vec<&str> = vec!["bob", "trip-2", "other", "", "*", "shop/../hr"];
        // The id of a scope of another layer is foreign as well.
        foreign.extend(
            Layer::ALL
                .map(own_id)
                .iter()
                .filter(|id| **id != own_id(layer)),
        );
        for id in foreign {
            let denied = access.check(verb, &tenant, layer, Some(id));
            assert!(denied.is_err(), "{role} {verb:?} {layer} {id}");
            if expected(verb, layer, role) {
                assert_eq!(denied, Err(Denial::Foreign));
            }
        }
    }
}

#[test]
fn another_tenant_is_refused_before_every_other_rule() {
    let (other, context) = (TenantId::parse("evil").unwrap(), context());
    for (role, scope, verb, layer) in cases() {
        let caller = ann(scope);
        let access = Access::of(&caller, &context);
        for id in [Some(own_id(layer)), Some("evil"), Some("bob"), None] {
            let denied = access.check(verb, &other, layer, id);
            assert_eq!(denied, Err(Denial::Foreign), "{role} {verb:?} {layer}");
        }
    }
}

#[test]
fn a_caller_without_memberships_has_no_shared_scope() {
    let (tenant, context) = (TenantId::parse("acme").unwrap(), context());
    let caller = caller("acme", "ann", &["role:admin"]);
    let access = Access::of(&caller, &context);
    for verb in Verb::ALL {
        for layer in [Layer::Project, Layer::Team, Layer::Org] {
            for id in [None, Some(own_id(layer))] {
                assert!(access.check(*verb, &tenant, layer, id).is_err());
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
    let access = Access::of(&caller, &context);
    assert_eq!(access.role, CallerRole::Member);
    assert_eq!(access.own(Layer::Project).len(), 0);
    assert!(!is_scope_id(&"a".repeat(129)));
}

#[test]
fn the_highest_role_counts() {
    let caller = caller(
        "acme",
        "ann",
        &["role:viewer", "role:tech-lead", "role:developer"],
    );
    assert_eq!(Access::of(&caller, &context()).role, CallerRole::TechLead);
}

#[test]
fn a_missing_scope_id_is_named_when_several_fit() {
    let caller = caller("acme", "ann", &["role:developer", "project:a", "project:b"]);
    let context = context();
    let access = Access::of(&caller, &context);
    let denial = access
        .permit::<AddMemory>(Layer::Project, None)
        .unwrap_err();
    let error = denial.reason().unwrap_err();
    assert_eq!(error.code().as_str(), "MISSING_IDENTIFIER");
    assert!(
        access
            .permit::<AddMemory>(Layer::Project, Some("b"))
            .is_ok()
    );
}

#[test]
fn the_list_of_permits_has_each_scope_once() {
    let caller = caller(
        "acme",
        "ann",
        &["role:viewer", "project:b", "project:a", "org:eu"],
    );
    let context = context();
    let access = Access::of(&caller, &context);
    let names = |permits: Vec<Permit<SearchMemory>>| -> Vec<String> {
        let scopes = permits.iter().map(Permit::scope);
        scopes
            .map(|scope| format!("{}:{}", scope.layer(), scope.id()))
            .collect()
    };
    assert_eq!(
        names(access.permits(&Layer::ALL)),
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
    assert_eq!(
        access
            .permits::<AddMemory>(&[Layer::Project, Layer::Company])
            .len(),
        0
    );
    assert_eq!(access.permits::<QueryKnowledge>(&Layer::ALL).len(), 4);
}

#[test]
fn a_write_needs_the_right_for_what_it_replaces() {
    let context = context();
    let may = |role, policy, decided, layer| {
        let caller = ann(role);
        let change = KnowledgeChange { policy, decided };
        Access::of(&caller, &context)
            .write(change, layer, None)
            .is_ok()
    };
    let developer = Some("role:developer");
    assert!(may(developer, false, false, KnowledgeLayer::Project));
    assert!(!may(developer, false, true, KnowledgeLayer::Project));
    assert!(!may(developer, true, false, KnowledgeLayer::Project));
    let lead = Some("role:tech-lead");
    assert!(may(lead, false, true, KnowledgeLayer::Company));
    assert!(may(lead, true, true, KnowledgeLayer::Team));
    assert!(!may(lead, true, false, KnowledgeLayer::Org));
    assert!(may(
        Some("role:architect"),
        true,
        true,
        KnowledgeLayer::Company
    ));
}

#[test]
fn a_denial_says_which_role_is_needed() {
    let caller = ann(None);
    let context = context();
    let access = Access::of(&caller, &context);
    let denial = access.permit::<AddMemory>(Layer::Org, None).unwrap_err();
    assert_eq!(
        denial.to_string(),
        "memory_add in the layer `org` needs the role `tech-lead`, or a higher one"
    );
    let denial = access
        .permit::<ShowKnowledge>(Layer::User, None)
        .unwrap_err();
    assert_eq!(
        denial.to_string(),
        "knowledge_show does not exist in the layer `user`"
    );
}

#[test]
fn each_verb_has_one_right_or_writes_knowledge() {
    fn reads<R: ReadsKnowledge>() -> Verb {
        R::VERB
    }
    let rights = [
        AddMemory::VERB,
        SearchMemory::VERB,
        DeleteMemory::VERB,
        reads::<QueryKnowledge>(),
        reads::<ShowKnowledge>(),
        reads::<CheckKnowledge>(),
        reads::<ValidateGovernance>(),
        reads::<CheckDrift>(),
        GiveSessionContext::VERB,
    ];
    let changes = [(false, false), (false, true), (true, false), (true, true)];
    let writes = changes.map(|(policy, decided)| KnowledgeChange { policy, decided }.verb());
    let together: BTreeSet<Verb> = rights.into_iter().chain(writes).collect();
    assert_eq!(together, Verb::ALL.iter().copied().collect());
    assert_eq!(rights.iter().collect::<BTreeSet<_>>().len(), rights.len());
}

#[test]
fn only_projects_teams_and_orgs_have_a_membership() {
    let (caller, context) = (ann(Some("role:viewer")), context());
    let permits = Access::of(&caller, &context).permits::<SearchMemory>(&Layer::ALL);
    let memberships = permits
        .iter()
        .filter_map(|permit| permit.scope().membership());
    assert_eq!(memberships.collect::<Vec<_>>(), ["shop", "pay", "eu"]);
}
