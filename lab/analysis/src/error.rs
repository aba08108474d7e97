//! Why an archive could not be analysed.

/// Why an archive could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// `plan.json` isn't a plan that this version reads.
    #[error("the archive's plan.json can't be read as a plan")]
    Plan(#[source] serde_json::Error),
    /// The archive holds no study file.
    #[error("the archive holds no study file")]
    NoStudy,
    /// The archived study or workload no longer loads.
    #[error("the archived study can't be loaded")]
    Study(#[source] Box<lab_study::LoadError>),
    /// A trial that the plan doesn't know.
    #[error("trial {0} is in the archive but not in its plan")]
    UnknownTrial(u32),
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
