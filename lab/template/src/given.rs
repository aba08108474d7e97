//! Values that a workload asks of whoever runs it: variables of their environment, some of them secret, and numbers
//! of counters.
//!
//! What is secret is in the requests and nowhere else: nothing here prints it, and [`Given::mask`] takes it
//! out of texts that are kept or shown.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::key::Key;

/// A value that a template asks for: `env('NAME')` or `secret('NAME')`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asked {
    /// The name of the environment variable.
    pub name: String,
    /// Whether its value is shown nowhere.
    pub secret: bool,
}

/// What gives the numbers of counters that users share.
pub trait Numbers: Send + Sync {
    /// The next number of the counter of this name, which nobody else gets; `None` where there is no such counter.
    fn next(&self, counter: &str) -> Option<u64>;
}

/// All that a workload asks for, with the values that are known.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Given {
    values: Vec<(Asked, Option<Box<str>>)>,
    /// The workload's named keys.
    #[serde(default)]
    keys: Vec<Key>,
    /// Where there are counters, and somebody runs the workload.
    #[serde(skip)]
    numbers: Option<Arc<dyn Numbers>>,
}

impl Given {
    /// What is asked for, nothing of it known yet.
    #[must_use]
    pub fn unknown(mut asked: Vec<Asked>) -> Self {
        asked.sort();
        asked.dedup();
        Self {
            values: asked.into_iter().map(|asked| (asked, None)).collect(),
            keys: Vec::new(),
            numbers: None,
        }
    }

    /// The same with counters.
    #[must_use]
    pub fn counting(&self, numbers: Arc<dyn Numbers>) -> Self {
        Self {
            numbers: Some(numbers),
            ..self.clone()
        }
    }

    /// The next number of a counter.
    pub(crate) fn next_number(&self, counter: &str) -> Option<u64> {
        self.numbers.as_ref()?.next(counter)
    }

    /// The same with named keys.
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<Key>) -> Self {
        self.keys = keys;
        self
    }

    /// The named keys.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The key of this name.
    pub(crate) fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// What is asked for.
    pub fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.values.iter().map(|(asked, _)| asked)
    }

    /// Sets the value of a name, whether or not it is secret.
    pub fn set(&mut self, name: &str, value: &str) {
        for (asked, known) in &mut self.values {
            if asked.name == name {
                *known = Some(value.into());
            }
        }
    }

    /// All secrets that are known, a key in its lines.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secret_values().chain(self.secret_lines())
    }

    /// The values of secrets that are known.
    pub(crate) fn secret_values(&self) -> impl Iterator<Item = &str> {
        let secret = self.values.iter().filter(|(asked, _)| asked.secret);
        secret.filter_map(|(_, value)| value.as_deref())
    }

    /// The lines of keys that are known.
    pub(crate) fn secret_lines(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().flat_map(Key::secret_lines)
    }

    /// The value of what is asked for, if it is known.
    pub(crate) fn value(&self, name: &str, secret: bool) -> Option<&str> {
        let found = |(asked, _): &&(Asked, _)| asked.name == name && asked.secret == secret;
        self.values.iter().find(found)?.1.as_deref()
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.asked()).finish()
    }
}
