//! Finds numbers of payment cards, bank accounts, US social security and telephones.

use super::scan::{before, byte, is_word, runs};
use super::{Find, Sensitive};
use std::ops::Range;

/// The digits of the shortest and the longest payment card.
const CARD: std::ops::RangeInclusive<usize> = 13..=19;
/// The digits of a telephone number with its country code (E.164).
const PHONE: std::ops::RangeInclusive<usize> = 8..=15;

/// Finds payment cards and US social security numbers.
pub(super) fn cards_and_ssns(text: &str, finds: &mut Vec<Find>) {
    let bytes = text.as_bytes();
    let mut groups: Vec<Range<usize>> = Vec::new();
    for group in runs(bytes, |byte| byte.is_ascii_digit()) {
        let follows = groups
            .last()
            .is_some_and(|last| separator(bytes, last.end, group.start).is_some());
        if !follows {
            in_groups(bytes, &groups, finds);
            groups.clear();
        }
        groups.push(group);
    }
    in_groups(bytes, &groups, finds);
}

/// The one space or hyphen between two groups.
fn separator(text: &[u8], from: usize, to: usize) -> Option<u8> {
    let between = byte(text, from);
    (from + 1 == to && matches!(between, b' ' | b'-')).then_some(between)
}

/// Finds numbers in groups of digits that single spaces or hyphens separate.
fn in_groups(text: &[u8], groups: &[Range<usize>], finds: &mut Vec<Find>) {
    let mut first = 0;
    while let Some(rest) = groups.get(first..).filter(|rest| !rest.is_empty()) {
        // The longest form has five groups.
        let lengths = (1..=rest.len().min(5)).rev();
        let found = lengths
            .filter_map(|length| rest.get(..length))
            .find_map(|some| {
                let kind = kind_of(text, some)?;
                Some((some.len(), some.first()?.start..some.last()?.end, kind))
            });
        first += found.as_ref().map_or(1, |(length, ..)| *length);
        finds.extend(found.map(|(_, range, kind)| (range, kind)));
    }
}

/// What the groups are together, if nothing beside them belongs to the same number.
fn kind_of(text: &[u8], groups: &[Range<usize>]) -> Option<Sensitive> {
    let (start, end) = (groups.first()?.start, groups.last()?.end);
    let mut between = groups.windows(2).map(|pair| match pair {
        [left, right] => separator(text, left.end, right.start),
        _ => None,
    });
    let sign = between.next().flatten();
    let is_even = between.all(|other| other == sign);
    let is_bound = |edge: u8, beyond: u8| {
        // A longer number in groups, or a decimal number, continues there.
        let continues = matches!(edge, b'-' | b'.' | b',') && beyond.is_ascii_digit();
        !continues && !is_word(edge)
    };
    let starts = is_bound(before(text, start), before(text, start.saturating_sub(1)));
    let ends = is_bound(byte(text, end), byte(text, end + 1));
    if !(is_even && starts && ends) {
        return None;
    }
    let sizes: Vec<usize> = groups.iter().map(ExactSizeIterator::len).collect();
    let digits: Vec<u8> = groups
        .iter()
        .filter_map(|group| text.get(group.clone()))
        .flatten()
        .map(|digit| digit - b'0')
        .collect();
    match sizes.as_slice() {
        [3, 2, 4] if sign == Some(b'-') && is_ssn(&digits) => Some(Sensitive::Ssn),
        [_] | [4, 4, 4, 1..=4] | [4, 4, 4, 4, 1..=3] | [4, 6, 4 | 5] if is_card(&digits) => {
            Some(Sensitive::Card)
        }
        _ => None,
    }
}

/// Whether such a number can be given out: some areas, groups and serials never are.
fn is_ssn(digits: &[u8]) -> bool {
    match digits {
        [a, b, c, d, e, rest @ ..] => {
            let area = [*a, *b, *c];
            *a != 9 && area != [0; 3] && area != [6; 3] && [*d, *e] != [0; 2] && rest != [0; 4]
        }
        _ => false,
    }
}

/// Whether the digits begin as an issuer's, have its length, and a correct check digit.
fn is_card(digits: &[u8]) -> bool {
    let head = |count: usize| {
        let head = digits.iter().take(count);
        head.fold(0_u32, |number, digit| number * 10 + u32::from(*digit))
    };
    let size = digits.len();
    if !CARD.contains(&size) {
        return false;
    }
    let is_issued = match (head(1), head(2), head(4)) {
        // Visa.
        (4, ..) => matches!(size, 13 | 16 | 19),
        // Mastercard, and Mir before its second range.
        (_, 51..=55, _) | (_, _, 2200..=2204 | 2221..=2720) => size == 16,
        // American Express.
        (_, 34 | 37, _) => size == 15,
        // Diners Club.
        (_, 36 | 38 | 39, _) | (_, _, 3000..=3059) => (14..=19).contains(&size),
        // JCB, UnionPay, Discover, Maestro.
        (_, 62 | 64 | 65, _) | (_, _, 3528..=3589 | 6011) => size >= 16,
        (_, 50 | 56..=58 | 63 | 67, _) => size >= 16,
        _ => false,
    };
    is_issued && luhn(digits)
}

/// The check of Luhn (ISO/IEC 7812-1, annex B).
fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .zip([false, true].iter().cycle())
        .map(
            |(digit, is_doubled)| match (u32::from(*digit), is_doubled) {
                (digit, false) => digit,
                (digit, true) if digit > 4 => digit * 2 - 9,
                (digit, true) => digit * 2,
            },
        )
        .sum();
    sum.is_multiple_of(10)
}

/// Finds telephone numbers in the international form, with `+`.
pub(super) fn phones(text: &str, finds: &mut Vec<Find>) {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('+') {
        if !is_word(before(bytes, at))
            && before(bytes, at) != b'+'
            && let Some(end) = phone_end(bytes, at + 1)
        {
            finds.push((at..end, Sensitive::Phone));
        }
    }
}

/// The end of the telephone number whose country code starts at `start`.
fn phone_end(text: &[u8], start: usize) -> Option<usize> {
    if !matches!(byte(text, start), b'1'..=b'9') {
        return None;
    }
    let (mut at, mut digits, mut signs) = (start, 0, 0);
    let mut group_end = None;
    loop {
        match byte(text, at) {
            b'0'..=b'9' => {
                digits += 1;
                signs = 0;
            }
            // At most three signs separate two groups, as in `+49 (0) 30 / 12`.
            b'.' if !byte(text, at + 1).is_ascii_digit() => break,
            b' ' | b'-' | b'.' | b'(' | b')' | b'/' if signs < 3 => signs += 1,
            _ => break,
        }
        if digits > *PHONE.end() {
            break;
        }
        at += 1;
        let next = byte(text, at);
        if signs == 0 && !is_word(next) {
            group_end = Some(at).filter(|_| PHONE.contains(&digits)).or(group_end);
        }
    }
    group_end
}

/// Finds international bank account numbers (ISO 13616).
pub(super) fn ibans(text: &str, finds: &mut Vec<Find>) {
    let bytes = text.as_bytes();
    let mut free = 0;
    for word in runs(bytes, |byte| byte.is_ascii_alphanumeric()) {
        if word.start < free || is_word(before(bytes, word.start)) {
            continue;
        }
        if let Some(end) = iban_end(bytes, word.start) {
            finds.push((word.start..end, Sensitive::Iban));
            free = end;
        }
    }
}

/// The end of the account number that starts at `start`.
fn iban_end(text: &[u8], start: usize) -> Option<usize> {
    let country = [byte(text, start), byte(text, start + 1)].map(|it| it.to_ascii_uppercase());
    let (_, length) = COUNTRIES.iter().find(|(code, _)| **code == country)?;
    let mut number = Vec::with_capacity(*length);
    let mut at = start;
    while number.len() < *length {
        match byte(text, at) {
            letter if letter.is_ascii_alphanumeric() => number.push(letter.to_ascii_uppercase()),
            // One space between two groups, and something behind it.
            b' ' if number.len() % 4 == 0 && byte(text, at + 1) != b' ' => {}
            _ => return None,
        }
        at += 1;
    }
    (!is_word(byte(text, at)) && is_mod_97(&number)).then_some(at)
}

/// The checksum of ISO 7064: the number without its first four places, then these, with
/// letters from 10 on, leaves 1 of 97.
fn is_mod_97(number: &[u8]) -> bool {
    let (head, tail) = number.split_at(4.min(number.len()));
    let has_check_digits = head.iter().skip(2).all(u8::is_ascii_digit);
    let rest = tail.iter().chain(head).fold(0_u32, |rest, place| {
        let value = char::from(*place).to_digit(36).unwrap_or_default();
        (rest * if value > 9 { 100 } else { 10 } + value) % 97
    });
    has_check_digits && rest == 1
}

/// The countries of the registry of IBANs, with the length of their numbers.
#[rustfmt::skip]
const COUNTRIES: &[(&[u8; 2], usize)] = &[
    (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16),
    (b"BG", 22), (b"BH", 22), (b"BI", 27), (b"BR", 29), (b"BY", 28), (b"CH", 21), (b"CR", 22),
    (b"CY", 28), (b"CZ", 24), (b"DE", 22), (b"DJ", 27), (b"DK", 18), (b"DO", 28), (b"EE", 20),
    (b"EG", 29), (b"ES", 24), (b"FI", 18), (b"FK", 18), (b"FO", 18), (b"FR", 27), (b"GB", 22),
    (b"GE", 22), (b"GI", 23), (b"GL", 18), (b"GR", 27), (b"GT", 28), (b"HR", 21), (b"HU", 28),
    (b"IE", 22), (b"IL", 23), (b"IQ", 23), (b"IS", 26), (b"IT", 27), (b"JO", 30), (b"KW", 30),
    (b"KZ", 20), (b"LB", 28), (b"LC", 32), (b"LI", 21), (b"LT", 20), (b"LU", 20), (b"LV", 21),
    (b"LY", 25), (b"MC", 27), (b"MD", 24), (b"ME", 22), (b"MK", 19), (b"MN", 20), (b"MR", 27),
    (b"MT", 31), (b"MU", 30), (b"NI", 28), (b"NL", 18), (b"NO", 15), (b"OM", 23), (b"PK", 24),
    (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24), (b"RS", 22), (b"RU", 33),
    (b"SA", 24), (b"SC", 31), (b"SD", 18), (b"SE", 24), (b"SI", 19), (b"SK", 24), (b"SM", 27),
    (b"SO", 23), (b"ST", 25), (b"SV", 28), (b"TL", 23), (b"TN", 24), (b"TR", 26), (b"UA", 29),
    (b"VA", 22), (b"VG", 24), (b"XK", 20), (b"YE", 30), (b"HN", 28),
];
