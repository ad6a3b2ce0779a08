//! Only the module of keys makes a key of the table.
//! replace: `api_key(id)`
//! with: `Key { partition: "A#keys".to_owned(), sort: id.to_string() }`
//! error: `E0451`

use a2a_lambda::store::api_keys::ApiKeyId;
use a2a_lambda::store::keys::{Key, api_key};

/// The place of an API key.
pub fn place(id: &ApiKeyId) -> Key {
    api_key(id)
}
