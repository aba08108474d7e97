//! The asks of a system: as written, with references to factors, and resolved in a cell.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_asked::{How, Read};
use lab_filters::JsonPath;
use lab_language::machine::argument;
use lab_language::settings::{Settings, note};
use lab_language::{
    At, CellError, Problems, Scalar, Setting, Span, Table, TextError, parsed, switch, units,
};
use lab_workload::Level;

use crate::file::AskFile;
use crate::preset::{PRESETS, Preset, PresetAsk};
use crate::spec::{AskSpec, By, filled_in};

/// The port that users of the system connect to.
pub const PORT: &str = "port";
/// The first process of the system.
pub const PID: &str = "pid";
/// Most asks of a system.
const MOST_ASKS: usize = 16;
/// The bounds of the interval at which states may be queried.
const ROWS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// The asks of a system, still with references to factors.
#[derive(Debug, Clone, Default)]
pub struct AskTemplate {
    asks: Vec<One>,
    /// Names that a trial fills in.
    filled_in: Vec<String>,
}

#[derive(Debug, Clone)]
struct One {
    name: String,
    by: ByTemplate,
    how: How,
}

#[derive(Debug, Clone)]
enum ByTemplate {
    Command(Vec<Setting>),
    Http(Setting),
}

impl AskTemplate {
    /// Returns true if there are no queries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Returns the queries in `cell`.
    ///
    /// # Errors
    /// A text can't be rendered in the cell, or is not an address.
    pub fn spec(&self, cell: &BTreeMap<String, Level>) -> Result<Vec<AskSpec>, CellError> {
        let mut cell = cell.clone();
        for name in &self.filled_in {
            cell.insert(name.clone(), Level::Text(filled_in(name)));
        }
        let one = |one: &One| {
            let by = match &one.by {
                ByTemplate::Command(argv) => {
                    let words = argv.iter().map(|word| word.value(&cell, argument));
                    By::Command(words.collect::<Result<_, _>>()?)
                }
                ByTemplate::Http(url) => By::Http(url.value(&cell, address)?),
            };
            Ok(AskSpec {
                name: one.name.clone(),
                by,
                how: one.how.clone(),
            })
        };
        self.asks.iter().map(one).collect()
    }
}

/// Parses an address; spaces within a trial's placeholders are not part of it.
fn address(written: &str) -> Result<String, TextError> {
    let text = written.trim();
    let plain = text.replace("{{ ", "").replace(" }}", "");
    let rest = plain
        .strip_prefix("http://")
        .or_else(|| plain.strip_prefix("https://"));
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(is_odd) => {
            Ok(text.to_owned())
        }
        _ => {
            let error = TextError::new(format!("`{text}` is not an address"), 0..written.len());
            Err(error.help("write `http://127.0.0.1:{{ port }}/metrics`"))
        }
    }
}

/// The asks of a system whose texts may name `factors` and `filled_in`. Reports problems, and returns `None` then.
pub fn templates(
    asks: &Table<AskFile>,
    (factors, filled_in): (&[String], &[String]),
    problems: &mut Problems,
) -> Option<AskTemplate> {
    let known: Vec<String> = factors.iter().chain(filled_in).cloned().collect();
    let settings = Settings {
        known: &known,
        problems,
    };
    let mut reader = Reader { settings };
    let mut made = Vec::new();
    let mut is_good = true;
    for (name, file) in asks.iter() {
        match reader.one(name, file) {
            Some(ones) => made.extend(ones),
            None => is_good = false,
        }
    }
    if made.len() > MOST_ASKS
        && let Some((name, _)) = asks.iter().last()
    {
        let message = format!(
            "a system is asked at most {MOST_ASKS} things, and these are {}",
            made.len()
        );
        return reader.note(&name.span, &message, "leave some out");
    }
    is_good.then(|| AskTemplate {
        asks: made,
        filled_in: filled_in.to_vec(),
    })
}

struct Reader<'a> {
    settings: Settings<'a>,
}

impl Reader<'_> {
    fn note<T>(&mut self, span: &Span, message: &str, help: &str) -> Option<T> {
        note(span, message, help, &mut self.settings)
    }

    fn one(&mut self, name: &At<String>, file: &AskFile) -> Option<Vec<One>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.value.is_empty() || name.value.len() > 32 || !name.value.chars().all(is_plain) {
            let message = format!("`{}` can't be the name of an ask", name.value);
            return self.note(
                &name.span,
                &message,
                "use letters, digits, `_`, and `-`, 32 at most",
            );
        }
        match &file.preset {
            Some(preset) => self.of_preset(name, preset, file),
            None => self.own(name, file).map(|one| vec![one]),
        }
    }

    /// An ask that the study writes out.
    fn own(&mut self, name: &At<String>, file: &AskFile) -> Option<One> {
        let by = match (&file.command, &file.http) {
            (Some(command), _) => self.argv(command).map(ByTemplate::Command),
            (None, Some(http)) => self.settings.required("http", http).map(ByTemplate::Http),
            (None, None) => {
                let message = format!("nothing says whom `{}` asks", name.value);
                self.note(
                    &name.span,
                    &message,
                    "add `command: […]`, `http: …`, or `preset: …`",
                )
            }
        };
        let Some(read) = &file.read else {
            let message = format!("nothing says how the answer to `{}` is read", name.value);
            return self.note(
                &name.span,
                &message,
                "add `read: table`, `lines`, `json`, or `prometheus`",
            );
        };
        let read = parsed(
            read,
            "read",
            |text| units::one_named("form", text, &Read::NAMED),
            self.settings.problems,
        );
        let how = read.and_then(|read| self.how(How::of(read), file));
        Some(One {
            name: name.value.clone(),
            by: by?,
            how: how?,
        })
    }

    fn of_preset(
        &mut self,
        name: &At<String>,
        preset: &At<Scalar>,
        file: &AskFile,
    ) -> Option<Vec<One>> {
        let named: Vec<(&str, &Preset)> = PRESETS
            .iter()
            .map(|(name, preset)| (*name, preset))
            .collect();
        let found = parsed(
            preset,
            "preset",
            |text| units::one_named("preset", text, &named),
            self.settings.problems,
        )?;
        if let Some((key, span)) = said_beside(file, found) {
            let message = format!("the preset says `{key}` already");
            let help = "leave it out, or write the ask without a preset";
            return self.note(span, &message, help);
        }
        let client = match &file.command {
            Some(command) => self.argv(command)?,
            None => self.words(preset, &found.command)?,
        };
        let address = match (&file.http, &found.http) {
            (Some(at), _) => Some(self.settings.required("http", at)?),
            (None, Some(text)) => Some(self.words(preset, std::slice::from_ref(text))?.remove(0)),
            (None, None) => None,
        };
        let one = |(of, ask): (&String, &PresetAsk)| {
            let appended = self.words(preset, &ask.append)?;
            let by = match &address {
                Some(address) => ByTemplate::Http(address.clone()),
                None => ByTemplate::Command([client.clone(), appended].concat()),
            };
            Some(One {
                name: format!("{}.{of}", name.value),
                by,
                how: self.how(ask.how.clone(), file)?,
            })
        };
        found.asks.iter().map(one).collect()
    }

    /// Merges the file's parsing settings into the known ones.
    fn how(&mut self, mut how: How, file: &AskFile) -> Option<How> {
        if let Some(count) = &file.count {
            let rows = parsed(
                &count.rows,
                "rows",
                |text| {
                    let (least, most) = ROWS;
                    let time = units::duration(text, most)?;
                    match time >= least {
                        true => Ok(time),
                        false => Err(TextError::new(
                            "100ms is the shortest time between answers",
                            0..text.len(),
                        )),
                    }
                },
                self.settings.problems,
            )?;
            if how.read != Read::Table {
                let message = "only rows of a table are counted as states";
                return self.note(
                    &count.rows.span,
                    message,
                    "write `read: table`, or leave `count` out",
                );
            }
            how.rows_ms = u64::try_from(rows.as_millis()).ok();
        }
        if let Some(keep) = &file.keep {
            how.keep = keep.value.iter().map(At::text).collect();
        }
        if let Some(labels) = &file.labels {
            how.labels
                .extend(labels.value.iter().map(|at| at.text().to_string()));
        }
        for (column, unit) in file.units.iter() {
            how.units
                .insert(column.value.clone(), unit.text().to_string());
        }
        for (column, path) in file.paths.iter() {
            if how.read != Read::Json {
                let message = "only a JSON document has paths";
                return self.note(
                    &column.span,
                    message,
                    "write `read: json`, or choose counters by `keep`",
                );
            }
            let path = parsed(
                path,
                "paths",
                |text| {
                    let wrong = |error| {
                        TextError::new(format!("this is no JSON path: {error}"), 0..text.len())
                    };
                    JsonPath::parse(text).map_err(wrong)
                },
                self.settings.problems,
            )?;
            how.paths.insert(column.value.clone(), path);
        }
        if file.text.is_some() {
            how.text = switch(file.text.as_ref(), self.settings.problems);
        }
        Some(how)
    }

    fn argv(&mut self, command: &At<Vec<At<Scalar>>>) -> Option<Vec<Setting>> {
        if command.value.is_empty() {
            let help = "list the program and its arguments, such as `[redis-cli, INFO]`";
            return self.note(&command.span, "`command` names no program", help);
        }
        let words: Vec<Option<Setting>> = command
            .value
            .iter()
            .map(|word| self.settings.required("command", word))
            .collect();
        words.into_iter().collect()
    }

    /// Texts of a preset, located at its name.
    fn words(&mut self, preset: &At<Scalar>, words: &[String]) -> Option<Vec<Setting>> {
        let word = |word: &String| {
            let at = At {
                value: Scalar::Text(word.clone()),
                span: preset.span.clone(),
            };
            self.settings.required("preset", &at)
        };
        words.iter().map(word).collect()
    }
}

/// Returns a key that contradicts the preset: an address for a preset with a client, or vice versa.
fn said_beside<'f>(file: &'f AskFile, preset: &Preset) -> Option<(&'static str, &'f Span)> {
    let http = file.http.as_ref().map(|at| &at.span);
    let command = file.command.as_ref().map(|at| &at.span);
    let said = [
        ("read", file.read.as_ref().map(|at| &at.span)),
        ("count", file.count.as_ref().map(|count| &count.rows.span)),
        (
            "paths",
            file.paths.iter().next().map(|(name, _)| &name.span),
        ),
        ("http", http.filter(|_| preset.http.is_none())),
        ("command", command.filter(|_| preset.http.is_some())),
    ];
    said.into_iter().find_map(|(key, span)| Some((key, span?)))
}
