//! Values captured from a response for later requests, and their places in it.

use std::ops::Deref;

use lab_filters::{HtmlPath, JsonPath, XmlPath};
use serde::{Deserialize, Serialize};

use crate::scope::Slot;
use crate::template::Template;

/// The source of a captured value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Capture<T = Template> {
    /// The variable for the value.
    pub variable: String,
    /// The slot of that variable, for [`crate::UserScope`].
    pub slot: Slot,
    /// The place in the response (or request).
    pub source: CaptureSource<T>,
}

/// The place that a capture reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureSource<T = Template> {
    /// All matches of an RFC 9535 JSON path in the body, as a list of strings. An empty body or no
    /// match gives an empty list.
    JsonPath(Box<JsonPath>),
    /// As above, for a path that itself names variables: rendered and compiled per answer.
    JsonPathTemplate(T),
    /// A response header, by lower-case name.
    Header(String),
    /// A cookie set by the response.
    Cookie(String),
    /// The first group of a regular expression over the body.
    Regex(Box<Pattern>),
    /// The first group of all matches of a regular expression over the body, as a list.
    RegexAll(Box<Pattern>),
    /// All values at a path of the body as XML, as a list. An empty body gives an empty list.
    Xml(Box<XmlPath>),
    /// All values at a path of the body as HTML, as a list. Any page can be parsed, as in a browser.
    Html(Box<HtmlPath>),
    /// The rendered path of this request (`request.path`).
    RequestPath,
    /// The body as it is.
    Body,
    /// The status of the response.
    Status,
}

/// A regular expression with a group, of bounded size.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(regex::Regex);

/// Why a text is no [`Pattern`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// It has no group, whose text would be captured.
    #[error("the regular expression has no group to keep")]
    NoGroup,
    /// It is not a regular expression, or too large.
    #[error("{0}")]
    Unreadable(#[from] regex::Error),
}

impl Pattern {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// When the text is not a regular expression, or has no group.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let regex = lab_filters::regex(text)?;
        match regex.captures_len() {
            0 | 1 => Err(PatternError::NoGroup),
            _ => Ok(Self(regex)),
        }
    }
}

impl Deref for Pattern {
    type Target = regex::Regex;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl<T> CaptureSource<T> {
    /// Maps its templates.
    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<CaptureSource<U>, E> {
        Ok(match self {
            Self::JsonPath(path) => CaptureSource::JsonPath(path.clone()),
            Self::JsonPathTemplate(template) => CaptureSource::JsonPathTemplate(map(template)?),
            Self::Header(name) => CaptureSource::Header(name.clone()),
            Self::Cookie(name) => CaptureSource::Cookie(name.clone()),
            Self::Regex(pattern) => CaptureSource::Regex(pattern.clone()),
            Self::RegexAll(pattern) => CaptureSource::RegexAll(pattern.clone()),
            Self::Xml(path) => CaptureSource::Xml(path.clone()),
            Self::Html(path) => CaptureSource::Html(path.clone()),
            Self::RequestPath => CaptureSource::RequestPath,
            Self::Body => CaptureSource::Body,
            Self::Status => CaptureSource::Status,
        })
    }
}

impl<T> Capture<T> {
    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Capture<U>, E> {
        Ok(Capture {
            variable: self.variable.clone(),
            slot: self.slot,
            source: self.source.try_map(map)?,
        })
    }
}
