//! The named keys of a workload. A key is sent to generators only, with the workload: nothing here prints it.

use std::borrow::Cow;
use std::fmt;

use lab_filters::{Encoding, KeyKind, sha256};
use serde::{Deserialize, Serialize};

/// Minimum length of PEM lines to mask; shorter ones are too common.
const LEAST_LINE: usize = 32;

/// The source of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// A file, as the workload names it.
    File(String),
    /// An environment variable.
    Secret(String),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::File(name) | Self::Secret(name)) = self;
        write!(f, "`{name}`")
    }
}

/// A named key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Key {
    /// Its name in templates.
    pub name: String,
    /// Its source.
    pub source: KeySource,
    /// How its text is encoded, if it is.
    encoding: Option<Encoding>,
    /// Its text, if known.
    text: Option<Box<str>>,
    /// Its kind, if it was read here.
    #[serde(skip)]
    kind: Option<KeyKind>,
}

impl Key {
    /// Creates a key without its text.
    #[must_use]
    pub fn unknown(name: &str, source: KeySource, encoding: Option<Encoding>) -> Self {
        Self {
            name: name.to_owned(),
            source,
            encoding,
            text: None,
            kind: None,
        }
    }

    /// Returns the key with its text.
    ///
    /// # Errors
    /// Describes what is wrong with the text.
    pub fn with_text(mut self, text: &str) -> Result<Self, String> {
        self.text = Some(text.into());
        let of_source = |why: String| format!("{} {why}", self.source);
        self.kind = Some(match (self.encoding, &self.source) {
            (Some(encoding), _) => {
                let decoded = encoding.decode(text.trim_ascii().as_bytes());
                decoded.map_err(|why| of_source(format!("can't be decoded: {why}")))?;
                KeyKind::Secret
            }
            (None, KeySource::File(_)) => match KeyKind::of(text).map_err(of_source)? {
                KeyKind::Secret => return Err(of_source("holds no private key as PEM".to_owned())),
                kind => kind,
            },
            (None, KeySource::Secret(_)) => KeyKind::of(text).map_err(of_source)?,
        });
        Ok(self)
    }

    /// Returns why the key doesn't have this kind for `user`, such as an algorithm; `None` if it does, or isn't known.
    #[must_use]
    pub fn mismatch(&self, wanted: KeyKind, user: &str) -> Option<String> {
        let kind = self.kind.filter(|kind| *kind != wanted)?;
        Some(format!(
            "`{user}` needs {}; {} holds {}",
            wanted.name(),
            self.source,
            kind.name()
        ))
    }

    /// Returns the environment variable that holds it.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        match &self.source {
            KeySource::File(_) => None,
            KeySource::Secret(name) => Some(name),
        }
    }

    /// Returns the SHA-256 of a file, in hex. A secret in the environment has none: the hash would help to guess it.
    #[must_use]
    pub fn file_sha256(&self) -> Option<String> {
        let is_file = matches!(self.source, KeySource::File(_));
        let text = self.text.as_ref().filter(|_| is_file)?;
        Some(sha256(text.as_bytes()))
    }

    /// Returns the key's bytes.
    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>, String> {
        let unset = || match &self.source {
            KeySource::File(name) => format!("`{name}` was not read"),
            KeySource::Secret(name) => format!("the environment variable `{name}` is not set"),
        };
        let text = self.text.as_ref().ok_or_else(unset)?;
        match self.encoding {
            None => Ok(Cow::Borrowed(text.as_bytes())),
            Some(encoding) => encoding
                .decode(text.trim_ascii().as_bytes())
                .map(Cow::Owned),
        }
    }

    /// Returns the lines of a file to mask. An environment variable is masked like other secrets.
    pub(crate) fn secret_lines(&self) -> impl Iterator<Item = &str> {
        let is_file = matches!(self.source, KeySource::File(_));
        let text = self.text.as_deref().filter(|_| is_file);
        let lines = text.into_iter().flat_map(str::lines).map(str::trim);
        lines.filter(|line| line.len() >= LEAST_LINE && !line.starts_with("-----"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.source)
    }
}
