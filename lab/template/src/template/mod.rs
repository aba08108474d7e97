//! Templates: text with `{{ … }}`, compiled once, rendered into the caller's buffer.
//!
//! The language is minijinja's. The common parts of requests (literal text, a variable, a call of a function below with
//! plain arguments) are compiled to pieces that render without an allocation; minijinja evaluates every other
//! expression, and any text with `{% … %}`. It knows nothing of files (positions are offsets into the text) and nothing
//! of HTTP.

mod compiled;
mod constant;
mod error;
mod function;
mod jinja;
mod keyed;
mod parse;
mod part;
mod piece;
mod plain;
mod profile;
mod source;
mod symbols;
mod token;
mod unseeded;
mod value;

pub use compiled::Template;
pub use error::{Help, TemplateError};
pub use function::{FUNCTIONS, is_environment_name};
pub use jinja::FILTERS;
pub use lab_filters::Escape;
pub use source::TemplateSource;
pub use symbols::Symbols;
pub use unseeded::Unseeded;

pub use crate::render_error::MAX_RENDERED_BYTES;
