//! `sign-card`, and an agent with its signatures.

use crate::agent::{Folder, Running, ended, refusal};
use crate::calls::Call;
use a2a_lambda_rows::each_row;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const URL: (&str, &str) = ("A2A_PUBLIC_URL", "https://agent.example");
const DEV: (&str, &str) = ("A2A_AUTH", "dev");

/// Writes a P-256 private key in SEC1 form (RFC 5915 §3), without its public key.
fn key(folder: &Folder) -> String {
    let mut der = vec![0x30, 0x31, 2, 1, 1, 4, 32];
    der.extend([7; 32]);
    der.extend([0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let path = folder.path().join("card.pem");
    let block = "EC PRIVATE KEY-----";
    let body = STANDARD.encode(der);
    let (first, rest) = body.split_at(64);
    let pem = format!("-----BEGIN {block}\n{first}\n{rest}\n-----END {block}\n");
    std::fs::write(&path, pem).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn signed(folder: &Folder, arguments: &[&str], settings: &[(&str, &str)]) -> String {
    let key = key(folder);
    let arguments = [&["sign-card", "--key", &key], arguments].concat();
    let output = ended(&arguments, settings).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_signed_card_is_served_with_its_signatures() {
    for card in ["union", "v1"] {
        let folder = Folder::new();
        let form = ["--card", card];
        let whole = signed(&folder, &form, &[URL, DEV]).await;
        let words = [&form[..], &["--print", "setting"]].concat();
        let setting = signed(&folder, &words, &[URL, DEV]).await;
        let settings = [URL, ("A2A_CARD_SIGNATURES", setting.trim_end())];
        let arguments = ["--memory", "--port", "0", "--card", card];
        let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
        let url = format!("{}/.well-known/agent-card.json", agent.base());
        let served = Call::get(&url).json().await;
        let count = served["signatures"].as_array().map(Vec::len);
        assert_eq!(count, Some(setting.split_whitespace().count()), "{served}");
        // Equal to the output of `sign-card`, byte for byte.
        assert_eq!(served.to_string(), whole);
        // A served card can be signed again without a change.
        let path = folder.path().join("card.json");
        std::fs::write(&path, &whole).unwrap();
        let again = ["--in", path.to_str().unwrap()];
        assert_eq!(signed(&folder, &again, &[]).await, whole);
    }
}

#[tokio::test]
async fn a_card_that_changed_is_served_without_its_signature() {
    let folder = Folder::new();
    let setting = signed(&folder, &["--print", "setting"], &[URL, DEV]).await;
    let signatures = ("A2A_CARD_SIGNATURES", setting.trim_end());
    for (arguments, settings) in [
        (&["--card", "v1"][..], [URL, signatures]),
        (
            &[],
            [("A2A_PUBLIC_URL", "https://other.example"), signatures],
        ),
        (&["--agent", "conformance"], [URL, signatures]),
    ] {
        let arguments = [&["--memory", "--port", "0"], arguments].concat();
        let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
        let url = format!("{}/.well-known/agent-card.json", agent.base());
        let served = Call::get(&url).json().await;
        assert!(served["name"].is_string(), "{served}");
        assert_eq!(served.get("signatures"), None, "{served}");
    }
}

#[tokio::test]
async fn the_card_that_a_deployment_serves_is_signed() {
    let folder = Folder::new();
    let arguments = ["--memory", "--port", "0"];
    let agent = Running::start(&folder, &arguments, &[URL], "listening on ").await;
    // The served card and the card of the program have the same signatures, since
    // signatures are deterministic.
    let words = ["--print", "setting"];
    let own = signed(&folder, &words, &[URL, DEV]).await;
    let of_stage = [&["--url", agent.base()], &words[..]].concat();
    assert_eq!(signed(&folder, &of_stage, &[]).await, own);
    let token = folder.path().join("token");
    std::fs::write(&token, "dev:acme:ann\n").unwrap();
    let key = key(&folder);
    let extended = ["--token-file", token.to_str().unwrap()];
    let arguments = [&["sign-card", "--key", &key][..], &of_stage, &extended].concat();
    // This agent has no extended card.
    let said = refusal(&arguments, &[]).await;
    assert!(
        said.contains("/extendedAgentCard` serves no card: the status is 400"),
        "{said}"
    );
    assert!(!said.contains("acme"), "{said}");
}

#[tokio::test]
async fn sign_card_names_what_it_cannot_use() {
    let folder = Folder::new();
    let key = key(&folder);
    let said = refusal(&["sign-card", "--key", "/nowhere"], &[URL]).await;
    assert!(said.contains("`/nowhere`"), "{said}");
    let said = refusal(&["sign-card", "--key", "/dev/null"], &[URL]).await;
    assert!(said.contains("P-256"), "{said}");
    let said = refusal(&["sign-card", "--key", &key], &[]).await;
    assert!(said.contains("A2A_PUBLIC_URL"), "{said}");
    let said = refusal(&["sign-card", "--key", &key, "--in", &key], &[]).await;
    assert!(said.contains("holds no card"), "{said}");
    let help = ended(&["sign-card", "--help"], &[]).await.stdout;
    let help = String::from_utf8(help).unwrap();
    let rows = [
        "--key",
        "--out",
        "--print",
        "--in",
        "--url",
        "--token-file",
        "--kid",
        "--jku",
    ];
    each_row(rows, |flag| {
        assert!(help.contains(flag), "{help}");
    });
}

#[tokio::test]
async fn the_public_key_is_printed_as_a_key_set() {
    let folder = Folder::new();
    let out = folder.path().join("jwks.json");
    let arguments = [
        "--print",
        "jwks",
        "--kid",
        "card-1",
        "--out",
        out.to_str().unwrap(),
    ];
    assert_eq!(signed(&folder, &arguments, &[]).await, "");
    let set: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    assert_eq!(set["keys"][0]["kid"], "card-1");
    assert_eq!(set["keys"][0]["crv"], "P-256");
    assert!(set["keys"][0].get("d").is_none());
}
