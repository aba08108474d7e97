//! Writers: an [`Analysis`](crate::Analysis) as text. They judge nothing, measure nothing, and open
//! no file.

mod csv;
mod differences;
mod html;
mod json;
mod markdown;
mod rows;
mod terminal;
mod text_page;
mod words;

pub use csv::steps_csv;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use terminal::terminal;
