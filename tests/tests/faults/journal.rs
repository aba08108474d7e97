//! A file that records the faults and findings run by run, so that a thousand faults can be spread over calls.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::plan::NAMES;
use crate::stage::Seen;
use crate::trials::Trials;

/// A run, or the recovery of a stage after its last one.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The number of the run, which seeds its faults; `None` for a recovery.
    pub(crate) run: Option<u32>,
    /// How often each kind struck.
    pub(crate) struck: [u64; NAMES.len()],
    pub(crate) seen: Seen,
}

impl Entry {
    fn line(&self) -> Value {
        let named = NAMES.iter().zip(self.struck);
        let struck = named.filter(|(_, times)| *times > 0);
        let struck: serde_json::Map<String, Value> = struck
            .map(|(name, times)| ((*name).to_owned(), times.into()))
            .collect();
        let Seen {
            runs,
            trials,
            not_whole,
            left,
            wrong,
            gave_up,
            refused,
        } = &self.seen;
        json!({
            "run": self.run, "struck": struck, "runs": runs, "accepted": trials.accepted,
            "full": trials.full, "lost": trials.lost, "failed": trials.failed, "refused": refused,
            "not_whole": not_whole, "left": left, "wrong": wrong, "gave_up": gave_up,
        })
    }

    /// Parses a line; `None` for a truncated line.
    fn of(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let number = |key: &str| line[key].as_u64();
        let texts = |key: &str| {
            let texts = line[key].as_array()?.iter();
            texts
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
        };
        let run = match &line["run"] {
            Value::Null => None,
            run => Some(u32::try_from(run.as_u64()?).ok()?),
        };
        Some(Self {
            run,
            struck: NAMES.map(|name| line["struck"][name].as_u64().unwrap_or(0)),
            seen: Seen {
                runs: number("runs")?,
                trials: Trials {
                    accepted: number("accepted")?,
                    full: number("full")?,
                    lost: number("lost")?,
                    failed: number("failed")?,
                },
                not_whole: texts("not_whole")?,
                left: texts("left")?,
                wrong: texts("wrong")?,
                gave_up: texts("gave_up")?,
                refused: number("refused")?,
            },
        })
    }
}

/// The file, which grows by a line for each run.
pub(crate) struct Journal(File);

impl Journal {
    /// Opens it and returns its entries. A journal of other faults, or of another program, is put aside.
    pub(crate) fn open(file: &Path, faults: u64, seed: u64) -> (Self, Vec<Entry>) {
        let head = json!({ "faults": faults, "seed": seed, "program": program() }).to_string();
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut entries = Vec::new();
        match text.split_once('\n') {
            Some((first, rest)) if first == head => {
                entries.extend(rest.lines().filter_map(Entry::of));
            }
            Some(_) => {
                let aside = file.with_extension("before");
                fs::rename(file, &aside).expect("it can be put aside");
                let (file, aside) = (file.display(), aside.display());
                println!("{file} was of other faults, or of another program: it is {aside} now");
            }
            None => {}
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).expect("its folder can be made");
        }
        // Without the truncated line, if there is one.
        let lines = entries.iter().map(|entry| format!("{}\n", entry.line()));
        let text = format!("{head}\n{}", lines.collect::<String>());
        fs::write(file, text).expect("it can be written");
        let opened = OpenOptions::new().append(true).open(file);
        (Self(opened.expect("it can be opened")), entries)
    }

    pub(crate) fn keep(&mut self, entry: &Entry) {
        let line = format!("{}\n", entry.line());
        let kept = self.0.write_all(line.as_bytes());
        kept.expect("it can be written");
    }
}

/// Identifies a build of the program.
fn program() -> String {
    let file = fs::metadata(plimsoll_tests::program()).expect("it was built");
    let built = file.modified().expect("it has a time");
    let built = built.duration_since(std::time::SystemTime::UNIX_EPOCH);
    format!(
        "{} bytes of {} s",
        file.len(),
        built.map_or(0, |since| since.as_secs())
    )
}
