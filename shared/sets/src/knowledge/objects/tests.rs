use super::{OBJECT_MAX, decode, encode};
use crate::knowledge::error::KnowledgeError;
use gix_hash::ObjectId;
use gix_object::Kind;
use proptest::prelude::*;

fn reason(id: ObjectId, loose: &[u8]) -> &'static str {
    match decode(id, loose) {
        Err(KnowledgeError::Corrupt { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_id_is_the_one_that_git_gives() {
    // `printf hello | git hash-object --stdin`, and git's name of the empty tree.
    let blob = encode(Kind::Blob, b"hello").unwrap();
    assert_eq!(
        blob.id.to_string(),
        "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"
    );
    let tree = encode(Kind::Tree, b"").unwrap();
    assert_eq!(
        tree.id.to_string(),
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    );
}

#[test]
fn bytes_of_another_object_are_refused() {
    let (one, other) = (
        encode(Kind::Blob, b"one").unwrap(),
        encode(Kind::Blob, b"two").unwrap(),
    );
    assert_eq!(reason(one.id, &other.bytes), "the hash differs");
}

#[test]
fn every_flipped_bit_of_a_stored_object_is_found() {
    let object = encode(Kind::Blob, b"a content that is long enough").unwrap();
    for at in 0..object.bytes.len() {
        for bit in 0..8 {
            let mut wrong = object.bytes.clone();
            wrong[at] ^= 1 << bit;
            // The padding of an uncompressed block has no meaning.
            if at != 2 || bit < 3 {
                assert!(decode(object.id, &wrong).is_err(), "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn cut_and_extended_objects_are_refused() {
    let object = encode(Kind::Blob, b"content").unwrap();
    // Behind the data is a checksum, which the id of the object makes superfluous.
    for end in 0..object.bytes.len() - 4 {
        assert!(decode(object.id, &object.bytes[..end]).is_err(), "{end}");
    }
    let longer = [object.bytes.as_slice(), b"x"].concat();
    assert_eq!(reason(object.id, &longer), "more bytes follow");
}

#[test]
fn an_object_that_decompresses_to_too_much_is_refused() {
    let size = usize::try_from(OBJECT_MAX).unwrap();
    let data = vec![0; size + 1];
    assert!(encode(Kind::Blob, &data).is_err());
    let most = encode(Kind::Blob, &data[..size]).unwrap();
    assert!(decode(most.id, &most.bytes).is_ok());
    let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut bomb, &vec![0; 4 * size]).unwrap();
    assert_eq!(reason(most.id, &bomb.finish().unwrap()), "it is too large");
}

proptest! {
    #[test]
    fn any_bytes_survive_encoding(data in any::<Vec<u8>>()) {
        let object = encode(Kind::Blob, &data).unwrap();
        prop_assert_eq!(decode(object.id, &object.bytes).unwrap(), (Kind::Blob, data));
    }

    #[test]
    fn any_stored_bytes_are_decoded_without_a_panic(bytes in any::<Vec<u8>>()) {
        prop_assert!(decode(ObjectId::null(gix_hash::Kind::Sha1), &bytes).is_err());
    }
}
