//! Records the result of each test program in each round as it ends, so that ten rounds of all can be spread over
//! calls: one line for each in `goes.jsonl`, and the output of failed programs in files beside it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The result of a program in a round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// Counted from 1.
    pub(crate) go: u32,
    pub(crate) name: String,
    pub(crate) is_good: bool,
}

impl Verdict {
    fn line(&self) -> String {
        let Self { go, name, is_good } = self;
        format!(
            "{}\n",
            json!({ "go": go, "program": name, "passed": is_good })
        )
    }

    /// Parses a line; `None` for a truncated line.
    fn of(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(Self {
            go: line["go"].as_u64()?.try_into().ok()?,
            name: line["program"].as_str()?.to_owned(),
            is_good: line["passed"].as_bool()?,
        })
    }
}

/// The rounds in which a program failed.
#[derive(Debug, PartialEq)]
pub(crate) struct Failures<'a> {
    pub(crate) name: &'a str,
    pub(crate) goes: Vec<u32>,
    /// The files that hold its output, where that was kept.
    pub(crate) said: Vec<PathBuf>,
}

impl<'a> Failures<'a> {
    fn of(name: &'a str) -> Self {
        Self {
            name,
            goes: Vec::new(),
            said: Vec::new(),
        }
    }
}

/// The folder and all verdicts in it; without a folder, the verdicts of this call.
#[derive(Debug, Default)]
pub(crate) struct StoredVerdicts {
    place: Option<(PathBuf, File)>,
    verdicts: Vec<Verdict>,
}

impl StoredVerdicts {
    /// Opens or creates a folder. Results of programs that were built at another time are of other programs and are put
    /// aside.
    ///
    /// # Errors
    /// When the folder can't be read or written.
    pub(crate) fn open(folder: &Path, built_ns: u128) -> io::Result<Self> {
        let head = format!("{}\n", json!({ "built_ns": built_ns.to_string() }));
        let file = folder.join("goes.jsonl");
        let mut verdicts = Vec::new();
        match fs::read_to_string(&file) {
            Ok(text) => match text.strip_prefix(&head) {
                Some(lines) => verdicts.extend(lines.lines().filter_map(Verdict::of)),
                None => {
                    let aside = folder.with_extension("before");
                    match fs::remove_dir_all(&aside) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                        _ => fs::rename(folder, &aside)?,
                    }
                    let (folder, aside) = (folder.display(), aside.display());
                    println!("{folder} was of programs as they were before: it is {aside} now");
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::create_dir_all(folder)?;
        // Without the truncated line, if there is one.
        let lines: String = verdicts.iter().map(Verdict::line).collect();
        fs::write(&file, head + &lines)?;
        let opened = OpenOptions::new().append(true).open(&file)?;
        Ok(Self {
            place: Some((folder.to_owned(), opened)),
            verdicts,
        })
    }

    /// Returns the result of a program in a round, if it had that round.
    pub(crate) fn of(&self, go: u32, name: &str) -> Option<&Verdict> {
        let of = |verdict: &&Verdict| verdict.go == go && verdict.name == name;
        self.verdicts.iter().find(of)
    }

    /// Records a result and, for a failure, the output.
    ///
    /// # Errors
    /// When the record can't be written; the result counts anyway.
    pub(crate) fn keep(&mut self, verdict: Verdict, said: &[u8]) -> io::Result<()> {
        let written = self.write(&verdict, said);
        self.verdicts.push(verdict);
        written
    }

    fn write(&mut self, verdict: &Verdict, said: &[u8]) -> io::Result<()> {
        let Some((folder, file)) = &mut self.place else {
            return Ok(());
        };
        if !verdict.is_good {
            fs::write(folder.join(output(verdict)), said)?;
        }
        file.write_all(verdict.line().as_bytes())
    }

    /// Returns each program that failed in one of the `goes` rounds, sorted by falling number of failures.
    pub(crate) fn failures(&self, goes: u32) -> Vec<Failures<'_>> {
        let mut by_name: BTreeMap<&str, Failures<'_>> = BTreeMap::new();
        for verdict in &self.verdicts {
            if verdict.is_good || verdict.go > goes {
                continue;
            }
            let name = verdict.name.as_str();
            let failures = by_name.entry(name).or_insert_with(|| Failures::of(name));
            failures.goes.push(verdict.go);
            let folder = self.place.iter().map(|(folder, _)| folder);
            let said = folder.map(|folder| folder.join(output(verdict)));
            failures.said.extend(said);
        }
        let mut failures: Vec<_> = by_name.into_values().collect();
        failures.sort_by_key(|failures| Reverse(failures.goes.len()));
        failures
    }
}

/// The name of the file with the output of a failed program: `3-lab-client-suite.txt`.
fn output(verdict: &Verdict) -> String {
    let name = verdict.name.replace(['/', ' '], "-");
    format!("{}-{name}.txt", verdict.go)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(go: u32, name: &str, is_good: bool) -> Verdict {
        let name = name.to_owned();
        Verdict { go, name, is_good }
    }

    #[test]
    fn what_was_kept_is_there_again_but_for_a_line_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("goes");
        let mut kept = StoredVerdicts::open(&folder, 7).unwrap();
        kept.keep(verdict(1, "lab/client suite", true), b"")
            .unwrap();
        kept.keep(verdict(2, "tests live", false), b"it broke")
            .unwrap();
        drop(kept);
        let file = folder.join("goes.jsonl");
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, whole + r#"{"go":2,"program":"tests ru"#).unwrap();

        let mut kept = StoredVerdicts::open(&folder, 7).unwrap();
        let is_good =
            |kept: &StoredVerdicts, go, name| kept.of(go, name).map(|verdict| verdict.is_good);
        assert_eq!(is_good(&kept, 1, "lab/client suite"), Some(true));
        assert_eq!(is_good(&kept, 2, "tests live"), Some(false));
        assert_eq!(is_good(&kept, 2, "lab/client suite"), None);
        assert_eq!(is_good(&kept, 2, "tests ru"), None);
        kept.keep(verdict(3, "a suite", false), b"").unwrap();
        kept.keep(verdict(3, "tests live", false), b"again")
            .unwrap();
        let failures = kept.failures(3);
        assert_eq!(failures.len(), 2);
        let often = &failures[0];
        assert_eq!((often.name, &often.goes[..]), ("tests live", &[2, 3][..]));
        assert_eq!(fs::read(&often.said[0]).unwrap(), b"it broke");
        assert_eq!((failures[1].name, failures[1].said.len()), ("a suite", 1));
        assert_eq!(kept.failures(2)[0].goes, [2]);
    }

    #[test]
    fn what_other_programs_did_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("goes");
        for built in [7, 8, 9] {
            let mut kept = StoredVerdicts::open(&folder, built).unwrap();
            assert_eq!(kept.of(1, "lab/client suite"), None, "{built}");
            kept.keep(verdict(1, "lab/client suite", true), b"")
                .unwrap();
        }
        assert!(folder.with_extension("before").join("goes.jsonl").exists());
    }

    #[test]
    fn without_a_folder_it_counts() {
        let mut kept = StoredVerdicts::default();
        kept.keep(verdict(1, "tests live", false), b"").unwrap();
        assert!(kept.of(1, "tests live").is_some() && kept.of(2, "tests live").is_none());
        assert!(kept.failures(1)[0].said.is_empty());
    }
}
