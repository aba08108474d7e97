//! Figures that all parts of a trial share.

use std::collections::BTreeMap;

use lab_archive::model::ErrorExample;
use lab_counts::ErrorClass;

/// Means (or, for names with a suffix `_max`, maxima) of counters over the hold; `None` is a gap.
pub type Counters = BTreeMap<String, Option<f64>>;

/// Errors by class, those that occurred.
pub type ErrorCounts = BTreeMap<ErrorClass, u64>;

/// Examples of failed requests, as archived.
pub type ErrorExamples = Vec<ErrorExample>;
