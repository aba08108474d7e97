//! Why a workload can't be imported.

/// The message for a collection, which is neither a recording nor a description.
const POSTMAN: &str = "this is a collection of Postman: make an OpenAPI description of it (by Postman, or by `p2o` of the \
                       npm package postman-to-openapi), and take that by `plimsoll import openapi`";

/// The actual format of the text, if known.
pub(crate) fn otherwise(text: &str) -> Option<ImportError> {
    // It is at the start, under `info`.
    let head = text
        .get(..text.floor_char_boundary(4096))
        .unwrap_or_default();
    head.contains("schema.getpostman.com")
        .then_some(ImportError::Other(POSTMAN))
}

/// The import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// More bytes than the limit.
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
    /// It has another format.
    #[error("{0}")]
    Other(&'static str),
    /// More parts than a workload can have.
    #[error("it has {count} {what}; at most {most} are taken")]
    TooMany {
        /// The parts that exceed the limit.
        what: &'static str,
        /// Their number.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// All was skipped.
    #[error("no request is left: {}", said.join("; "))]
    Nothing {
        /// The reasons.
        said: Vec<String>,
    },
}
