use super::*;
use a2a_lambda_rows::each_row;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

fn info() -> CardInfo {
    CardInfo {
        name: "Echo".to_owned(),
        description: "Says it again".to_owned(),
        version: "1.2.3".to_owned(),
        base_url: "https://agent.example.com".to_owned(),
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        capabilities: Capabilities {
            streaming: true,
            push_notifications: false,
            extended_agent_card: false,
        },
        skills: vec![SkillInfo {
            id: "echo".to_owned(),
            name: "Echo".to_owned(),
            description: "Says it again".to_owned(),
            tags: vec!["text".to_owned()],
            input_schema: Some(json!({"type": "object"})),
            ..SkillInfo::default()
        }],
        security: vec![
            SecurityScheme::Bearer,
            SecurityScheme::OpenIdConnect {
                url: "https://issuer.example".to_owned(),
            },
        ],
    }
}

fn value(document: &CardDocument) -> Value {
    serde_json::from_slice(&document.body).unwrap()
}

fn card(shape: CardShape) -> Value {
    value(&info().agent_card(shape).unwrap())
}

fn names(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_pure_card_has_members_of_1_0_only() {
    assert_eq!(
        card(CardShape::V1),
        json!({
            "name": "Echo",
            "description": "Says it again",
            "version": "1.2.3",
            "supportedInterfaces": [
                {"url": "https://agent.example.com", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": "https://agent.example.com", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            ],
            "capabilities": {
                "streaming": true, "pushNotifications": false, "extendedAgentCard": false,
                "extensions": [{
                    "uri": "urn:a2a-lambda:ext:skill-schemas:1",
                    "description": "JSON schemas of the data parts each skill reads and writes",
                    "params": {"skills": {"echo": {"inputSchema": {"type": "object"}}}},
                }, {
                    "uri": "urn:a2a-lambda:ext:skill-route:1",
                    "description": "the message metadata `a2a-lambda/skillId` names the skill that answers",
                }, {
                    "uri": "urn:a2a-lambda:ext:uploads:1",
                    "description": "POST /a2a-lambda/uploads gives a URL for a large file, and a part that names it",
                }, {
                    "uri": "urn:a2a-lambda:ext:contexts:1",
                    "description": "GET /a2a-lambda/contexts lists the conversations of a caller; DELETE below it clears one, and below /a2a-lambda/tasks a task",
                }, {
                    "uri": "urn:a2a-lambda:ext:idempotency:1",
                    "description": "the metadata `a2a-lambda/idempotencyKey`, or the header `Idempotency-Key`, names a send: sent again, it gets the same task or reply",
                }],
            },
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{
                "id": "echo", "name": "Echo", "description": "Says it again", "tags": ["text"],
            }],
            "securitySchemes": {
                "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
                "openid": {
                    "openIdConnectSecurityScheme": {"openIdConnectUrl": "https://issuer.example"},
                },
            },
            "securityRequirements": [
                {"schemes": {"bearer": {"list": []}}},
                {"schemes": {"openid": {"list": []}}},
            ],
        })
    );
}

#[test]
fn the_union_card_has_the_1_0_and_the_0_3_members() {
    let pure = card(CardShape::V1);
    let union = card(CardShape::Union);
    for name in names(&pure) {
        if !matches!(
            name,
            "supportedInterfaces" | "capabilities" | "securitySchemes"
        ) {
            assert_eq!(union[name], pure[name], "{name}");
        }
    }
    assert_eq!(union["url"], "https://agent.example.com");
    assert_eq!(union["preferredTransport"], "JSONRPC");
    assert_eq!(union["protocolVersion"], "0.3.0");
    assert_eq!(union["additionalInterfaces"][0]["transport"], "JSONRPC");
    assert_eq!(union["capabilities"]["stateTransitionHistory"], true);
    assert_eq!(union["security"], json!([{"bearer": []}, {"openid": []}]));
    assert_eq!(
        union["authentication"],
        json!({"schemes": ["Bearer", "OpenIdConnect"]})
    );
    assert_eq!(union.get("supportsAuthenticatedExtendedCard"), None);
    let interfaces: Vec<Value> = union["supportedInterfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|interface| json!([interface["protocolBinding"], interface["protocolVersion"]]))
        .collect();
    assert_eq!(
        json!(interfaces),
        json!([
            ["JSONRPC", "1.0"],
            ["HTTP+JSON", "1.0"],
            ["JSONRPC", "0.3"],
            ["HTTP+JSON", "0.3"]
        ])
    );
}

#[test]
fn a_scheme_of_the_union_card_is_complete_for_both_generations() {
    let union = card(CardShape::Union);
    assert_eq!(
        union["securitySchemes"]["bearer"],
        json!({"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"}})
    );
    assert_eq!(
        union["securitySchemes"]["openid"],
        json!({
            "type": "openIdConnect", "openIdConnectUrl": "https://issuer.example",
            "openIdConnectSecurityScheme": {"openIdConnectUrl": "https://issuer.example"},
        })
    );
}

#[test]
fn the_legacy_document_has_no_member_of_1_0() {
    let legacy = value(&info().legacy_agent_json().unwrap());
    assert_eq!(
        names(&legacy),
        [
            "authentication",
            "capabilities",
            "defaultInputModes",
            "defaultOutputModes",
            "description",
            "name",
            "security",
            "securitySchemes",
            "skills",
            "url",
            "version",
        ]
    );
    assert_eq!(
        legacy["capabilities"],
        json!({"streaming": true, "pushNotifications": false, "stateTransitionHistory": true})
    );
    assert_eq!(
        legacy["securitySchemes"]["bearer"],
        json!({"type": "http", "scheme": "bearer"})
    );
}

#[test]
fn an_extended_card_is_announced_to_both_generations() {
    let mut info = info();
    info.capabilities.extended_agent_card = true;
    let union = value(&info.agent_card(CardShape::Union).unwrap());
    assert_eq!(union["supportsAuthenticatedExtendedCard"], true);
    assert_eq!(union["capabilities"]["extendedAgentCard"], true);
}

#[test]
fn the_official_types_read_both_cards() {
    crate::v1::reads_card(&card(CardShape::V1));
    crate::v1::reads_card(&card(CardShape::Union));
}

#[test]
fn equal_cards_have_equal_bytes_and_another_card_another_etag() {
    let first = info().agent_card(CardShape::Union).unwrap();
    assert_eq!(first, info().agent_card(CardShape::Union).unwrap());
    assert!(first.etag.starts_with('"') && first.etag.len() == 66);
    let mut other = info();
    other.version = "1.2.4".to_owned();
    assert_ne!(other.agent_card(CardShape::Union).unwrap().etag, first.etag);
}

#[test]
fn a_large_card_has_the_url_and_the_signed_hash_of_its_schemas() {
    let url = "https://agent.example.com";
    let mut info = info();
    let small = info.agent_card(CardShape::Union).unwrap();
    assert_eq!(small.clone().with_schemas_apart(url).0, small);
    info.skills[0].input_schema = Some(json!({"description": "x".repeat(MAX_CARD)}));
    each_row([CardShape::Union, CardShape::V1], |shape| {
        let full_card = info.agent_card(shape).unwrap();
        let (card, schemas) = full_card.clone().with_schemas_apart(url);
        assert!(card.body.len() < MAX_CARD);
        let sha256 = hex::encode(Sha256::digest(&schemas.body));
        let params = json!({"url": format!("{url}/a2a-lambda/schemas"), "sha256": sha256});
        let member = "/capabilities/extensions/0/params";
        assert_eq!(card.value.pointer(member), Some(&params));
        // The document is what the card would have had.
        assert_eq!(full_card.value.pointer(member), Some(&schemas.value));
        for unsigned in Unsigned::of(&card.value, "k", None) {
            let input = unsigned.signing_input();
            let payload = URL_SAFE_NO_PAD.decode(input.split_once('.').unwrap().1);
            assert!(
                String::from_utf8(payload.unwrap())
                    .unwrap()
                    .contains(&sha256)
            );
        }
    });
    // A large card without a schema names no document.
    info.skills[0].input_schema = None;
    info.description = "x".repeat(MAX_CARD);
    let full_card = info.agent_card(CardShape::V1).unwrap();
    assert_eq!(full_card.clone().with_schemas_apart(url).0, full_card);
}

#[test]
fn a_card_with_an_empty_required_member_is_refused() {
    type Break = fn(&mut CardInfo);
    let breaks: [(&str, Break); 11] = [
        ("name", |info| info.name.clear()),
        ("description", |info| info.description = " ".to_owned()),
        ("version", |info| info.version.clear()),
        ("url", |info| info.base_url.clear()),
        ("defaultInputModes", |info| info.default_input_modes.clear()),
        ("defaultOutputModes", |info| {
            info.default_output_modes.clear()
        }),
        ("skills", |info| info.skills.clear()),
        ("skills[0].id", |info| info.skills[0].id.clear()),
        ("skills[0].name", |info| info.skills[0].name.clear()),
        ("skills[0].description", |info| {
            info.skills[0].description.clear()
        }),
        ("skills[0].tags", |info| info.skills[0].tags.clear()),
    ];
    each_row(breaks, |(member, break_it)| {
        let mut info = info();
        break_it(&mut info);
        let expected = CardError::Empty {
            member: member.to_owned(),
        };
        assert_eq!(info.agent_card(CardShape::V1), Err(expected.clone()));
        assert_eq!(info.legacy_agent_json(), Err(expected));
    });
}
