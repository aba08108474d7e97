//! The end of a script's run: thresholds of its checks and metrics, and its `handleSummary`. They read the run's
//! result, and change nothing in it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lab_driver::summarize;
use lab_k6::{Limit, Missing, figure, figures};
use lab_study::Workload;
use serde_json::Value;

use crate::commands::print;
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

/// What is left to do once a script's run is reported.
pub(crate) struct ScriptEnd {
    pub(crate) limits: Vec<Limit>,
    pub(crate) workload: Arc<Workload>,
    /// The script's options.
    pub(crate) options: Value,
}

impl ScriptEnd {
    /// Judges the thresholds, and writes the files of the summary into the run's folder.
    pub(crate) fn finish(&self, dir: &Path) -> Result<Exit, Failure> {
        let text = fs::read_to_string(dir.join("result.json"));
        let text = text.map_err(|error| Failure::new(Exit::Internal, &error))?;
        let result: Value =
            serde_json::from_str(&text).map_err(|error| Failure::new(Exit::Internal, &error))?;
        let trial = result["trials"].as_array().and_then(|all| all.last());
        let Some(trial) = trial else {
            return Ok(Exit::Success);
        };
        let exit = self.judge(trial)?;
        self.summarize(trial, dir)?;
        Ok(exit)
    }

    fn judge(&self, trial: &Value) -> Result<Exit, Failure> {
        let mut exit = Exit::Success;
        let mut lines = String::new();
        for limit in &self.limits {
            let (holds, reason) = match figure(trial, limit) {
                Ok(value) => (limit.holds(value), format!("it is {}", shown(value))),
                Err(Missing::Never) => (
                    limit.holds(0.0),
                    "nothing was added to it, which counts as 0, as in k6".to_owned(),
                ),
                Err(Missing::TooFew) => (false, "there are too few values".to_owned()),
            };
            if !holds {
                exit = Exit::ThresholdFailed;
            }
            let mark = if holds { '✓' } else { '✗' };
            lines.push_str(&format!("  {mark} {} ({reason})\n", limit.text));
        }
        if !lines.is_empty() {
            print(&format!("thresholds of the script:\n{lines}"))?;
        }
        Ok(exit)
    }

    fn summarize(&self, trial: &Value, dir: &Path) -> Result<(), Failure> {
        let figures = figures(trial, &self.options);
        let made = match summarize(&self.workload, figures) {
            Ok(made) => made,
            Err(error) => {
                say(format_args!("{error}"));
                return Ok(());
            }
        };
        for (name, text) in made.iter().filter_map(Value::as_object).flatten() {
            let text = match text {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match name.as_str() {
                "stdout" => drop(print(&text)?),
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

fn shown(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
