//! A slot type says that it is one, and the compiler tells how.
//! replace: `impl SkillSlot for Ask {}`
//! with: `// none`
//! error: `E0277`
//! text: ``impl SkillSlot for Ask {}``

use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Ask;

impl SkillSlot for Ask {}

pub fn slot<S: SkillSlot>(_: S) {}

pub fn ask() {
    slot(Ask);
}
