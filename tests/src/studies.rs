//! Runs of studies by the real program, one after the other, for their findings: the result of a run and its answer.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The path, with this program's folder first: a study may start a program beside it.
fn path_with_own_programs() -> Option<OsString> {
    let own = env::current_exe().ok()?.parent()?.to_owned();
    let usual = env::var_os("PATH").unwrap_or_default();
    env::join_paths([own].into_iter().chain(env::split_paths(&usual))).ok()
}

/// A number of studies, each with its own seed.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeats {
    /// The number of studies.
    pub times: u64,
    /// The seed of the first study; the next ones count up from it.
    pub seed: u64,
    /// Flags of `plimsoll run`.
    pub run: Vec<String>,
}

impl Repeats {
    /// Reads `[--times N] [--seed N] [FLAGS OF plimsoll run…]`; `None` if they are wrong.
    pub fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let (mut times, mut seed, mut run) = (20, 1, Vec::new());
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--times" => times = args.next()?.parse().ok()?,
                "--seed" => seed = args.next()?.parse().ok()?,
                _ => run = std::iter::once(arg).chain(args.by_ref()).collect(),
            }
        }
        (times > 0).then_some(Self { times, seed, run })
    }

    /// Returns the seeds of the studies.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        (self.seed..).take(usize::try_from(self.times).unwrap_or(usize::MAX))
    }
}

/// Runs a study; returns its result.
pub fn run(program: &Path, arguments: &[String], seed: u64) -> Option<Value> {
    let folder = tempfile::tempdir().ok()?;
    let out = folder.path().join("run");
    let status = Command::new(program)
        .env("PATH", path_with_own_programs()?)
        .arg("run")
        .args(arguments)
        .args(["--seed", &seed.to_string(), "--out"])
        .arg(&out)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.ok()?;
    serde_json::from_slice(&fs::read(out.join("result.json")).ok()?).ok()
}

/// Returns the decision in a word and in a sentence, or the reason why there is none.
///
/// # Errors
/// The headline of a result without an answer.
pub fn answer(result: &Value) -> Result<(String, String), String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let answer = &result["answer"];
    match text(&answer["decision"]).zip(text(&answer["sentence"])) {
        Some(found) => Ok(found),
        None => Err(text(&result["headline"]).unwrap_or_default()),
    }
}

/// Returns the ratio and its interval of the first comparison that decides.
pub fn decided(result: &Value) -> Option<(f64, [f64; 2])> {
    let mut comparisons = result["comparisons"].as_array()?.iter();
    let one = comparisons.find(|one| one["decides"] == true)?;
    let bound = |at: usize| one["interval"][at].as_f64();
    Some((one["ratio"].as_f64()?, [bound(0)?, bound(1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_options_is_for_the_run() {
        let parsed = |text: &str| {
            let found = Repeats::read(text.split_whitespace().map(str::to_owned));
            found.map(|one| (one.times, one.seed, one.run.len()))
        };
        assert_eq!(parsed(""), Some((20, 1, 0)));
        assert_eq!(parsed("--times 3 --seed 9 --patience 0"), Some((3, 9, 2)));
        for wrong in ["--times", "--times 0", "--seed x"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_answer_is_read_from_a_result() {
        let result = serde_json::json!({
            "headline": "All is well.",
            "answer": { "decision": "equal", "sentence": "b and a: equal." },
            "comparisons": [
                { "decides": false, "ratio": 2.0, "interval": [1.0, 3.0] },
                { "decides": true, "ratio": 1.05, "interval": [1.01, 1.09] },
            ],
        });
        let found = answer(&result).expect("there is one");
        assert_eq!(found, ("equal".to_owned(), "b and a: equal.".to_owned()));
        assert_eq!(decided(&result), Some((1.05, [1.01, 1.09])));
        let none = serde_json::json!({ "headline": "Not a measurement." });
        assert_eq!(answer(&none), Err("Not a measurement.".to_owned()));
        assert_eq!(decided(&none), None);
        let open = serde_json::json!({
            "comparisons": [{ "decides": true, "ratio": 1.0, "interval": null }],
        });
        assert_eq!(decided(&open), None);
    }
}
