//! The place of a value in an XML document: `//response/href`, `feed/entry/link@href`.

use serde::{Deserialize, Serialize};

/// Longest path.
const MAX_STEPS: usize = 50;

/// A path of elements by their local names, and of an attribute of the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct XmlPath {
    text: String,
    /// Whether the first name matches at any depth.
    anywhere: bool,
    /// At least one; `*` is any name.
    names: Vec<String>,
    attribute: Option<String>,
}

/// The error for a text that is no [`XmlPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct XmlPathError(String);

impl XmlPath {
    /// Parses a path: names between `/`, `//` before the first for any depth, `@name` at the end for an attribute.
    /// Namespace prefixes are omitted: `href`, not `d:href`.
    ///
    /// # Errors
    /// Describes the fault.
    pub fn parse(text: &str) -> Result<Self, XmlPathError> {
        let trimmed = text.trim();
        let (path, attribute) = match trimmed.split_once('@') {
            Some((path, attribute)) => (path, Some(attribute)),
            None => (trimmed, None),
        };
        let (anywhere, path) = match path.strip_prefix("//") {
            Some(path) => (true, path),
            None => (false, path.strip_prefix('/').unwrap_or(path)),
        };
        let names: Vec<String> = path.split('/').map(str::to_owned).collect();
        if names.len() > MAX_STEPS {
            return Err(XmlPathError(format!("it has more than {MAX_STEPS} names")));
        }
        for name in names.iter().map(String::as_str).chain(attribute) {
            check(name)?;
        }
        Ok(Self {
            text: trimmed.to_owned(),
            anywhere,
            names,
            attribute: attribute.map(str::to_owned),
        })
    }

    /// Returns the text that it was parsed from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the attribute to read; `None` for the text of the element.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        self.attribute.as_deref()
    }

    /// Returns true if an element matches, by the local names from the root down to it.
    pub fn matches<T: AsRef<str>>(&self, open: &[T]) -> bool {
        let from = match self.anywhere {
            true => open.len().checked_sub(self.names.len()),
            false => (open.len() == self.names.len()).then_some(0),
        };
        let same = |(name, open): (&String, &T)| name == "*" || name == open.as_ref();
        from.is_some_and(|from| self.names.iter().zip(&open[from..]).all(same))
    }
}

fn check(name: &str) -> Result<(), XmlPathError> {
    let word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if name == "*" || (!name.is_empty() && name.chars().all(word)) {
        return Ok(());
    }
    let help = match name.contains(':') {
        true => "; leave out the prefix of its namespace",
        false => "",
    };
    Err(XmlPathError(format!(
        "`{name}` is not the name of an element{help}"
    )))
}

impl TryFrom<String> for XmlPath {
    type Error = XmlPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<XmlPath> for String {
    fn from(path: XmlPath) -> Self {
        path.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_from_the_root_or_from_anywhere() {
        let check = |path: &str, open: &[&str], is: bool| {
            assert_eq!(
                XmlPath::parse(path).unwrap().matches(open),
                is,
                "{path} {open:?}"
            );
        };
        check("a/b", &["a", "b"], true);
        check("/a/b", &["a", "b"], true);
        check("a/b", &["x", "a", "b"], false);
        check("//b", &["x", "a", "b"], true);
        check("//a/b", &["x", "a", "b"], true);
        check("//a/b", &["b"], false);
        check("a/*/c", &["a", "b", "c"], true);
        check("a", &["a", "b"], false);
        assert_eq!(XmlPath::parse("a@id").unwrap().attribute(), Some("id"));
        for wrong in ["", "/", "a//b", "a b", "d:href", "a@", "@id", "a[1]"] {
            assert!(XmlPath::parse(wrong).is_err(), "{wrong}");
        }
    }
}
