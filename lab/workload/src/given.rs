//! Values that a workload asks of whoever runs it: variables of their environment, some of them secret.
//!
//! What is secret is in the requests and nowhere else: nothing here prints it, and [`Given::mask`] takes it
//! out of texts that are kept or shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that a template asks for: `env('NAME')` or `secret('NAME')`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asked {
    /// The name of the environment variable.
    pub name: String,
    /// Whether its value is shown nowhere.
    pub secret: bool,
}

/// All that a workload asks for, with the values that are known.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Given(Vec<(Asked, Option<Box<str>>)>);

impl Given {
    /// What is asked for, nothing of it known yet.
    #[must_use]
    pub fn unknown(mut asked: Vec<Asked>) -> Self {
        asked.sort();
        asked.dedup();
        Self(asked.into_iter().map(|asked| (asked, None)).collect())
    }

    /// What is asked for.
    pub fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.0.iter().map(|(asked, _)| asked)
    }

    /// Sets the value of a name, whether or not it is secret.
    pub fn set(&mut self, name: &str, value: &str) {
        for (asked, known) in &mut self.0 {
            if asked.name == name {
                *known = Some(value.into());
            }
        }
    }

    /// All secrets that are known.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let secret = self.0.iter().filter(|(asked, _)| asked.secret);
        secret.filter_map(|(_, value)| value.as_deref())
    }

    /// The value of what is asked for, if it is known.
    pub(crate) fn value(&self, name: &str, secret: bool) -> Option<&str> {
        let found = |(asked, _): &&(Asked, _)| asked.name == name && asked.secret == secret;
        self.0.iter().find(found)?.1.as_deref()
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.asked()).finish()
    }
}
