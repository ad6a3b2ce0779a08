//! Tests of the lines for CloudWatch, by the rules of the embedded metric format.

use super::{call, count, counted_for, refused, turn};
use crate::engine::{Clock as _, SystemClock};
use crate::telemetry::metrics::{FunctionName, Metrics, MetricsMode, Reporter};
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// The lines that a function prints at the end of an invocation.
async fn printed(metrics: &Metrics, mode: MetricsMode) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let name = FunctionName::of(Some("shop-dev-rpc"), "rpc");
    let reporter = Reporter::new(metrics.clone(), mode, name, None, 0)
        .with_print(move |line| seen.lock().unwrap().push(line));
    reporter.end_of_invocation().await;
    lines.lock().unwrap().clone()
}

/// Checks a line by the rules of "CloudWatch embedded metric format specification".
fn checked(line: &str) -> Value {
    assert!(line.len() <= 256 * 1024);
    assert!(!line.contains('\n'));
    let root: Value = serde_json::from_str(line).unwrap();
    let now = root["_aws"]["Timestamp"].as_i64().unwrap();
    let age = SystemClock.now().as_millis() - now;
    // Not more than 14 days in the past or 2 hours in the future.
    assert!((-7_200_000..1_209_600_000).contains(&age), "{age}");
    for directive in root["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
        let mut members: Vec<_> = directive.as_object().unwrap().keys().collect();
        members.sort();
        assert_eq!(members, ["Dimensions", "Metrics", "Namespace"]);
        let namespace = directive["Namespace"].as_str().unwrap();
        assert!((1..=255).contains(&namespace.len()) && !namespace.starts_with("AWS/"));
        for set in directive["Dimensions"].as_array().unwrap() {
            let set = set.as_array().unwrap();
            assert!((1..=30).contains(&set.len()), "{set:?}");
            for name in set {
                let value = root[name.as_str().unwrap()].as_str().unwrap();
                assert!((1..=1024).contains(&value.len()));
            }
        }
        let metrics = directive["Metrics"].as_array().unwrap();
        assert!((1..=100).contains(&metrics.len()));
        for metric in metrics {
            let unit = metric["Unit"].as_str().unwrap();
            assert!(["Count", "Milliseconds"].contains(&unit), "{unit}");
            match &root[metric["Name"].as_str().unwrap()] {
                Value::Number(_) => {}
                Value::Array(values) => {
                    assert!((1..=100).contains(&values.len()));
                    assert!(values.iter().all(Value::is_number));
                }
                other => panic!("{metric} has the value {other}"),
            }
        }
    }
    // Lambda takes a line without a level for INFO.
    assert_eq!(root.get("level"), None);
    root
}

#[tokio::test]
async fn each_line_obeys_the_rules_of_the_embedded_metric_format() {
    let metrics = counted_for(MetricsMode::Emf, || {
        for ms in 0..250 {
            call("acme", "echo", ms);
        }
        turn("echo", "completed", 3);
        refused("acme", None, "RATE_LIMITED");
    });
    let lines = printed(&metrics, MetricsMode::Emf).await;
    let lines: Vec<_> = lines.iter().map(|line| checked(line)).collect();
    let sum = |name: &str| {
        lines
            .iter()
            .filter_map(|line| line[name].as_u64())
            .sum::<u64>()
    };
    assert_eq!((sum("Requests"), sum("Errors"), sum("Turns")), (251, 1, 1));
    let times = lines
        .iter()
        .filter_map(|line| line["RequestDuration"].as_array());
    assert_eq!(times.map(Vec::len).sum::<usize>(), 251);
    let units = lines
        .iter()
        .find(|line| line.get("ReadUnits").is_some())
        .unwrap();
    assert_eq!(
        (units["ReadUnits"].as_f64(), &units["function"]),
        (Some(125.0), &"rpc".into())
    );
    let namespace = &lines[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"];
    assert_eq!(namespace, "a2a-lambda/shop-dev");
}

#[tokio::test]
async fn an_invocation_prints_one_line_unless_a_dimension_has_two_values() {
    let one = || {
        call("acme", "echo", 1);
        turn("echo", "completed", 3);
    };
    for (second, lines) in [("echo", 1), ("add", 2)] {
        let metrics = counted_for(MetricsMode::Emf, || {
            one();
            turn(second, "completed", 5);
        });
        let printed = printed(&metrics, MetricsMode::Emf).await;
        assert_eq!(printed.len(), lines, "{printed:?}");
        let turns = printed.iter().map(|line| checked(line)["Turns"].as_u64());
        assert_eq!(turns.flatten().sum::<u64>(), 2, "{printed:?}");
    }
}

#[tokio::test]
async fn a_tenant_is_a_property_and_never_a_dimension() {
    let metrics = counted_for(MetricsMode::Emf, || {
        call("acme", "echo", 1);
        refused("acme", None, "RATE_LIMITED");
    });
    for line in printed(&metrics, MetricsMode::Emf).await {
        let line = checked(&line);
        assert_eq!(line["tenants"], serde_json::json!(["acme"]));
        assert!(!line["_aws"].to_string().contains("tenant"), "{line}");
    }
}

#[tokio::test]
async fn a_line_names_ten_tenants_at_most() {
    let metrics = counted_for(MetricsMode::Emf, || {
        for tenant in 0..12 {
            call(&format!("tenant-{tenant}"), "echo", 1);
            refused(&format!("guest-{tenant}"), Some("echo"), "RATE_LIMITED");
        }
    });
    let lines = printed(&metrics, MetricsMode::Emf).await;
    assert!(lines.len() > 1, "{lines:?}");
    for line in lines {
        let tenants = checked(&line)["tenants"].as_array().map_or(0, Vec::len);
        assert!((1..=10).contains(&tenants), "{line}");
    }
}

#[tokio::test]
async fn a_line_is_printed_once_and_only_if_the_setting_says_so() {
    for (mode, lines) in [
        (MetricsMode::Emf, 1),
        (MetricsMode::Off, 0),
        (MetricsMode::Table, 0),
    ] {
        let metrics = counted_for(mode, || call("acme", "echo", 1));
        assert_eq!(printed(&metrics, mode).await.len(), lines, "{mode:?}");
        assert_eq!(printed(&metrics, mode).await.len(), 0);
        count(&metrics, || call("acme", "echo", 1));
        assert_eq!(printed(&metrics, mode).await.len(), lines);
    }
}
