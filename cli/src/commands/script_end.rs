//! The end of a script's run: its `handleSummary`, which reads the run's result, and changes nothing in it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lab_analysis::{Analysis, model::Verdict};
use lab_driver::summarize;
use lab_k6::{Trial, figures};
use lab_report::write::k6;
use lab_study::Workload;
use serde_json::Value;

use crate::commands::print;
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

/// What is left to do once a script's run is reported.
pub(crate) struct ScriptEnd {
    pub(crate) workload: Arc<Workload>,
    /// The script's options.
    pub(crate) options: Value,
}

impl ScriptEnd {
    /// Writes the files of the summary of the valid trials into the run's folder.
    pub(crate) fn finish(&self, analysis: &Analysis, dir: &Path) -> Result<(), Failure> {
        let valid = analysis.trials.iter();
        let valid = valid.filter(|trial| trial.verdict == Verdict::Valid);
        let trials: Vec<Trial<'_>> = valid.map(Trial::from).collect();
        let mut reasons = analysis.trials.iter();
        if let Some(reason) = reasons.find_map(|trial| trial.test_failed.as_ref()) {
            print(&format!("the script failed the test: {reason}\n"))?;
        }
        if trials.is_empty() {
            return Ok(());
        }
        let report = k6(analysis).map_err(|error| Failure::new(Exit::Internal, &error))?;
        let report = serde_json::from_str(&report);
        let report: Value = report.map_err(|error| Failure::new(Exit::Internal, &error))?;
        self.summarize(figures(&report, &trials, &self.options), dir)
    }

    fn summarize(&self, figures: Value, dir: &Path) -> Result<(), Failure> {
        let made = match summarize(&self.workload, figures) {
            Ok(made) => made,
            Err(error) => {
                let text = self.workload.inputs.mask(&error.to_string());
                say(format_args!("{text}"));
                return Ok(());
            }
        };
        for (name, text) in made.iter().filter_map(Value::as_object).flatten() {
            let text = match text {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match name.as_str() {
                "stdout" => {
                    print(&text)?;
                }
                "stderr" => say(format_args!("{text}")),
                name => write(dir, name, &text)?,
            }
        }
        Ok(())
    }
}

/// Writes a file of the summary into the run's folder; it replaces no other file there.
fn write(dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let parts = name.split(['/', '\\']);
    let parts = parts.filter(|part| !matches!(*part, "" | "." | ".."));
    let path = dir
        .join("summary")
        .join(parts.collect::<Vec<_>>().join("_"));
    let folder = dir.join("summary");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| Failure::new(Exit::Internal, &error))?;
    say(format_args!("the script's summary: {}", path.display()));
    Ok(())
}
