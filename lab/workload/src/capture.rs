//! What an answer leaves behind for later requests, and where in it that stands.

use std::ops::Deref;

use lab_filters::{HtmlPath, JsonPath, XmlPath};
use serde::{Deserialize, Serialize};

use crate::scope::Slot;
use crate::template::Template;

/// Where a captured value comes from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Capture<T = Template> {
    /// The variable it is kept in.
    pub variable: String,
    /// The slot of that variable, for [`crate::UserScope`].
    pub slot: Slot,
    /// The place in the answer (or request).
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
    /// A cookie set by the answer.
    Cookie(String),
    /// The first group of a regular expression over the body.
    Regex(Box<Pattern>),
    /// The first group of all matches of a regular expression over the body, as a list.
    RegexAll(Box<Pattern>),
    /// All values at a path of the body as XML, as a list. An empty body gives an empty list.
    Xml(Box<XmlPath>),
    /// All values at a path of the body as HTML, as a list. Whatever a page is, a browser makes something
    /// of it.
    Html(Box<HtmlPath>),
    /// The rendered path of this request (`request.path`).
    RequestPath,
    /// The body as it is.
    Body,
    /// The status of the answer.
    Status,
}

/// A regular expression with a group, of bounded size.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(regex::Regex);

/// Why a text is no [`Pattern`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// It has no group, whose text would be kept.
    #[error("the regular expression has no group to keep")]
    NoGroup,
    /// It is no regular expression, or too large a one.
    #[error("{0}")]
    Unreadable(#[from] regex::Error),
}

impl Pattern {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// A text that is none, or one without a group.
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
    /// The same with another form of templates.
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
