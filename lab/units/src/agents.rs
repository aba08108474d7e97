//! Remote agents, as files name them: how many, which, and their parts of a load.

use std::fmt;

use crate::text_error::TextError;

/// Remote agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agents {
    /// The selection of agents.
    pub which: Which,
    /// Relative parts of the load, one for each name, in their order; empty if each agent has its own. None is 0.
    pub weights: Vec<u32>,
}

/// The selection of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// Any free agents; at least one.
    Any(u32),
    /// The agents with these names, at least one, each once.
    Named(Vec<String>),
    /// The agents with a label.
    Labelled {
        /// Its name.
        label: String,
        /// Its value.
        value: String,
        /// How many; all by default.
        count: Option<u32>,
    },
}

impl fmt::Display for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.which {
            Which::Any(1) => f.write_str("1 agent"),
            Which::Any(count) => write!(f, "{count} agents"),
            Which::Named(names) if self.weights.is_empty() => {
                write!(f, "agents {}", names.join(", "))
            }
            Which::Named(names) => {
                let each = names.iter().zip(&self.weights);
                let each: Vec<String> = each
                    .map(|(name, part)| format!("{name} ({part})"))
                    .collect();
                write!(f, "agents {}", each.join(", "))
            }
            Which::Labelled {
                label,
                value,
                count: None,
            } => write!(f, "all agents with {label}={value}"),
            Which::Labelled {
                label,
                value,
                count: Some(count),
            } => {
                let s = if *count == 1 { "" } else { "s" };
                write!(f, "{count} agent{s} with {label}={value}")
            }
        }
    }
}

/// Parses a label: `KEY=VALUE`.
///
/// # Errors
/// When the text is none.
pub fn label(text: &str) -> Result<(String, String), TextError> {
    let fits = |word: &str| (1..=64).contains(&word.len()) && !word.contains(char::is_control);
    match text.trim().split_once('=') {
        Some((key, value)) if fits(key) && fits(value) => Ok((key.to_owned(), value.to_owned())),
        _ => {
            let error = TextError::new(format!("`{text}` is no label of an agent"), 0..text.len());
            Err(error.help("write KEY=VALUE, such as `site=eu`: `plimsoll agent --label site=eu`"))
        }
    }
}

/// Parses the name of an agent, as `plimsoll agents invite` accepts it.
///
/// # Errors
/// When the text is none.
pub fn name(text: &str) -> Result<String, TextError> {
    let name = text.trim();
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = !name.starts_with('-') && !name.ends_with('-');
    if (1..=32).contains(&name.len()) && ends && name.bytes().all(fits) {
        return Ok(name.to_owned());
    }
    let error = TextError::new(format!("`{text}` is no name of an agent"), 0..text.len());
    Err(error.help("a name is a-z, 0-9, and - between them, such as `gen-3`"))
}

/// Parses the agent of a system: its name, or one of its labels.
///
/// # Errors
/// When the text is neither.
pub fn machine(text: &str) -> Result<String, TextError> {
    match text.contains('=') {
        true => label(text).map(|(key, value)| format!("{key}={value}")),
        false => name(text),
    }
}

#[cfg(test)]
mod tests;
