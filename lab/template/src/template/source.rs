//! The serialised form of a template: its text with all inputs of its compilation.

use serde::{Deserialize, Serialize};

use super::compiled::Template;
use super::error::TemplateError;
use super::part::Part;
use super::symbols::Symbols;
use crate::scope::Slot;

/// All inputs of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateSource {
    parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sets: Vec<(Slot, TemplateSource)>,
}

impl Template {
    /// Returns the source that it was compiled from.
    pub fn to_source(&self) -> TemplateSource {
        let set = |(slot, template): &(Slot, Self)| (*slot, template.to_source());
        TemplateSource {
            parts: self.parts().to_vec(),
            sets: self.sets().iter().map(set).collect(),
        }
    }

    /// Compiles it.
    pub fn from_source(
        source: &TemplateSource,
        symbols: Symbols<'_>,
    ) -> Result<Self, TemplateError> {
        let compiled = source.parts.iter().map(|part| compile(part, symbols));
        let compiled = compiled.collect::<Result<Vec<_>, _>>()?;
        let set = |(slot, source): &(Slot, TemplateSource)| {
            Ok((*slot, Self::from_source(source, symbols)?))
        };
        let sets = source.sets.iter().map(set).collect::<Result<_, _>>()?;
        Ok(Self::concatenate(&compiled).setting(sets))
    }
}

fn compile(part: &Part, symbols: Symbols<'_>) -> Result<Template, TemplateError> {
    match part.escape {
        Some(escape) => Template::parse_with(&part.text, symbols, escape),
        None => Ok(Template::literal(&part.text)),
    }
}
