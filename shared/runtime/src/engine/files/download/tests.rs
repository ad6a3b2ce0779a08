use super::*;
use a2a_lambda_rows::each_row;

/// Generates hostile file names; the same seed gives the same names.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap_or_default() % below
    }

    fn name(&mut self) -> String {
        const BITS: [&str; 28] = [
            "..",
            "/",
            "\\",
            "\0",
            "%2e",
            "%2e%2e%2f",
            "\r\n",
            "Set-Cookie: a=b",
            "\"",
            "'",
            ";",
            "filename=evil",
            "\u{202e}",
            "\u{2066}",
            "é",
            "日本語",
            "\u{1F600}",
            " ",
            ".",
            "a",
            "report",
            ".pdf",
            ".html",
            "\u{7f}",
            "\u{feff}",
            "%",
            "*=UTF-8''",
            "\t",
        ];
        let count = self.next(40);
        let mut name: String = (0..count).map(|_| BITS[self.next(BITS.len())]).collect();
        if self.next(50) == 0 {
            name.push_str(&"x".repeat(10_000));
        }
        name
    }
}

fn is_safe_header(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._- ".contains(c);
    let coded = |c: char| c.is_ascii_alphanumeric() || "._-%".contains(c);
    let Some(rest) = value.strip_prefix("attachment; filename=\"") else {
        return false;
    };
    let Some((name, rest)) = rest.split_once('"') else {
        return false;
    };
    let whole = rest.strip_prefix("; filename*=UTF-8''");
    !name.is_empty()
        && name.chars().all(plain)
        && name != ".."
        && (rest.is_empty() || whole.is_some_and(|whole| whole.chars().all(coded)))
        && value.len() <= 1_200
        && http::HeaderValue::from_str(value).is_ok()
}

#[test]
fn no_name_breaks_out_of_its_header() {
    let mut noise = Noise(0x5eed_0f11);
    for round in 0..10_000 {
        let name = noise.name();
        let header = disposition(Some(&name));
        assert!(
            is_safe_header(&header),
            "{round}: {name:?} gives {header:?}"
        );
    }
    assert!(is_safe_header(&disposition(None)));
}

#[test]
fn non_ascii_name_is_sent_encoded_beside_a_plain_one() {
    assert_eq!(
        disposition(Some("Übersicht 1.pdf")),
        "attachment; filename=\"_bersicht 1.pdf\"; filename*=UTF-8''%C3%9Cbersicht%201.pdf"
    );
    assert_eq!(
        disposition(Some("report.pdf")),
        "attachment; filename=\"report.pdf\""
    );
}

#[test]
fn file_name_loses_its_path_and_keeps_its_extension() {
    assert_eq!(tame("../../etc/passwd"), "passwd");
    assert_eq!(tame("C:\\temp\\a.txt"), "a.txt");
    each_row(["", "..", "/", "a/..", "\0", "\u{202e}"], |nothing| {
        assert_eq!(tame(nothing), "file", "{nothing:?}");
    });
    let long = format!("{}.tar", "x".repeat(500));
    assert_eq!(tame(&long).len(), 80);
    assert!(tame(&long).ends_with("x.tar"));
}

#[test]
fn media_type_a_browser_could_run_becomes_octet_stream() {
    let rows = [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "image/svg+xml",
        "text/javascript",
        "application/javascript",
        "application/xhtml+xml",
        "text/xml",
        "text/css",
        "application/pdf\r\nX: y",
        "",
        "nonsense",
    ];
    each_row(rows, |active| {
        assert_eq!(content_type(active), BYTES, "{active:?}");
    });
    assert_eq!(content_type("Image/PNG"), "image/png");
    assert_eq!(content_type("text/plain; charset=utf-8"), "text/plain");
}
