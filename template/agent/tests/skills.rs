//! Tests of the skills, on the real engine without a server and without AWS.

use a2a_lambda::SkillTest;
use a2a_lambda::testing::{SkillTestError, check_agent};
use agent::{Menu, agent};

#[test]
fn the_agent_can_be_published() {
    assert_eq!(check_agent(&agent().expect("an agent")), []);
}

#[tokio::test]
async fn a_dish_has_its_price() -> Result<(), SkillTestError> {
    let mut client = SkillTest::new(&agent().expect("an agent"), "price");
    client.state(Menu {
        dishes: vec![("tea", 250)],
    });
    let reply = client.send("tea").await?;
    assert_eq!(reply.artifact_text("price").as_deref(), Some("tea: 2.50 EUR"));
    let reply = client.send("stone").await?;
    assert_eq!(reply.error_code(), Some("NOT_ON_THE_MENU"));
    Ok(())
}

#[tokio::test]
async fn a_table_is_booked_once_though_its_process_dies() -> Result<(), SkillTestError> {
    let mut client = SkillTest::new(&agent().expect("an agent"), "book");
    let asked = client.send(serde_json::json!({"when": "Friday, 19:00"})).await?;
    assert_eq!(asked.text(), "How many guests?");
    let booked = client.crash_after(1).send("4").await?;
    let booking = booked.artifact_data("book").unwrap_or_default();
    assert_eq!(booking["guests"], 4);
    assert_eq!(booked.text(), "Booked a table for 4: Friday, 19:00");
    Ok(())
}
