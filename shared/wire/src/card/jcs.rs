//! Writes JSON in its canonical form (RFC 8785), over which a card is signed.

use serde_json::{Number, Value, json};

/// The canonical text of a value.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&plain(value)),
        Value::Number(number) => out.push_str(&ecmascript(number)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(index, out);
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            // RFC 8785 §3.2.3: members are sorted by UTF-16 code units. UTF-8 sorts
            // characters above U+FFFF differently.
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                separate(index, out);
                out.push_str(&plain(&Value::from(name.as_str())));
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// A literal or a string.
fn plain(value: &Value) -> String {
    // RFC 8785 §3.2.2.2: `serde_json` escapes the same characters in the same way.
    value.to_string()
}

/// A number as ECMAScript prints it.
fn ecmascript(number: &Number) -> String {
    // RFC 8785 §3.2.2.3: a number is an IEEE double, written with the fewest digits
    // that identify it.
    let value = number.as_f64().unwrap_or_default();
    if value == 0.0 {
        return "0".to_owned();
    }
    // `serde_json` writes the fewest digits and takes the even digit of two that are
    // equally near, as ECMAScript does; `format!` does not.
    let text = json!(value).to_string();
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{integer}{fraction}");
    let digits = all.trim_start_matches('0');
    let before_point = i32::try_from(integer.len()).unwrap_or(i32::MAX);
    let zeros = i32::try_from(all.len() - digits.len()).unwrap_or(i32::MAX);
    let exponent = exponent.parse::<i32>().unwrap_or_default() + before_point - 1 - zeros;
    format!("{sign}{}", placed(digits.trim_end_matches('0'), exponent))
}

/// `digits` with a decimal point or an exponent; the first digit has the value
/// 10^`exponent`.
fn placed(digits: &str, exponent: i32) -> String {
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    match exponent {
        0..=20 if length <= exponent + 1 => format!("{digits}{}", zeros(exponent + 1 - length)),
        0..=20 => {
            let at = usize::try_from(exponent + 1).unwrap_or_default();
            let (integer, fraction) = digits.split_at_checked(at).unwrap_or((digits, ""));
            format!("{integer}.{fraction}")
        }
        -6..=-1 => format!("0.{}{digits}", zeros(-exponent - 1)),
        _ => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
            let point = if rest.is_empty() { "" } else { "." };
            format!("{first}{point}{rest}e{exponent:+}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;
    use serde_json::{Value, json};

    #[test]
    fn numbers_match_the_samples_of_rfc_8785() {
        // RFC 8785, appendix B: the bits of a double, and its text.
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(canonical(&json!(f64::from_bits(bits))), text, "{bits:#x}");
        }
        assert_eq!(canonical(&json!([1, 10, 120, -7])), "[1,10,120,-7]");
        assert_eq!(canonical(&json!(u64::MAX)), "18446744073709552000");
    }

    #[test]
    fn a_value_matches_the_sample_of_rfc_8785() {
        // RFC 8785 §3.2.2 and §3.2.4.
        let text = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            canonical(&value),
            "{\"literals\":[null,true,false],\
             \"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
    }

    #[test]
    fn members_are_sorted_by_utf_16() {
        // RFC 8785 §3.2.3: the surrogates of the emoji sort before U+FB33.
        let names = [
            "\u{20ac}",
            "\r",
            "\u{fb33}",
            "1",
            "\u{1f600}",
            "\u{80}",
            "\u{f6}",
        ];
        let value: Value = names
            .iter()
            .map(|name| ((*name).to_owned(), json!(0)))
            .collect();
        assert_eq!(
            canonical(&value),
            "{\"\\r\":0,\"1\":0,\"\u{80}\":0,\"\u{f6}\":0,\"\u{20ac}\":0,\"\u{1f600}\":0,\"\u{fb33}\":0}"
        );
    }
}
