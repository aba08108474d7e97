//! Which values of a study are secret, and how texts are masked. It writes nothing.
//!
//! Names decide: a name of an environment variable, a parameter, or a `--set` that looks secret, or that the study
//! lists under `secrets:`. Beside such a name any value is masked; elsewhere its occurrences are masked if it is too
//! long to be part of other words.

use serde_json::Value;

use crate::secret_name::looks_secret;

/// The replacement of a secret; a study's second secret has a `2` after it, so that the two stay distinct.
const MASK: &str = "***";
/// Shorter values are not searched for in texts: they would match inside unrelated words.
const LOOKED_FOR: usize = 6;
/// The meaning of names in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Names that look secret mark secrets.
    Tell,
    /// Names are factors: a level is compared, and not secret just because its name looks so.
    AreLevels,
}

/// The secrets of a study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Names that the study lists.
    named: Vec<String>,
    /// Distinct values, in the order found.
    values: Vec<String>,
}

impl Secrets {
    /// Creates the secrets of these listed names, and of names that look secret.
    #[must_use]
    pub fn named(named: Vec<String>) -> Self {
        Self {
            named,
            values: Vec::new(),
        }
    }

    /// Returns true if the value of this name is secret; in a path of keys, the last one counts.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        let last = name.rsplit('.').next().unwrap_or(name);
        let listed = |one: &String| one == name || one == last;
        self.named.iter().any(listed) || looks_secret(last)
    }

    /// Returns true if no secret value is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns true if the study lists this name.
    pub fn is_listed(&self, name: &str) -> bool {
        self.named.iter().any(|one| one == name)
    }

    /// Adds a value that is known to be secret.
    pub fn learn(&mut self, value: &str) {
        let is_text = !value.trim().is_empty() && !value.contains("{{");
        if is_text && !self.values.iter().any(|known| known == value) {
            self.values.push(value.to_owned());
        }
    }

    /// Adds the secrets in a system's variables in one cell: a name may be a factor, and a value an address with a
    /// password.
    pub fn learn_env(&mut self, env: &[(String, String)]) {
        for (name, value) in env {
            if self.is_secret(name) {
                self.learn(value);
            } else if let Some(password) = password_of(value) {
                self.learn(password);
            }
        }
    }

    /// Returns a value as it may be shown beside its name.
    #[must_use]
    pub fn shown(&self, name: &str, value: &str) -> String {
        if self.is_secret(name) && !value.is_empty() {
            return self.mask_of(value);
        }
        let masked = self.masked(value);
        match password_of(&masked) {
            Some(password) => {
                let hidden = format!(":{}@", self.mask_of(password));
                masked.replacen(&format!(":{password}@"), &hidden, 1)
            }
            None => masked,
        }
    }

    /// Returns `--set` overrides as they may be shown.
    #[must_use]
    pub fn shown_overrides(&self, overrides: &[(String, String)]) -> Vec<(String, String)> {
        let shown = |(key, value): &(String, String)| (key.clone(), self.shown(key, value));
        overrides.iter().map(shown).collect()
    }

    /// Masks all secrets in a text.
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        self.replaced(text, |value| self.mask_of(value))
    }

    /// Masks the secrets in a file's bytes; `None` if they contain none.
    #[must_use]
    pub fn masked_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let holds = |value: &&String| {
            let value = value.as_bytes();
            value.len() >= LOOKED_FOR && bytes.windows(value.len()).any(|part| part == value)
        };
        self.values.iter().find(holds)?;
        // Invalid UTF-8 is replaced; it only occurs in logs, beside a secret.
        Some(self.masked(&String::from_utf8_lossy(bytes)).into_bytes())
    }

    /// Masks with one star for each byte, so that offsets in the text are unchanged.
    pub fn starred(&self, text: &str) -> String {
        self.replaced(text, |value| "*".repeat(value.len()))
    }

    fn replaced(&self, text: &str, by: impl Fn(&str) -> String) -> String {
        let mut found: Vec<&String> = self
            .values
            .iter()
            .filter(|value| value.len() >= LOOKED_FOR)
            .collect();
        // One secret may be part of another.
        found.sort_by_key(|value| std::cmp::Reverse(value.len()));
        found.iter().fold(text.to_owned(), |text, value| {
            if text.contains(value.as_str()) {
                text.replace(value.as_str(), &by(value))
            } else {
                text
            }
        })
    }

    fn mask_of(&self, value: &str) -> String {
        match self.values.iter().position(|known| known == value) {
            None | Some(0) => MASK.to_owned(),
            Some(at) => format!("{MASK}{}", at + 1),
        }
    }

    /// Masks a plan in its form on disk.
    pub fn mask_plan(&self, plan: &mut Value) {
        for trials in ["/trials", "/search/cells"] {
            let trials = plan.pointer_mut(trials).and_then(Value::as_array_mut);
            for trial in trials.into_iter().flatten() {
                self.mask_at(trial, &["/system", "/parameters"], Names::Tell);
                self.mask_at(trial, &["/cell"], Names::AreLevels);
            }
        }
        let texts = [
            "/title",
            "/question/about",
            "/question/matrix",
            "/question/cells",
        ];
        self.mask_at(plan, &texts, Names::AreLevels);
        let sessions = plan.pointer_mut("/question/workload/sessions");
        for session in sessions.and_then(Value::as_array_mut).into_iter().flatten() {
            self.mask_at(session, &["/parameters"], Names::Tell);
        }
    }

    /// Returns a document to hash, without secrets, which must not be guessable from the hash.
    #[must_use]
    pub fn without(&self, mut document: Value) -> Value {
        self.mask(&mut document, Names::Tell);
        document
    }

    fn mask_at(&self, document: &mut Value, places: &[&str], names: Names) {
        for place in places {
            if let Some(value) = document.pointer_mut(place) {
                self.mask(value, names);
            }
        }
    }

    /// Masks all texts of a document, and the values of secret names. Keys are unchanged.
    fn mask(&self, document: &mut Value, names: Names) {
        match document {
            Value::String(text) => *text = self.masked(text),
            Value::Array(items) => match items.as_mut_slice() {
                // An environment variable.
                [Value::String(name), Value::String(value)] if names == Names::Tell => {
                    *value = self.shown(name, value);
                }
                items => items.iter_mut().for_each(|item| self.mask(item, names)),
            },
            Value::Object(fields) => {
                for (name, value) in fields {
                    let secret =
                        names == Names::Tell && self.is_secret(name) || self.is_listed(name);
                    match scalar(value).filter(|_| secret) {
                        Some(text) => *value = Value::String(self.mask_of(&text)),
                        None => self.mask(value, names),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the password in an address: `postgres://user:password@host`.
pub fn password_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty() && !password.starts_with(MASK)).then_some(password)
}

#[cfg(test)]
mod tests;
