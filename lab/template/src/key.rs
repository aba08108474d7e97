//! The named keys of a workload. A key goes to generators with the workload, and nowhere else: nothing here prints it.

use std::borrow::Cow;
use std::fmt;

use lab_filters::{Encoding, KeyKind, sha256};
use serde::{Deserialize, Serialize};

/// Lines of PEM are looked for from this length on; shorter ones might be anything.
const LEAST_LINE: usize = 32;

/// Where a key is from.
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
    /// As templates name it.
    pub name: String,
    /// Where it is from.
    pub source: KeySource,
    /// How its text is encoded, if it is.
    encoding: Option<Encoding>,
    /// Its text, where that is known.
    text: Option<Box<str>>,
    /// What it is, where it was read here.
    #[serde(skip)]
    kind: Option<KeyKind>,
}

impl Key {
    /// A key whose text is not known yet.
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

    /// The same with its text.
    ///
    /// # Errors
    /// In words: what is wrong with the text.
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

    /// Why it is no key of this kind for `user`, such as an algorithm; `None` where it is, or isn't known.
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

    /// The environment variable that it is in.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        match &self.source {
            KeySource::File(_) => None,
            KeySource::Secret(name) => Some(name),
        }
    }

    /// SHA-256 of a file, in hex. A secret of the environment has none: it might be guessed from that.
    #[must_use]
    pub fn file_sha256(&self) -> Option<String> {
        let is_file = matches!(self.source, KeySource::File(_));
        let text = self.text.as_ref().filter(|_| is_file)?;
        Some(sha256(text.as_bytes()))
    }

    /// The key itself.
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

    /// The lines of a file that are masked. A variable of the environment is masked as other secrets are.
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
