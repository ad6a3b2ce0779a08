//! A function under `#[skill]` returns an `AgentResult`.
//! replace: `AgentResult<String>`
//! with: `Option<String>`
//! error: `E0277`

use a2a_lambda::prelude::*;

pub fn stay<T>(_: String) -> T {
    loop {
        std::thread::park();
    }
}

/// Stays.
#[skill(id = "stay", tags = ["test"])]
pub async fn wait(input: String) -> AgentResult<String> {
    stay(input)
}
