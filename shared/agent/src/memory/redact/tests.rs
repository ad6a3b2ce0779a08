use super::redact;
use proptest::prelude::*;

/// The text after the redaction, which has to be the same when it is redacted again.
fn cut(text: &str) -> String {
    let once = redact(text);
    let twice = redact(&once.text);
    assert_eq!((twice.text.as_str(), twice.count), (once.text.as_str(), 0));
    once.text
}

fn assert_cut(cases: &[(&str, &str)]) {
    for (text, wanted) in cases {
        assert_eq!(cut(text), *wanted, "{text}");
    }
}

fn assert_kept(texts: &[&str]) {
    for text in texts {
        assert_eq!(cut(text), *text);
    }
}

#[test]
fn mail_addresses_are_removed_and_the_sentence_stays() {
    assert_cut(&[
        ("Ask ann@example.com.", "Ask [redacted:email]."),
        ("<a.b+c@mail.example.co.uk>", "<[redacted:email]>"),
        ("mailto:o'neil@example.org, x", "mailto:[redacted:email], x"),
        ("jörg@münchen.example!", "[redacted:email]!"),
        (
            "我的邮箱是ann@example.com的",
            "我的邮箱是[redacted:email]的",
        ),
        ("'ann@example.com'", "'[redacted:email]'"),
        ("a@b.de, c@d.de", "[redacted:email], [redacted:email]"),
        ("a@xn--fsq.xn--0zwm56d", "[redacted:email]"),
    ]);
}

#[test]
fn package_names_and_mentions_are_no_mail_addresses() {
    assert_kept(&[
        "serde@1.0.2",
        "@scope/package@2.3.4",
        "@ann and @bob",
        "user@localhost",
        "a @ b.de",
        "x@.de",
        "x@a..de",
        "@",
    ]);
}

#[test]
fn telephone_numbers_in_the_international_form_are_removed() {
    assert_cut(&[
        ("call +1 (555) 010-9999 now", "call [redacted:phone] now"),
        ("tel:+4930123456", "tel:[redacted:phone]"),
        ("+49 (0) 30 / 123456.", "[redacted:phone]."),
        ("电话+8613800138000。", "电话[redacted:phone]。"),
        ("+44 20.7946.0018\n2026", "[redacted:phone]\n2026"),
    ]);
}

#[test]
fn offsets_sums_and_local_numbers_are_no_telephone_numbers() {
    assert_kept(&[
        "2026-11-23T10:00:00+02:00",
        "GMT +0200",
        "1+12345678",
        "growth of +15 %",
        "+123 456",
        "+1234567890123456789",
        "room 030 123456",
        "C++11 20260101",
    ]);
}

#[test]
fn cards_are_removed_if_their_check_digit_is_correct() {
    assert_cut(&[
        ("4111 1111 1111 1111", "[redacted:card]"),
        ("pan=4111111111111111.", "pan=[redacted:card]."),
        ("5500-0000-0000-0004 12/30", "[redacted:card] 12/30"),
        ("3782 822463 10005", "[redacted:card]"),
        ("two 4111 1111 1111 1111 30", "two [redacted:card] 30"),
        ("no 12 4111 1111 1111 1111", "no 12 [redacted:card]"),
        ("6011111111111117", "[redacted:card]"),
        ("30569309025904", "[redacted:card]"),
        ("2223003122003222", "[redacted:card]"),
    ]);
}

#[test]
fn numbers_of_orders_and_times_are_no_cards() {
    assert_kept(&[
        "order 4111111111111112",
        "4111 1111 1111 1112",
        // The check digit is correct, but no issuer begins like this.
        "order 1234567812345670",
        "1700000000000",
        "20261123170739",
        "0000 0000 0000 0000",
        "4111 11 11 1111 1111 11",
        "4111-1111 1111-1111",
        "0.4111111111111111",
        "a4111111111111111",
        "1-4111-1111-1111-1111",
    ]);
}

#[test]
fn account_numbers_are_removed_if_their_checksum_is_correct() {
    assert_cut(&[
        (
            "IBAN: DE89 3704 0044 0532 0130 00.",
            "IBAN: [redacted:iban].",
        ),
        ("GB82WEST12345698765432", "[redacted:iban]"),
        ("nl91 abna 0417 1643 00 please", "[redacted:iban] please"),
        ("NO9386011117947", "[redacted:iban]"),
    ]);
    assert_kept(&[
        "DE88 3704 0044 0532 0130 00",
        "DE89 3704 0044 0532 0130",
        "DE89-3704-0044-0532-0130-00",
        "XDE89370400440532013000",
        "DE is it",
    ]);
}

#[test]
fn social_security_numbers_are_removed_in_their_form_with_hyphens() {
    assert_cut(&[
        ("SSN 123-45-6789", "SSN [redacted:ssn]"),
        ("(123-45-6789)", "([redacted:ssn])"),
    ]);
    assert_kept(&[
        "000-45-6789",
        "666-45-6789",
        "900-45-6789",
        "123-00-6789",
        "123-45-0000",
        "123 45 6789",
        "123456789",
        "2026-123-45-6789",
        "123-45-6789-1",
    ]);
}

#[test]
fn ip_addresses_that_identify_somebody_are_removed() {
    assert_cut(&[
        ("from 203.0.113.7.", "from [redacted:ip]."),
        ("IP:10.1.2.3:8080", "IP:[redacted:ip]:8080"),
        ("id:203.0.113.7/24", "id:[redacted:ip]/24"),
        ("10.0.0.1-10.0.0.9", "[redacted:ip]-[redacted:ip]"),
        // Also a version in four parts: it looks the same.
        ("version 1.2.3.4", "version [redacted:ip]"),
        ("[2001:db8::7]:443", "[[redacted:ip]]:443"),
        ("IP:2001:db8::7", "IP:[redacted:ip]"),
        ("fe80::1%eth0: up", "[redacted:ip]%eth0: up"),
        ("::ffff:203.0.113.7", "[redacted:ip]"),
        ("2001:db8:0:0:0:0:0:7: it", "[redacted:ip]: it"),
    ]);
}

#[test]
fn versions_times_paths_and_local_addresses_are_no_ip_addresses() {
    assert_kept(&[
        "v1.2.3.4",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.400",
        "01.2.3.4",
        "127.0.0.1 and 0.0.0.0",
        "mask 255.255.255.0",
        "::1 and ::",
        "std::fmt a::b face::cafe",
        "12:30:45",
        "aa:bb:cc:dd:ee:ff",
        "00:1a:2b:3c:4d:5e",
    ]);
}

#[test]
fn dates_ids_hashes_and_prices_stay() {
    assert_kept(&[
        "2026-11-23 and 23.11.2026 and 11/23/2026",
        "2026-11-23T17:07:39.123456Z",
        "550e8400-e29b-41d4-a716-446655440000",
        "12345678-1234-4234-8234-123456789012",
        "01JD3E7X8Y9Z0A1B2C3D4E5F6G",
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "INV-2026-000123, 1,234,567.89 EUR, ISBN 978-3-16-148410-0",
        "[redacted:email] [redacted:api-key]",
    ]);
}

#[test]
fn secrets_with_a_known_form_are_removed() {
    let key = format!("a2a_{}_{}", "k7Fq2", "s3cr3T".repeat(7));
    assert_eq!(cut(&format!("use `{key}`.")), "use `[redacted:api-key]`.");
    assert_cut(&[
        ("AKIAIOSFODNN7EXAMPLE", "[redacted:api-key]"),
        ("key=sk-proj-abc123DEF456ghi789;", "key=[redacted:api-key];"),
        (
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "[redacted:api-key]",
        ),
        (
            "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl.",
            "Bearer [redacted:jwt].",
        ),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted:private-key]\nb",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\nann@example.com, but the end is missing",
            "[redacted:private-key]",
        ),
    ]);
}

#[test]
fn words_that_begin_like_secrets_stay() {
    assert_kept(&[
        "AKIA",
        "AKIAIOSFODNN7EXAMPL",
        "sk-learn-and-many-more-words",
        "ghp_short",
        "a2a_lambda and a2a_id_secret",
        "eyJ.eyJ.x",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
    ]);
}

#[test]
fn other_forms_of_spaces_hyphens_and_digits_hide_nothing() {
    assert_cut(&[
        ("+49\u{a0}30\u{202f}1234567!", "[redacted:phone]!"),
        (
            "4111\u{2011}1111\u{2011}1111\u{2011}1111",
            "[redacted:card]",
        ),
        ("ann\u{200b}@example\u{ad}.com.", "[redacted:email]."),
        (
            "カード４１１１１１１１１１１１１１１１。",
            "カード[redacted:card]。",
        ),
        ("\u{feff}a@b.de\u{200d}", "\u{feff}[redacted:email]"),
        ("größe\u{a0}– 大", "größe\u{a0}– 大"),
    ]);
}

#[test]
fn each_find_counts_once() {
    let found = redact("a@b.de, +49 30 1234567, 4111111111111111, x");
    assert_eq!(found.count, 3);
    assert_eq!(redact("nothing").count, 0);
    assert_eq!(redact("").count, 0);
}

#[test]
fn the_work_is_linear_in_the_length_of_hostile_texts() {
    // Quadratic work on these texts takes minutes, and the run would not end.
    for unit in [
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "a@",
        "1 ",
        "1-",
        "+1",
        "+1 ",
        "1.",
        "f:",
        "::",
        "eyJ.",
        "DE8 ",
        "a.",
        "ä",
        "sk-",
    ] {
        let text = unit.repeat(200_000 / unit.len());
        assert!(redact(&text).text.len() <= 2 * text.len());
    }
}

proptest! {
    #[test]
    fn any_text_is_redacted_without_a_panic_and_only_once(text in any::<String>()) {
        cut(&text);
    }

    #[test]
    fn texts_of_dangerous_characters_are_redacted_once(text in "[ -@eyJ.:+0-9a-fDE\u{e9}\u{4e00}\u{ad}\u{a0}\u{ff10}\n]{0,200}") {
        cut(&text);
    }

    #[test]
    fn a_mail_address_never_survives_beside_any_text(
        before in any::<String>(),
        behind in any::<String>(),
    ) {
        let text = format!("{before} ann.smith@example.com {behind}");
        prop_assert!(!redact(&text).text.contains("ann.smith@example.com"));
    }
}
