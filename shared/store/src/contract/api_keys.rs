//! The contract of stores of API keys.

use super::{Broken, Case, SampleData};
use crate::api_keys::{ApiKeyId, ApiKeyRecord, KeyCheck};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Owner;
use std::collections::BTreeSet;

/// A key of `owner` with every optional member. The tenant's name makes its id unique.
fn key(owner: &Owner, sample: &SampleData) -> Result<ApiKeyRecord, Broken> {
    let letters = owner.tenant.as_str().bytes().rev();
    let letters = letters.filter(u8::is_ascii_alphanumeric).take(32);
    let id = ApiKeyId::parse(&letters.map(char::from).collect::<String>());
    Ok(ApiKeyRecord {
        id: id.ok_or_else(|| StoreError::Refused("the id of the case is wrong".to_owned()))?,
        hash: std::array::from_fn(|at| u8::try_from(at * 7).unwrap_or(255)),
        owner: owner.clone(),
        tier: Some("gold".to_owned()),
        scopes: ["ops", "read:all"].map(str::to_owned).into(),
        created_at: sample.now,
        expires_at: Some(sample.at(86_400_456)),
        note: Some("nightly # build".to_owned()),
    })
}

/// The first check stays, and is no key. A table has one check, so no other case may use it.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn the_first_check_of_keys_stays(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (case.api_keys(), &case.sample);
    let reader = store.reader();
    let known = key(&sample.owner, sample)?;
    assert_eq!(reader.key_check().await?, None);
    let check = |secret: &str| KeyCheck {
        secret: secret.to_owned(),
    };
    store.create_check(&check("first")).await?;
    assert!(store.create_api_key(&known).await?);
    store.create_check(&check("second")).await?;
    assert_eq!(reader.key_check().await?, Some(check("first")));
    assert_eq!(store.api_keys(None).await?, [known]);
    Ok(())
}

/// A key reads back as it was written, with and without its optional members. A second key
/// with its id changes nothing. It is listed for its tenant until it is withdrawn.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_api_key_reads_back_until_it_is_withdrawn(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (case.api_keys(), &case.sample);
    let reader = store.reader();
    let full = key(&sample.owner, sample)?;
    let bare = ApiKeyRecord {
        tier: None,
        scopes: BTreeSet::new(),
        expires_at: None,
        note: None,
        ..key(&sample.stranger, sample)?
    };
    for key in [&full, &bare] {
        assert_eq!(reader.api_key(&key.id).await?, None);
        assert!(store.create_api_key(key).await?);
        assert_eq!(reader.api_key(&key.id).await?.as_ref(), Some(key));
        // A repeated write of the same key is done.
        assert!(store.create_api_key(key).await?);
        let other = ApiKeyRecord {
            hash: [9; 32],
            ..key.clone()
        };
        assert!(!store.create_api_key(&other).await?);
        let listed = store.api_keys(Some(&key.owner.tenant)).await?;
        assert_eq!(listed, std::slice::from_ref(key));
    }
    let all = store.api_keys(None).await?;
    assert!(all.contains(&full) && all.contains(&bare));
    assert!(store.withdraw_api_key(&full.id).await?);
    assert!(!store.withdraw_api_key(&full.id).await?);
    assert_eq!(reader.api_key(&full.id).await?, None);
    assert_eq!(reader.api_key(&bare.id).await?, Some(bare));
    Ok(())
}
