//! Lays out a [`Document`](crate::document::Document) for a medium. A renderer knows blocks and its medium, and nothing
//! of studies.

mod html;
mod markdown;
mod svg;
mod terminal;
mod text_page;

pub use html::{html, pieces};
pub(crate) use markdown::in_two as markdown_in_two;
pub use markdown::markdown;
pub use terminal::terminal;
