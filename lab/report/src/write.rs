//! Writers: an [`Analysis`], or a comparison of two runs, as text. They judge nothing, measure nothing,
//! and open no file.
//!
//! For people, it becomes a [`Document`](crate::document::Document) that a renderer lays out; for programs, its figures
//! are written unchanged.

mod checks;
mod csv;
mod github;
mod gitlab;
mod json;
mod junit;
mod k6;

pub use checks::checks_markdown;
pub use csv::{comparisons_csv, runs_csv, steps_csv, transactions_csv};
pub use json::{history_json, json, result_schema, runs_json};
pub use junit::{junit, junit_of_runs};

use lab_comparison::RunComparison;

use crate::Analysis;
use crate::render;
use crate::sections::{comparison, report};

/// The report for a terminal of `width` columns (80 suits most).
#[must_use]
pub fn terminal(analysis: &Analysis, width: usize) -> String {
    render::terminal(&report(analysis), width)
}

/// The report as GitHub-flavoured Markdown.
#[must_use]
pub fn markdown(analysis: &Analysis) -> String {
    render::markdown(&report(analysis))
}

/// The report as a job summary for GitHub Actions.
#[must_use]
pub fn github(analysis: &Analysis) -> String {
    github::github(&report(analysis))
}

/// The comparison as a job summary for GitHub Actions.
#[must_use]
pub fn runs_github(runs: &RunComparison) -> String {
    github::github(&comparison(runs))
}

/// The problems of a run, as a code-quality report for GitLab, which points to the study's file.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn gitlab(analysis: &Analysis, study_file: &str) -> serde_json::Result<String> {
    json::pretty(&gitlab::gitlab(analysis, study_file))
}

/// The same for a comparison of runs.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn runs_gitlab(runs: &RunComparison, study_file: &str) -> serde_json::Result<String> {
    json::pretty(&gitlab::of_runs(runs, study_file))
}

/// The run in the format of k6's `--summary-export`.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn k6(analysis: &Analysis) -> serde_json::Result<String> {
    json::pretty(&k6::k6(analysis))
}

/// The report as one HTML file, under 1 MB however many trials there are.
#[must_use]
pub fn html(analysis: &Analysis) -> String {
    render::html(&report(analysis))
}

/// The comparison for a terminal of `width` columns.
#[must_use]
pub fn runs_terminal(runs: &RunComparison, width: usize) -> String {
    render::terminal(&comparison(runs), width)
}

/// The comparison as Markdown.
#[must_use]
pub fn runs_markdown(runs: &RunComparison) -> String {
    render::markdown(&comparison(runs))
}

/// The comparison as one HTML file.
#[must_use]
pub fn runs_html(runs: &RunComparison) -> String {
    render::html(&comparison(runs))
}
