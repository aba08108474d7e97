//! Why something can't be made a workload.

/// Nothing could be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// More bytes than are read.
    #[error("it has {size} bytes; at most {most} are read")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        most: usize,
    },
    /// The text isn't JSON; the cause has line and column.
    #[error("it is not JSON as expected: {0}")]
    Json(#[from] serde_json::Error),
    /// The text is neither JSON nor YAML; the cause has line and column.
    #[error("it is neither JSON nor YAML: {0}")]
    Yaml(String),
    /// It is something else.
    #[error("{0}")]
    Other(&'static str),
    /// More parts than a workload can have.
    #[error("it has {count} {what}; at most {most} are taken")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// All was left out.
    #[error("no request is left: {}", said.join("; "))]
    Nothing {
        /// What was left out.
        said: Vec<String>,
    },
}
