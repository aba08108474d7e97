//! Why an archive could not be analysed.

/// Why an archive could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// `plan.json` isn't a plan that this version reads.
    #[error("the archive's plan.json can't be read as a plan")]
    Plan(#[source] serde_json::Error),
    /// `plan.json` has another version, and must be converted first.
    #[error("the archive's plan is `{0}`, which this version can't judge by")]
    Version(String),
    /// The plan does not contain the trial.
    #[error("trial {0} is in the archive but not in its plan")]
    UnknownTrial(u32),
    /// The deciding measure refers to a part that the study's load doesn't have.
    #[error("`{measure}`: the study has no {kind} `{name}`; {known}")]
    UnknownPart {
        /// The measure, as written.
        measure: &'static str,
        /// The kind of the part.
        kind: &'static str,
        /// Its name.
        name: String,
        /// List of the known names.
        known: String,
    },
    /// A histogram that can't be merged.
    #[error("trial {trial}: histograms can't be merged")]
    Merge {
        /// The trial.
        trial: u32,
        /// The cause.
        #[source]
        source: lab_stats::histogram::MergeError,
    },
}
