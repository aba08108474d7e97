//! The profiles of two cells by block.

use lab_profile::columns::Sampled;

/// Two cells, and what was sampled in both of them by block; `None` where one has no valid, profiled trial.
pub(super) struct Sides<'a> {
    pub(super) a: &'a str,
    pub(super) b: &'a str,
    pub(super) blocks: Vec<Option<(&'a Sampled, &'a Sampled)>>,
}
