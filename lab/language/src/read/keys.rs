//! The keys that a workload names, each read once.

use lab_workload::template::is_environment_name;
use lab_workload::{Encoding, Key, KeySource};

use super::files::{Files, environment, open, read_all};
use super::names::unknown_name;
use crate::error::Problems;
use crate::file::{KeyFile, WorkloadFile};
use lab_units::parts::{At, Scalar};

/// Longest key.
const MAX_KEY_BYTES: usize = 64 << 10;
/// Maximum keys of a workload.
const MAX_KEYS: usize = 100;

/// Reads all keys of the workload; `None` if a problem was reported.
pub(super) fn read(
    file: &WorkloadFile,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Vec<Key>> {
    let mut all = Some(Vec::new());
    for (at, (name, key)) in file.keys.iter().enumerate() {
        let fault = match name.value.as_str() {
            text if !is_name(text) => Some(format!("`{text}` can't be the name of a key")),
            _ if at == MAX_KEYS => Some(format!("a workload has at most {MAX_KEYS} keys")),
            _ => None,
        };
        let key = match fault {
            None => one(&name.value, key, files, problems),
            Some(message) => {
                let problem = name.span.problem(message, "this name");
                let help = "use letters, digits, `_`, and `-`, 64 at most";
                problems.push(problem.help(help));
                None
            }
        };
        match (&mut all, key) {
            (Some(all), Some(key)) => all.push(key),
            (all, _) => *all = None,
        }
    }
    all
}

fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

fn one(name: &str, key: &At<KeyFile>, files: &dyn Files, problems: &mut Problems) -> Option<Key> {
    let encoding = match key.value.encoding.as_ref() {
        None => None,
        Some(at) => Some(encoding(at, problems)?),
    };
    let (place, source, text) = match (&key.value.file, &key.value.secret) {
        (Some(file), None) => (
            file,
            KeySource::File(file.text()),
            Some(text(file, files, problems)?),
        ),
        (None, Some(secret)) => {
            let variable = secret.text();
            if !is_environment_name(&variable) {
                let message = format!("`{variable}` can't be the name of an environment variable");
                let problem = secret.span.first_line().problem(message, "this name");
                problems
                    .push(problem.help("a key's value stands in no file: `{ secret: API_KEY }`"));
                return None;
            }
            let value = environment(&variable, || secret.span.first_line(), files, problems)?;
            (secret, KeySource::Secret(variable), value)
        }
        _ => {
            let place = key.span.first_line();
            let problem = place.problem(format!("the key `{name}` has one place"), "this key");
            problems.push(problem.help("`{ file: api.pem }`, or the name of an environment variable: `{ secret: API_KEY }`"));
            return None;
        }
    };
    let key = Key::unknown(name, source, encoding);
    let Some(text) = text else {
        return Some(key);
    };
    let key = key.with_text(&text);
    key.map_err(|message| {
        let problem = place.span.first_line().problem(message, "named here");
        problems.push(problem.help(
            "a key is a private key as PEM; a secret is in the environment, or has an `encoding`",
        ));
    })
    .ok()
}

fn encoding(at: &At<Scalar>, problems: &mut Problems) -> Option<Encoding> {
    let text = at.text();
    let found = Encoding::named(&text);
    if found.is_none() {
        let names = [Encoding::Base64, Encoding::Base64Url, Encoding::Hex].map(Encoding::name);
        let (message, help) = unknown_name("encoding", &text, &names);
        let problem = at.span.first_line().problem(message, "this encoding");
        problems.push(problem.help(help));
    }
    found
}

/// Reads the text of a key's file.
fn text(file: &At<Scalar>, files: &dyn Files, problems: &mut Problems) -> Option<String> {
    let name = file.text();
    let bytes = open(file, files, problems)?;
    let read = read_all(&*bytes, MAX_KEY_BYTES).and_then(|bytes| match bytes.len() {
        ..=MAX_KEY_BYTES => {
            String::from_utf8(bytes).map_err(|_| "it is no text, and PEM is".to_owned())
        }
        _ => Err(format!("it has more than {MAX_KEY_BYTES} bytes")),
    });
    read.map_err(|why| {
        let message = format!("`{name}` is no key: {why}");
        problems.push(file.span.first_line().problem(message, "named here"));
    })
    .ok()
}
