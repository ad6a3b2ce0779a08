//! The contract of stores of documents.

use super::{Broken, Case, SampleData};
use crate::documents::{
    DOCUMENT_MAX, DocumentCollection, DocumentExpect, DocumentKey, DocumentOwner, DocumentWrite,
    Documents, StoredDocument,
};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{SubjectKey, WriteId};

fn wrong(error: impl std::fmt::Display) -> Broken {
    StoreError::Refused(error.to_string()).into()
}

fn key(name: &str) -> Result<DocumentKey, Broken> {
    DocumentKey::parse(name).map_err(wrong)
}

fn collection(owner: DocumentOwner, name: &str) -> Result<DocumentCollection, Broken> {
    DocumentCollection::new(owner, name).map_err(wrong)
}

/// The collection `notes` of the tenant of the case.
fn notes(sample: &SampleData) -> Result<DocumentCollection, Broken> {
    let owner = DocumentOwner::Tenant(sample.owner.tenant.clone());
    collection(owner, "notes")
}

fn write(
    sample: &SampleData,
    collection: &DocumentCollection,
    name: &str,
    text: Option<&str>,
) -> Result<DocumentWrite, Broken> {
    Ok(DocumentWrite {
        collection: collection.clone(),
        key: key(name)?,
        text: text.map(str::to_owned),
        author: None,
        expires_at: None,
        expect: DocumentExpect::Any,
        id: sample.write_id(),
        now: sample.now,
    })
}

async fn text(
    store: &Documents,
    write: &DocumentWrite,
    sample: &SampleData,
) -> Result<Option<String>, Broken> {
    let found = store.document(&write.collection, &write.key, sample.now);
    Ok(found.await?.map(|document| document.text))
}

/// A document reads back as it was written, until it is replaced or removed.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_document_reads_back_until_it_is_removed(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (&case.documents(), &case.sample);
    let notes = notes(sample)?;
    let largest = "x".repeat(DOCUMENT_MAX);
    let first = write(sample, &notes, "a/ä.json", Some(&largest))?;
    assert_eq!(store.document(&notes, &first.key, sample.now).await?, None);
    assert!(store.write_document(&first).await?);
    let expected = StoredDocument {
        key: first.key.clone(),
        text: largest,
        version: first.id.clone(),
    };
    let found = store.document(&notes, &first.key, sample.now).await?;
    assert_eq!(found, Some(expected));

    let second = write(sample, &notes, "a/ä.json", Some(""))?;
    assert!(store.write_document(&second).await?);
    assert_eq!(text(store, &second, sample).await?.as_deref(), Some(""));
    let removal = write(sample, &notes, "a/ä.json", None)?;
    // A removal that is repeated is done.
    for _ in 0..2 {
        assert!(store.write_document(&removal).await?);
        assert_eq!(text(store, &removal, sample).await?, None);
    }
    let larger = "x".repeat(DOCUMENT_MAX + 1);
    let refused = write(sample, &notes, "larger", Some(&larger))?;
    let refusal = store.write_document(&refused).await;
    assert!(
        matches!(refusal, Err(StoreError::TooLarge(_))),
        "{refusal:?}"
    );
    assert_eq!(text(store, &refused, sample).await?, None);
    Ok(())
}

/// Of several writes that expect the same document, one is stored. Its repeat is done, and the
/// others change nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn one_of_two_writers_of_a_document_wins(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (&case.documents(), &case.sample);
    let notes = notes(sample)?;
    let expecting = |expect: &DocumentExpect, text: Option<&str>| {
        let mut write = write(sample, &notes, "count", text)?;
        write.expect = expect.clone();
        Ok::<_, Broken>(write)
    };
    let absent = DocumentExpect::Absent;
    let [one, other] = [
        expecting(&absent, Some("1"))?,
        expecting(&absent, Some("1"))?,
    ];
    assert!(store.write_document(&one).await?);
    assert!(!store.write_document(&other).await?, "it has the same text");
    assert!(store.write_document(&one).await?, "a repeat is done");

    let was = DocumentExpect::Version(one.id.clone());
    let [two, late] = [expecting(&was, Some("2"))?, expecting(&was, Some("3"))?];
    assert!(store.write_document(&two).await?);
    assert!(store.write_document(&two).await?, "a repeat is done");
    assert!(!store.write_document(&late).await?);
    assert!(!store.write_document(&expecting(&was, None)?).await?);
    assert_eq!(text(store, &two, sample).await?.as_deref(), Some("2"));

    let removal = expecting(&DocumentExpect::Version(two.id.clone()), None)?;
    assert!(store.write_document(&removal).await?);
    let gone = DocumentExpect::Version(removal.id.clone());
    assert!(!store.write_document(&expecting(&gone, Some("4"))?).await?);
    assert!(
        store
            .write_document(&expecting(&absent, Some("5"))?)
            .await?
    );
    let unknown = DocumentExpect::Version(WriteId::made_of(sample.number()));
    assert!(
        !store
            .write_document(&expecting(&unknown, Some("6"))?)
            .await?
    );
    assert_eq!(text(store, &two, sample).await?.as_deref(), Some("5"));
    Ok(())
}

/// An expired document is gone for every call, and its key is free.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_expired_document_is_gone(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (&case.documents(), &case.sample);
    let notes = notes(sample)?;
    let mut short = write(sample, &notes, "short", Some("1"))?;
    short.expires_at = Some(sample.at(1000));
    assert!(store.write_document(&short).await?);
    for (at, live) in [(999, true), (1000, false)] {
        let at = sample.at(at);
        let found = store.document(&notes, &short.key, at).await?;
        assert_eq!(found.is_some(), live);
        let page = store.documents(&notes, None, 10, at).await?;
        assert_eq!(page.documents.len(), usize::from(live));
    }
    let mut next = write(sample, &notes, "short", Some("2"))?;
    next.now = sample.at(1000);
    next.expect = DocumentExpect::Version(short.id.clone());
    assert!(!store.write_document(&next).await?);
    next.expect = DocumentExpect::Absent;
    assert!(store.write_document(&next).await?);
    let found = store.document(&notes, &next.key, sample.at(5000)).await?;
    assert_eq!(found.map(|it| it.text).as_deref(), Some("2"));
    Ok(())
}

/// Pages join to all documents of the collection in the order of their keys, and to no other.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_of_documents_join_to_the_collection(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (&case.documents(), &case.sample);
    let notes = notes(sample)?;
    let names: Vec<String> = (0..25).map(|at| format!("{at:02}")).collect();
    for name in names.iter().rev() {
        assert!(
            store
                .write_document(&write(sample, &notes, name, Some(name))?)
                .await?
        );
    }
    assert!(
        store
            .write_document(&write(sample, &notes, "07", None)?)
            .await?
    );
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store
            .documents(&notes, after.as_ref(), 7, sample.now)
            .await?;
        assert!(page.documents.len() <= 7);
        found.extend(page.documents.into_iter().map(|document| document.text));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = names.into_iter().filter(|name| name != "07").collect();
    assert_eq!(found, expected);
    Ok(())
}

/// A collection of one owner or name shows nothing of another.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn collections_of_documents_are_apart(case: &Case) -> Result<(), Broken> {
    let (store, sample) = (&case.documents(), &case.sample);
    let mut all = Vec::new();
    for owner in [&sample.owner, &sample.colleague, &sample.stranger] {
        for name in ["notes", "notes.2", "R"] {
            let subject = DocumentOwner::Subject(SubjectKey::of(owner));
            all.push(collection(subject, name)?);
        }
    }
    for owner in [&sample.owner, &sample.stranger] {
        let tenant = DocumentOwner::Tenant(owner.tenant.clone());
        all.push(collection(tenant.clone(), "notes")?);
        // It looks like a collection of a subject.
        all.push(collection(tenant, &sample.owner.subject.hash())?);
    }
    for (at, collection) in all.iter().enumerate() {
        let mine = write(sample, collection, "same", Some(&at.to_string()))?;
        assert!(store.write_document(&mine).await?);
    }
    for (at, collection) in all.iter().enumerate() {
        let page = store.documents(collection, None, 10, sample.now).await?;
        let texts: Vec<_> = page.documents.iter().map(|it| it.text.clone()).collect();
        assert_eq!(texts, [at.to_string()], "{collection:?}");
    }
    Ok(())
}
