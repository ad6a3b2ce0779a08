//! Writes JSON in its canonical form (RFC 8785), over which a card is signed.

use serde_json::Value;

/// The canonical text of a value.
pub(super) fn canonical(value: &Value) -> String {
    // Infallible: a value has text keys and finite numbers.
    serde_json_canonicalizer::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::canonical;
    use a2a_lambda_rows::each_row;
    use serde_json::{Value, json};

    #[test]
    fn numbers_match_the_samples_of_rfc_8785() {
        // RFC 8785, appendix B: the bits of a double, and its text.
        let rows = [
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
        ];
        each_row(rows, |(bits, text)| {
            assert_eq!(canonical(&json!(f64::from_bits(bits))), text, "{bits:#x}");
        });
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
