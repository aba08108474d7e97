//! Readers of single options: each is absent, readable, or refused.

use std::time::Duration;

use lab_units::units::{k6_duration, k6_milliseconds};
use serde_json::Value;

use crate::script::{Refused, Script};

/// The maximum of a time.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The options of a script or of one of its scenarios.
pub(super) struct Options<'a> {
    script: &'a Script<'a>,
    values: &'a Value,
    /// The scenario.
    name: Option<&'a str>,
    refused: &'a mut Vec<Refused>,
}

impl<'a> Options<'a> {
    /// Those of the script itself.
    pub(super) fn of(script: &'a Script<'a>, refused: &'a mut Vec<Refused>) -> Self {
        Self {
            script,
            values: script.options,
            name: None,
            refused,
        }
    }

    /// Those of a scenario.
    pub(super) fn of_scenario(
        script: &'a Script<'a>,
        (name, values): (&'a str, &'a Value),
        refused: &'a mut Vec<Refused>,
    ) -> Self {
        Self {
            script,
            values,
            name: Some(name),
            refused,
        }
    }

    /// Refuses an option.
    pub(super) fn refuse(&mut self, key: &str, message: String, help: &str) {
        let keys = [self.name.map(|_| "scenarios"), self.name, Some(key)];
        let keys: Vec<&str> = keys.into_iter().flatten().collect();
        let refused = self.script.refused(&keys, message, help);
        self.refused.push(refused);
    }

    /// The names of all.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let all = self.values.as_object().into_iter().flatten();
        all.map(|(key, _)| key.as_str())
    }

    /// Text after the name of an option.
    pub(super) fn place(&self) -> String {
        let name = self.name;
        name.map_or_else(String::new, |name| format!(" of the scenario `{name}`"))
    }

    /// The option, unless it is absent; without a value it is absent, too.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// A name.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    /// A number of 0 or more.
    pub(super) fn number(&mut self, key: &str) -> Option<f64> {
        let value = self.get(key)?;
        self.number_of(key, value)
    }

    /// A whole number of 1 or more.
    pub(super) fn whole(&mut self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        let number = self.number_of(key, value)?;
        if (1.0..=1e15).contains(&number) && number.fract() == 0.0 {
            return Some(number as u64);
        }
        let message = format!(
            "`{key}`{} must be a whole number of at least 1, not {value}",
            self.place()
        );
        self.refuse(key, message, &format!("write `{key}: 10`"));
        None
    }

    /// A number of users.
    pub(super) fn users(&mut self, key: &str) -> Option<u32> {
        let users = self.whole(key)?;
        Some(u32::try_from(users).unwrap_or(u32::MAX))
    }

    /// A time.
    pub(super) fn time(&mut self, key: &str) -> Option<Duration> {
        let value = self.get(key)?;
        self.time_of(key, value)
    }

    /// Reads a number, which may be a text, as variables are.
    fn number_of(&mut self, key: &str, value: &Value) -> Option<f64> {
        let number = match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        };
        let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
        if number.is_none() {
            let message = format!("`{key}`{} must be a number, not {value}", self.place());
            self.refuse(key, message, "write a number of 0 or more");
        }
        number
    }

    fn time_of(&mut self, key: &str, value: &Value) -> Option<Duration> {
        let time = match value {
            Value::Number(ms) => ms.as_f64().and_then(k6_milliseconds),
            Value::String(text) => k6_duration(text),
            _ => None,
        };
        let time = time.filter(|time| *time <= LONGEST);
        if time.is_none() {
            let message = format!(
                "`{key}`{} must be a duration such as '30s', not {value}",
                self.place()
            );
            self.refuse(key, message, "write a number and a unit: '30s', '1m30s'");
        }
        time
    }

    /// The value of an option that must be given; refuses its absence.
    pub(super) fn needed<T>(&mut self, key: &str, value: Option<T>, example: &str) -> Option<T> {
        if value.is_none() && self.get(key).is_none() {
            let message = format!("`{key}`{} is missing", self.place());
            self.refuse(key, message, &format!("write `{example}`"));
        }
        value
    }

    /// The levels and lengths of stages; `None` if there are none.
    pub(super) fn stages(&mut self) -> Option<Vec<(f64, Duration)>> {
        let value = self.get("stages")?;
        const HELP: &str = "write `stages: [{ duration: '30s', target: 20 }]`";
        let Some(list) = value.as_array().filter(|list| !list.is_empty()) else {
            let message = format!(
                "`stages`{} must be a list of stages, not {value}",
                self.place()
            );
            self.refuse("stages", message, HELP);
            return None;
        };
        let mut stages = Vec::new();
        for one in list {
            let (target, length) = (one.get("target"), one.get("duration"));
            let (Some(target), Some(length)) = (target, length) else {
                let message = format!(
                    "a stage{} needs `target` and `duration`: {one}",
                    self.place()
                );
                self.refuse("stages", message, HELP);
                continue;
            };
            let level = self.number_of("target", target);
            stages.extend(level.zip(self.time_of("duration", length)));
        }
        Some(stages)
    }
}
