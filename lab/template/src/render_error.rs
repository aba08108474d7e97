//! Why a template can't be rendered for a user.

/// The longest text that one template may render: a request body's limit.
pub const MAX_RENDERED_BYTES: usize = 64 * 1024 * 1024;

/// A template that can't be rendered for a user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RenderError {
    /// A list or captured value has no entry left. The driver skips the step and counts the skip.
    #[error("`{variable}` has no entry left")]
    EmptyList {
        /// The list's name.
        variable: String,
    },
    /// A value from another part of the program is missing.
    #[error("there is no variable `{variable}`")]
    Unknown {
        /// Its name.
        variable: String,
    },
    /// A value that the system under test provides to its users is missing.
    #[error(
        "nothing gives users a `{variable}`: set it under `user` of the workload, or have a request under \
         `provision` of the system capture it"
    )]
    NotGiven {
        /// Its name.
        variable: String,
    },
    /// The data has no row for the user or session.
    #[error("{cause}")]
    NoRow {
        /// The reason, with the name of the file.
        cause: String,
    },
    /// A function or an operator rejects its values.
    #[error("`{template}` can't be rendered: {cause}")]
    Failed {
        /// The expression, as written.
        template: String,
        /// The reason.
        cause: String,
    },
    /// The text exceeds [`crate::template::MAX_RENDERED_BYTES`].
    #[error("`{template}` renders to more than 64 MiB")]
    TooLong {
        /// The template, as written.
        template: String,
    },
}
