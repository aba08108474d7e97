//! Masks secrets in texts that are stored or shown.

use lab_filters::{mask_forms, written};

use crate::inputs::Inputs;

/// Replaces a secret.
pub const MASK: &str = "***";

impl Inputs {
    /// Masks each secret in a text, in plain form and in the forms of requests: in JSON, forms, paths, XML,
    /// hexadecimal, and base64 with any context. A secret that is cut off by the end of the text is also masked.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let mut forms: Vec<String> = self.secret_values().flat_map(written).collect();
        // Requests contain no keys, so no other form of them exists.
        forms.extend(self.secret_lines().map(str::to_owned));
        mask_forms(text, forms, MASK)
    }
}

#[cfg(test)]
mod tests {
    use lab_filters::{Encoding, push_url};

    use super::*;
    use crate::inputs::InputName;

    fn given(values: &[(&str, &str)]) -> Inputs {
        let asked = |(name, _): &(&str, &str)| InputName {
            name: (*name).to_owned(),
            secret: name.starts_with('S'),
        };
        let mut given = Inputs::unknown(values.iter().map(asked).collect());
        for (name, value) in values {
            given.set(name, value);
        }
        given
    }

    #[test]
    fn a_secret_is_masked_in_every_form_that_a_request_writes() {
        let given = given(&[("S1", "p&q \"r\"/<é>"), ("S2", "p&q"), ("E", "shown")]);
        for text in [
            "p&q \"r\"/<é>",
            r#"{"password":"p&q \"r\"/<é>"}"#,
            "password=p%26q+%22r%22%2F%3C%C3%A9%3E",
            "GET /p%26q%20%22r%22%2F%3C%C3%A9%3E",
            "<p>p&amp;q &quot;r&quot;/&lt;é&gt;</p>",
            "only p&q of it",
        ] {
            let masked = given.mask(text);
            assert!(masked.contains(MASK), "{text}: {masked}");
            assert!(
                !masked.contains("q \"r") && !masked.contains("p&q"),
                "{masked}"
            );
            assert!(!masked.contains("%26q"), "{masked}");
        }
        assert_eq!(given.mask("shown stays"), "shown stays");
        assert!(!format!("{given:?}").contains("p&q"));
    }

    #[test]
    fn the_beginning_of_a_secret_is_masked_where_a_text_is_cut() {
        let given = given(&[("S", "correct-horse")]);
        for (text, masked) in [
            ("it is correct-ho", "it is ***"),
            ("`$.a` is `correct-…`, not `b`", "`$.a` is `***…`, not `b`"),
            ("corrections are fine", "corrections are fine"),
        ] {
            assert_eq!(given.mask(text), masked);
        }
    }

    #[test]
    fn a_secret_is_masked_within_base64_and_hexadecimal() {
        let given = given(&[("S", "correct-horse?>")]);
        for around in ["", "a", "ab", "abc", "ada:"] {
            let text = format!("{around}correct-horse?>{around}");
            for encoding in [Encoding::Base64, Encoding::Base64Url, Encoding::Hex] {
                let masked = given.mask(&encoding.encode(text.as_bytes()));
                assert!(masked.contains(MASK), "{around}: {masked}");
                // The rest reveals at most one letter at either end.
                let left = masked.len() - MASK.len();
                assert!(left <= around.len() * 4 + 6, "{around}: {masked}");
            }
        }
    }

    #[test]
    fn encoded_secret_is_masked_in_paths_and_within_json() {
        // Its base64 has `+` and `/`.
        let given = given(&[("S", "a~b>>\"?c~?>>b")]);
        let mut in_path = String::new();
        push_url(&Encoding::Base64.encode(b"a~b>>\"?c~?>>b"), &mut in_path);
        assert!(in_path.contains('%'), "{in_path}");
        assert!(given.mask(&in_path).starts_with(MASK));
        let json = Encoding::Base64Url.encode(br#"{"k":"a~b>>\"?c~?>>b"}"#);
        assert!(given.mask(&json).contains(MASK), "{json}");
        let hex = Encoding::Hex.encode(b"a~b>>\"?c~?>>b").to_uppercase();
        assert_eq!(given.mask(&hex), MASK);
    }

    #[test]
    fn no_value_masks_nothing() {
        let mut empty = given(&[("S1", "")]);
        assert_eq!(empty.mask("abc"), "abc");
        empty = Inputs::unknown(vec![InputName {
            name: "S".into(),
            secret: true,
        }]);
        assert_eq!(empty.mask("abc"), "abc");
        assert_eq!(empty.value("S", true), None);
    }
}
