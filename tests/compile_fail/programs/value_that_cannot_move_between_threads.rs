//! A turn may continue on another thread after each await.
//! replace: `Arc::new`
//! with: `Rc::new`
//! error: `future cannot be sent between threads safely`

use a2a_lambda::prelude::*;
#[expect(unused_imports, reason = "one of them is the mistake")]
use std::{rc::Rc, sync::Arc};

/// Works.
#[skill(id = "work", tags = ["test"])]
pub struct Work;

impl SkillHandler for Work {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let shared = Arc::new(input);
        cx.send_intermediate_update("working").await?;
        OnRequestResult::done(shared.to_string())
    }
}
