//! Classes of failed requests, and counts by class.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Index, IndexMut};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The class of a failed request.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The response has a status that `expect` does not allow, or rejects the request.
    Status,
    /// No complete response within the request timeout.
    Timeout,
    /// No connection, or none on which the server accepts requests of the user.
    Connect,
    /// The connection broke after sending started.
    Reset,
    /// The response breaks the protocol, a limit, or a capture; or the request could not be made.
    Check,
    /// An uncaught error of a script ended a session.
    Script,
}

impl ErrorClass {
    /// All classes, in the order in which windows count them.
    pub const ALL: [Self; 6] = [
        Self::Status,
        Self::Timeout,
        Self::Connect,
        Self::Reset,
        Self::Check,
        Self::Script,
    ];

    /// Its place in [`ErrorClass::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in archives, results, and exported metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Check => "check",
            Self::Script => "script",
        }
    }

    /// The name in reports and on the live page.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Status => "unexpected status",
            Self::Timeout => "timeout",
            Self::Connect => "no connection",
            Self::Reset => "connection broken",
            Self::Check => "unusable answer",
            Self::Script => "error in the script",
        }
    }

    /// Returns true if the request ended without any response.
    #[must_use]
    pub fn is_without_response(self) -> bool {
        matches!(self, Self::Timeout | Self::Connect | Self::Reset)
    }
}

/// Counts by [`ErrorClass`]. In JSON an object that omits zeros: `{"timeout": 3}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorClass::ALL.len()]);

impl ErrorCounts {
    /// The sum over all classes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns true if all counts are zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// The classes with a count above zero, in the order of [`ErrorClass::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (ErrorClass, u64)> + use<> {
        let all = ErrorClass::ALL.into_iter().zip(self.0);
        all.filter(|(_, count)| *count > 0)
    }
}

impl Index<ErrorClass> for ErrorCounts {
    type Output = u64;

    fn index(&self, class: ErrorClass) -> &u64 {
        &self.0[class.index()]
    }
}

impl IndexMut<ErrorClass> for ErrorCounts {
    fn index_mut(&mut self, class: ErrorClass) -> &mut u64 {
        &mut self.0[class.index()]
    }
}

impl AddAssign for ErrorCounts {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

impl FromIterator<(ErrorClass, u64)> for ErrorCounts {
    fn from_iter<I: IntoIterator<Item = (ErrorClass, u64)>>(counts: I) -> Self {
        let mut sum = Self::default();
        for (class, count) in counts {
            sum[class] += count;
        }
        sum
    }
}

impl Serialize for ErrorCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for ErrorCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = BTreeMap::<ErrorClass, u64>::deserialize(deserializer)?;
        Ok(counts.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_a_json_object_without_zeros() {
        let mut counts = ErrorCounts::default();
        counts[ErrorClass::Timeout] += 3;
        counts[ErrorClass::Check] += 1;
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(json, r#"{"timeout":3,"check":1}"#);
        assert_eq!(serde_json::from_str::<ErrorCounts>(&json).unwrap(), counts);
        assert!(serde_json::from_str::<ErrorCounts>(r#"{"other":1}"#).is_err());
        let mut sum = counts;
        sum += counts;
        assert_eq!((sum.total(), counts.total()), (8, 4));
    }

    #[test]
    fn names_are_those_of_the_serialized_form() {
        for class in ErrorClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
    }
}
