//! Writers: an [`Analysis`](crate::Analysis) as text. They judge nothing, measure nothing, and open
//! no file.

mod csv;
mod differences;
mod grids;
mod html;
mod json;
mod junit;
mod markdown;
mod rows;
mod runs;
mod terminal;
mod text_page;
mod text_tables;
mod transfers;
mod words;

pub use csv::{comparisons_csv, runs_csv, steps_csv};
pub use html::{html, runs_html};
pub use json::json;
pub use junit::{junit, junit_of_runs};
pub use markdown::markdown;
pub use runs::{runs_json, runs_markdown, runs_terminal};
pub use terminal::terminal;
