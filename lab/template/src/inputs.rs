//! Inputs of a workload from its environment: environment variables, some of them secret, and numbers of counters.
//!
//! Secrets are in requests and nowhere else: nothing here prints them, and [`Inputs::mask`] removes them from texts that
//! are stored or shown.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::key::Key;

/// A value that a template requests: `env('NAME')` or `secret('NAME')`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputName {
    /// The name of the environment variable.
    pub name: String,
    /// Whether its value is never shown.
    pub secret: bool,
}

/// The source of numbers of shared counters.
pub trait Numbers: Send + Sync {
    /// Returns the next number of this counter, which no other caller gets; `None` if the counter does not exist.
    fn next(&self, counter: &str) -> Option<u64>;
}

/// All inputs of a workload, with the known values.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Inputs {
    values: Vec<(InputName, Option<Box<str>>)>,
    /// The workload's named keys.
    #[serde(default)]
    keys: Vec<Key>,
    /// Set if there are counters, and the workload is running.
    #[serde(skip)]
    numbers: Option<Arc<dyn Numbers>>,
}

impl Inputs {
    /// Creates the inputs without any values.
    #[must_use]
    pub fn unknown(mut names: Vec<InputName>) -> Self {
        names.sort();
        names.dedup();
        Self {
            values: names.into_iter().map(|name| (name, None)).collect(),
            keys: Vec::new(),
            numbers: None,
        }
    }

    /// Returns a copy with counters.
    #[must_use]
    pub fn counting(&self, numbers: Arc<dyn Numbers>) -> Self {
        Self {
            numbers: Some(numbers),
            ..self.clone()
        }
    }

    /// Returns the next number of a counter.
    pub(crate) fn next_number(&self, counter: &str) -> Option<u64> {
        self.numbers.as_ref()?.next(counter)
    }

    /// Returns the same inputs with named keys.
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<Key>) -> Self {
        self.keys = keys;
        self
    }

    /// Returns the named keys.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the key with this name.
    pub(crate) fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns the requested values.
    pub fn names(&self) -> impl Iterator<Item = &InputName> {
        self.values.iter().map(|(name, _)| name)
    }

    /// Returns the known values by their names.
    pub fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        let known = self.values.iter();
        known.filter_map(|(asked, value)| Some((asked.name.as_str(), value.as_deref()?)))
    }

    /// Sets the value of a name, whether or not it is secret.
    pub fn set(&mut self, name: &str, value: &str) {
        for (input, known) in &mut self.values {
            if input.name == name {
                *known = Some(value.into());
            }
        }
    }

    /// Returns all known secrets, with a key as its lines.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secret_values().chain(self.secret_lines())
    }

    /// Returns the values of known secrets.
    pub(crate) fn secret_values(&self) -> impl Iterator<Item = &str> {
        let secret = self.values.iter().filter(|(input, _)| input.secret);
        secret.filter_map(|(_, value)| value.as_deref())
    }

    /// Returns the lines of known keys.
    pub(crate) fn secret_lines(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().flat_map(Key::secret_lines)
    }

    /// Returns a requested value, if it is known.
    pub(crate) fn value(&self, name: &str, secret: bool) -> Option<&str> {
        let found = |(input, _): &&(InputName, _)| input.name == name && input.secret == secret;
        self.values.iter().find(found)?.1.as_deref()
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
