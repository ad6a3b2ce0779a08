//! Finds e-mail addresses and IP addresses.

use super::scan::{before, byte, is_word, runs};
use super::{Find, Sensitive};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The most characters of an IPv6 address, with an IPv4 address at its end.
const IPV6_MAX: usize = 45;

/// Finds e-mail addresses. Names and domains may have letters of Latin, Greek and Cyrillic.
pub(super) fn emails(text: &str, finds: &mut Vec<Find>) {
    let mut floor = 0;
    for (at, _) in text.match_indices('@') {
        let behind = at + 1;
        let local = text.get(floor..at).unwrap_or_default();
        let domain = text.get(behind..).unwrap_or_default();
        // Neither side reads over another `@`, so all sides together are the text once.
        let start = at - local_length(local);
        let end = behind + domain_length(domain);
        floor = behind;
        if start < at && end > behind {
            finds.push((start..end, Sensitive::Email));
        }
    }
}

/// The bytes at the end of `text` that are the name of a mailbox.
fn local_length(text: &str) -> usize {
    let is_part = |letter: char| is_letter(letter) || "._%+-'".contains(letter);
    let name = text.trim_end_matches(is_part).len();
    let name = text.get(name..).unwrap_or_default();
    let name = name.trim_start_matches(|letter: char| !is_letter(letter) && letter != '_');
    if name.ends_with('.') { 0 } else { name.len() }
}

/// The bytes at the begin of `text` that are a domain with at least two labels.
fn domain_length(text: &str) -> usize {
    let is_part = |letter: char| is_letter(letter) || letter == '.' || letter == '-';
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let domain = text.get(..end).unwrap_or_default();
    let domain = domain.trim_end_matches(['.', '-']);
    let mut labels = domain.split('.');
    let top = labels.next_back().unwrap_or_default();
    let is_top = top.starts_with("xn--")
        || (top.chars().nth(1).is_some() && top.chars().all(char::is_alphabetic));
    let is_label = |label: &str| !label.is_empty() && !label.starts_with('-');
    let is_domain = domain.contains('.') && is_top && labels.all(is_label);
    if is_domain { domain.len() } else { 0 }
}

/// A digit, or a letter of a script that puts spaces between words.
fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || matches!(letter, '\u{c0}'..='\u{52f}' if letter.is_alphabetic())
}

/// Finds IPv4 and IPv6 addresses that can identify somebody.
pub(super) fn ips(text: &str, finds: &mut Vec<Find>) {
    let bytes = text.as_bytes();
    for run in runs(bytes, |byte| byte.is_ascii_digit() || byte == b'.') {
        let is_inside = is_word(before(bytes, run.start)) || is_word(byte(bytes, run.end));
        let raw = text.get(run.clone()).unwrap_or_default();
        let found = raw.trim_start_matches('.');
        let start = run.end - found.len();
        let found = found.trim_end_matches('.');
        if !is_inside && identifies(found) {
            finds.push((start..start + found.len(), Sensitive::Ip));
        }
    }
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
    for run in runs(bytes, is_part).filter(|run| !is_word(byte(bytes, run.end))) {
        let raw = text.get(run.clone()).unwrap_or_default();
        let label = if is_word(before(bytes, run.start)) {
            // The end of a word, as in `id:2001:db8::7`.
            raw.find(':').map_or(raw.len(), |colon| colon + 1)
        } else {
            0
        };
        let found = raw.get(label..).unwrap_or_default();
        if let Some(length) = v6_length(found) {
            let start = run.start + label;
            finds.push((start..start + length, Sensitive::Ip));
        }
    }
}

/// Whether the text is an IPv4 address, but not one of no host, of this host, or a mask.
fn identifies(text: &str) -> bool {
    text.parse().is_ok_and(|address: Ipv4Addr| {
        let [first, ..] = address.octets();
        first != 0 && first != 127 && first < 240
    })
}

/// The bytes of the IPv6 address, without the punctuation of a sentence behind it.
fn v6_length(text: &str) -> Option<usize> {
    let text = text.trim_end_matches('.');
    if text.len() > IPV6_MAX || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        // Without a digit it may be a path of a programming language, as in `a::b`.
        return None;
    }
    let candidates = [Some(text), text.strip_suffix(':')];
    let is_address = |text: &&str| {
        text.parse()
            .is_ok_and(|it: Ipv6Addr| !it.is_unspecified() && !it.is_loopback())
    };
    let mut candidates = candidates.into_iter().flatten();
    candidates.find(is_address).map(str::len)
}
