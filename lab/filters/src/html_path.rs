//! The place of a value in an HTML page: a CSS selector, and an attribute of the selected elements.

use std::fmt;

use lol_html::Selector;
use serde::{Deserialize, Serialize};

/// Longest path as written.
const MAX_BYTES: usize = 1_000;

/// Elements of a page, and the part of them to keep: `(form input[name=csrf])@value`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HtmlPath {
    text: String,
    selector: Selector,
    attribute: Option<String>,
}

/// The error for a text that is no [`HtmlPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HtmlPathError(String);

impl HtmlPath {
    /// Parses a path: a selector in parentheses; `@name` after them keeps that attribute instead of the elements' text.
    ///
    /// # Errors
    /// Describes the fault.
    pub fn parse(text: &str) -> Result<Self, HtmlPathError> {
        let wrong = |what: &str| HtmlPathError(what.to_owned());
        let trimmed = text.trim();
        if trimmed.len() > MAX_BYTES {
            return Err(HtmlPathError(format!("it has more than {MAX_BYTES} bytes")));
        }
        let inner = trimmed
            .strip_prefix('(')
            .and_then(|rest| rest.rsplit_once(')'));
        let (selector, behind) = inner.ok_or_else(|| wrong("it isn't in parentheses"))?;
        let attribute = match behind.trim() {
            "" => None,
            behind => Some(behind.strip_prefix('@').filter(|name| is_attribute(name))),
        };
        let attribute = match attribute {
            Some(None) => return Err(wrong("behind the parentheses comes `@` and an attribute")),
            Some(Some(name)) => Some(name.to_ascii_lowercase()),
            None => None,
        };
        let parsed = selector.parse();
        let parsed = parsed.map_err(|error| HtmlPathError(format!("`{selector}`: {error}")))?;
        Ok(Self {
            text: trimmed.to_owned(),
            selector: parsed,
            attribute,
        })
    }

    /// Returns the text that it was parsed from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the selector of the elements.
    #[must_use]
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// Returns the attribute to keep; `None` keeps their text.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        self.attribute.as_deref()
    }
}

fn is_attribute(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_:.".contains(&b);
    !name.is_empty() && name.bytes().all(plain)
}

impl fmt::Debug for HtmlPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HtmlPath").field(&self.text).finish()
    }
}

impl TryFrom<String> for HtmlPath {
    type Error = HtmlPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<HtmlPath> for String {
    fn from(path: HtmlPath) -> Self {
        path.text
    }
}
