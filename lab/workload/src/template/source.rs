//! A template as text, with all that compiling it again takes: what travels to another process.

use serde::{Deserialize, Serialize};

use super::Template;
use super::error::TemplateError;
use super::escape::Escape;
use super::symbols::Symbols;
use crate::scope::Slot;

/// A stretch of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    text: Box<str>,
    /// How what is substituted is escaped; `None` where nothing is, whatever braces the text holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    escape: Option<Escape>,
}

/// All that makes a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TemplateSource {
    parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sets: Vec<(Slot, TemplateSource)>,
}

impl Part {
    pub(super) fn code(text: &str, escape: Escape) -> Self {
        Self {
            text: text.into(),
            escape: Some(escape),
        }
    }

    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.into(),
            escape: None,
        }
    }

    fn compile(&self, symbols: Symbols<'_>) -> Result<Template, TemplateError> {
        match self.escape {
            Some(escape) => Template::parse_with(&self.text, symbols, escape),
            None => Ok(Template::literal(&self.text)),
        }
    }
}

/// Joins neighbouring literals: a JSON body is mostly made of them.
pub(super) fn merge_literals(parts: impl Iterator<Item = Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match merged.last_mut() {
            Some(last) if last.escape.is_none() && part.escape.is_none() => {
                last.text = format!("{}{}", last.text, part.text).into();
            }
            _ => merged.push(part),
        }
    }
    merged
}

impl Template {
    /// What it was compiled from.
    pub(crate) fn to_source(&self) -> TemplateSource {
        let set = |(slot, template): &(Slot, Self)| (*slot, template.to_source());
        TemplateSource {
            parts: self.parts.to_vec(),
            sets: self.sets.iter().map(set).collect(),
        }
    }

    /// Compiles it.
    pub(crate) fn from_source(
        source: &TemplateSource,
        symbols: Symbols<'_>,
    ) -> Result<Self, TemplateError> {
        let compiled = source.parts.iter().map(|part| part.compile(symbols));
        let compiled = compiled.collect::<Result<Vec<_>, _>>()?;
        let set = |(slot, source): &(Slot, TemplateSource)| {
            Ok((*slot, Self::from_source(source, symbols)?))
        };
        let sets = source.sets.iter().map(set).collect::<Result<_, _>>()?;
        Ok(Self::concatenate(&compiled).setting(sets))
    }
}
