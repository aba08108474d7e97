//! Texts of a draft: literals, and expressions for a run.

use lab_units::yaml;

/// Occurs in no text that is sent.
pub(crate) const HOLE: &str = "\u{0}";

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Literal, including any braces.
    Literal(String),
    /// An expression of the template language.
    Code(String),
}

/// A text with expressions in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(Vec<Part>);

impl Text {
    pub(crate) fn literal(text: &str) -> Self {
        Self(vec![Part::Literal(text.to_owned())])
    }

    pub(crate) fn code(code: &str) -> Self {
        Self(vec![Part::Code(code.to_owned())])
    }

    /// Some text, then an expression.
    pub(crate) fn with_code(before: &str, code: &str) -> Self {
        Self(vec![
            Part::Literal(before.to_owned()),
            Part::Code(code.to_owned()),
        ])
    }

    /// The text, if all of it is literal.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text with [`HOLE`] for each expression.
    pub(crate) fn with_holes(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Literal(text) => text.as_str(),
            Part::Code(_) => HOLE,
        });
        parts.collect()
    }

    pub(crate) fn push(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Applies a filter to its expressions.
    pub(crate) fn with_filter(&mut self, filter: &str) {
        for part in &mut self.0 {
            if let Part::Code(code) = part {
                code.push_str(" | ");
                code.push_str(filter);
            }
        }
    }

    /// Encoded like a form or a query.
    pub(crate) fn encoded(mut self) -> Self {
        self.with_filter("urlencode");
        for part in &mut self.0 {
            if let Part::Literal(text) = part {
                *text = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            }
        }
        self
    }

    /// Merges neighbouring literals, so that it is a literal if all of it is.
    pub(crate) fn joined(self) -> Self {
        let mut joined: Vec<Part> = Vec::new();
        for part in self.0 {
            match (joined.last_mut(), part) {
                (Some(Part::Literal(before)), Part::Literal(text)) => before.push_str(&text),
                (_, part) => joined.push(part),
            }
        }
        Self(joined)
    }

    /// Replaces a value with an expression wherever it occurs.
    pub(crate) fn replace(&mut self, value: &str, code: &str) {
        let parts = std::mem::take(&mut self.0);
        for part in parts {
            let Part::Literal(text) = part else {
                self.0.push(part);
                continue;
            };
            for (at, piece) in text.split(value).enumerate() {
                if at > 0 {
                    self.0.push(Part::Code(code.to_owned()));
                }
                if !piece.is_empty() {
                    self.0.push(Part::Literal(piece.to_owned()));
                }
            }
        }
    }

    /// The same if the value is alone between separators, `?`, and both ends.
    pub(crate) fn replace_between(&mut self, value: &str, code: &str, separators: &str) {
        let ends = |c: Option<char>| c.is_none_or(|c| c == '?' || separators.contains(c));
        let parts = std::mem::take(&mut self.0);
        let count = parts.len();
        for (nth, part) in parts.into_iter().enumerate() {
            let Part::Literal(text) = part else {
                self.0.push(part);
                continue;
            };
            let mut from = 0;
            for (at, _) in text.match_indices(value) {
                let after = &text[at + value.len()..];
                let is_first = nth > 0 && at == 0;
                let is_last = nth + 1 < count && after.is_empty();
                let stands_alone =
                    ends(text[..at].chars().next_back()) && ends(after.chars().next());
                if at < from || is_first || is_last || !stands_alone {
                    continue;
                }
                if at > from {
                    self.0.push(Part::Literal(text[from..at].to_owned()));
                }
                self.0.push(Part::Code(code.to_owned()));
                from = at + value.len();
            }
            if from < text.len() {
                self.0.push(Part::Literal(text[from..].to_owned()));
            }
        }
    }

    /// As a template.
    pub(crate) fn template(&self) -> String {
        // A brace at the end of one part must not combine with the next.
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => out.push_str(&yaml::literal(text)),
                Part::Code(code) => {
                    out.push_str("{{ ");
                    out.push_str(code);
                    out.push_str(" }}");
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_wherever_they_stand() {
        let mut text = Text::literal("a=17&b={17}");
        text.replace("17", "id");
        assert_eq!(text.template(), "a={{ id }}&b={{ '{' }}{{ id }}}");
        assert_eq!(text.as_literal(), None);
        let mut all = Text::literal("17");
        all.replace("17", "id");
        assert_eq!(all, Text::code("id"));
        assert_eq!(Text::default().as_literal(), Some(""));
    }
}
