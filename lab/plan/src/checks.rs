//! The validity checks of a trial: the question, cause, limits, and advice of each, and the limits that a study sets.
//! Data only: `lab-trial` judges.

mod limits;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use limits::*;
pub use table::{Cause, Check, CheckId};

/// Limits that a study sets itself, by [`Limit::key`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(pub BTreeMap<String, Set>);

/// A limit that a study sets; omitted values keep their defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Replaces [`Limit::warn`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn: Option<f64>,
    /// Replaces [`Limit::invalid`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<f64>,
}

/// A limit in force; infinite where there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InForce {
    /// The check warns above this.
    pub warn: f64,
    /// The trial is invalid above this.
    pub invalid: f64,
}

impl Limits {
    /// Returns true if the study keeps all limits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys of the study that are no longer judged, each with the reason.
    pub fn retired(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = RETIRED.iter().copied();
        all.filter(move |(key, _)| self.0.contains_key(*key))
    }

    /// The study's value of a limit. The warning limit never exceeds the one that invalidates a trial.
    #[must_use]
    pub fn of(&self, limit: &Limit) -> InForce {
        let set = self.0.get(limit.key).copied().unwrap_or_default();
        let invalid = set.invalid.or(limit.invalid).unwrap_or(f64::INFINITY);
        let warn = set.warn.or(limit.warn).unwrap_or(f64::INFINITY);
        InForce {
            warn: warn.min(invalid),
            invalid,
        }
    }
}

/// The limit of that name.
#[must_use]
pub fn limit(key: &str) -> Option<&'static Limit> {
    limits().find(|limit| limit.key == key)
}

/// All limits, in the order of the checks.
pub fn limits() -> impl Iterator<Item = &'static Limit> {
    let rows = CheckId::ALL.iter().map(|id| id.row());
    rows.flat_map(|row| row.limits).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_limits_make_sense() {
        for (at, one) in CheckId::ALL.iter().enumerate() {
            let mut before = CheckId::ALL[..at].iter();
            assert!(before.all(|other| other.title() != one.title()), "{one:?}");
            assert!(!one.row().advice.is_empty(), "{one:?}");
        }
        let all: Vec<&Limit> = limits().collect();
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other.key != one.key));
            assert!(one.warn.is_some() || one.invalid.is_some(), "{}", one.key);
            let in_force = Limits::default().of(one);
            assert!(in_force.warn <= in_force.invalid, "{}", one.key);
            assert_eq!(one.invalid.unwrap_or(f64::INFINITY), in_force.invalid);
        }
        assert_eq!(limit("other_programs"), Some(&OTHER_PROGRAMS));
        assert!(limit("nothing").is_none());
        assert!(RETIRED.iter().all(|(key, _)| limit(key).is_none()));
    }

    #[test]
    fn what_a_study_sets_is_in_force_and_warns_no_later_than_it_invalidates() {
        let set = |warn, invalid| {
            let one = Set { warn, invalid };
            Limits(BTreeMap::from([("other_programs".to_owned(), one)])).of(&OTHER_PROGRAMS)
        };
        let pair = |in_force: InForce| (in_force.warn, in_force.invalid);
        assert_eq!(pair(set(None, Some(40.0))), (5.0, 40.0));
        assert_eq!(pair(set(Some(10.0), None)), (10.0, 20.0));
        assert_eq!(pair(set(None, Some(2.0))), (2.0, 2.0));
        assert_eq!(pair(set(None, None)), (5.0, 20.0));
    }
}
