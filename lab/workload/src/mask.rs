//! Secrets taken out of texts that are kept or shown.

use crate::given::Given;
use crate::template::{Escape, push_url};

/// What stands in the place of a secret.
pub const MASK: &str = "***";

impl Given {
    /// The text with a mark in the place of each secret, as it is and as requests write it: in JSON, forms,
    /// paths, and XML.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let mut forms: Vec<String> = self.secrets().flat_map(written).collect();
        forms.retain(|form| !form.is_empty());
        // One secret may begin as another does.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let mut out = text.to_owned();
        for form in forms {
            if out.contains(&form) {
                out = out.replace(&form, MASK);
            }
        }
        out
    }
}

/// The forms in which a request may write a value.
fn written(value: &str) -> Vec<String> {
    let escapes = [Escape::None, Escape::JsonText, Escape::Form, Escape::Xml];
    let mut forms: Vec<String> = escapes
        .iter()
        .map(|escape| {
            let mut form = value.to_owned();
            escape.apply(&mut form, 0);
            form
        })
        .collect();
    let mut in_path = String::new();
    push_url(value, &mut in_path);
    forms.push(in_path);
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::Asked;

    fn given(values: &[(&str, &str)]) -> Given {
        let asked = |(name, _): &(&str, &str)| Asked {
            name: (*name).to_owned(),
            secret: name.starts_with('S'),
        };
        let mut given = Given::unknown(values.iter().map(asked).collect());
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
    fn no_value_masks_nothing() {
        let mut empty = given(&[("S1", "")]);
        assert_eq!(empty.mask("abc"), "abc");
        empty = Given::unknown(vec![Asked {
            name: "S".into(),
            secret: true,
        }]);
        assert_eq!(empty.mask("abc"), "abc");
        assert_eq!(empty.value("S", true), None);
    }
}
