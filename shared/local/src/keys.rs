//! Makes and checks the credentials of one run. The embedded services accept no
//! others.

use a2a_lambda::engine::{Ids as _, RandomIds};
use a2a_lambda::store::aws::EmulatorKeys;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Random credentials for this run.
pub(crate) fn fresh() -> EmulatorKeys {
    EmulatorKeys {
        id: format!("A2ALOCAL{:032X}", RandomIds.next()),
        secret: format!("{:032x}{:032x}", RandomIds.next(), RandomIds.next()),
    }
}

/// Whether `id` is the access key id of `keys`. It compares HMACs, so that its time does
/// not depend on where two ids differ.
pub(crate) fn known(keys: &EmulatorKeys, id: &str) -> bool {
    let code = |id: &str| mac(keys.secret.as_bytes(), id.as_bytes());
    match (code(id), code(&keys.id)) {
        (Some(request_code), Some(key_code)) => request_code
            .verify(&key_code.finalize().into_bytes())
            .is_ok(),
        _ => false,
    }
}

/// The HMAC-SHA256 of `text` under `key`. Never `None`, since HMAC takes keys of any
/// length.
pub(crate) fn mac(key: &[u8], text: &[u8]) -> Option<Hmac<Sha256>> {
    let code = Hmac::<Sha256>::new_from_slice(key).ok()?;
    Some(code.chain_update(text))
}

#[cfg(test)]
mod tests {
    use super::{fresh, known};
    use a2a_lambda_rows::each_row;

    #[test]
    fn only_the_key_id_of_this_run_is_known() {
        let (keys, other) = (fresh(), fresh());
        assert!(known(&keys, &keys.id));
        let rows = [other.id.as_str(), "test", "", &keys.id.to_lowercase()];
        each_row(rows, |id| {
            assert!(!known(&keys, id), "{id}");
        });
        assert_ne!(keys.secret, other.secret);
        assert!(!format!("{keys:?}").contains(&keys.secret));
    }
}
