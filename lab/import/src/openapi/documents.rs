//! A description and the files that it references, read within limits, with references that are valid in every file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::parse::{Parsed, Written, parse};
use crate::error::{ImportError, otherwise};

/// The referenced files of a description.
pub trait Files {
    /// The text of a file, by its path within the description's folder.
    ///
    /// # Errors
    /// In words, why it can't be read.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// For a description without other files.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("no other file is read".to_owned())
    }
}

/// Most referenced files of a description.
const MAX_FILES: usize = 200;
/// Most bytes of all of them.
const MAX_ALL_BYTES: usize = 64 << 20;
/// Most dangling references that are named.
const MOST_SAID: usize = 10;

/// A description with its referenced files.
#[derive(Debug)]
pub(super) struct Documents {
    root: Box<Parsed>,
    /// By their paths from the description's folder.
    files: BTreeMap<String, Box<Parsed>>,
    pub(super) written: Written,
}

impl Documents {
    /// Reads a description and all its referenced files.
    pub(super) fn read(
        text: &str,
        files: &dyn Files,
        said: &mut Vec<String>,
    ) -> Result<Self, ImportError> {
        let root = parse(text).map_err(|error| otherwise(text).unwrap_or(error))?;
        let mut documents = Self {
            root: Box::new(root),
            files: BTreeMap::new(),
            written: Written::default(),
        };
        documents.written.extend(documents.root.written(text));
        let mut wanted = Wanted::default();
        wanted.absolute(&mut documents.root.root, "");
        documents.read_files(wanted, files, said);
        documents.say_missing(said);
        Ok(documents)
    }

    fn read_files(&mut self, mut wanted: Wanted, files: &dyn Files, said: &mut Vec<String>) {
        let mut left = MAX_ALL_BYTES;
        while let Some(name) = wanted.queue.pop_front() {
            if self.files.len() >= MAX_FILES {
                said.push(format!(
                    "the description refers to more than {MAX_FILES} files; `{name}` and others are left out"
                ));
                break;
            }
            let text = files.read(&name).and_then(|text| {
                left = left
                    .checked_sub(text.len())
                    .ok_or("all files together are too large")?;
                Ok(text)
            });
            let read = text.and_then(|text| {
                let parsed = parse(&text).map_err(|error| error.to_string())?;
                Ok((Box::new(parsed), text))
            });
            match read {
                Ok((mut parsed, text)) => {
                    self.written.extend(parsed.written(&text));
                    wanted.absolute(&mut parsed.root, &name);
                    self.files.insert(name, parsed);
                }
                Err(error) => said.push(format!(
                    "the file `{name}` that the description refers to is left out, with what needs it: {error}"
                )),
            }
        }
        for other in wanted.elsewhere {
            said.push(format!(
                "what `{other}` stands for is left out: only files in the description's folder and below are read"
            ));
        }
    }

    fn say_missing(&self, said: &mut Vec<String>) {
        let mut missing = BTreeSet::new();
        let roots = self.files.values().map(|file| &file.root);
        for root in std::iter::once(&self.root.root).chain(roots) {
            each_reference(root, &mut |to| {
                let is_read = to.starts_with('#')
                    || to
                        .split_once('#')
                        .is_some_and(|(name, _)| self.files.contains_key(name));
                if is_read && self.find(to).is_none() {
                    missing.insert(to.to_owned());
                }
            });
        }
        for to in missing.iter().take(MOST_SAID) {
            said.push(format!(
                "`{to}` is referred to, but isn't there: what needs it is left out"
            ));
        }
        if missing.len() > MOST_SAID {
            said.push(format!(
                "{} more references lead nowhere",
                missing.len() - MOST_SAID
            ));
        }
    }

    pub(super) fn root(&self) -> &Value {
        &self.root.root
    }

    /// Resolves a reference.
    pub(super) fn find(&self, to: &str) -> Option<&Value> {
        let (name, fragment) = to.split_once('#')?;
        let root = match name {
            "" => &self.root.root,
            name => &self.files.get(name)?.root,
        };
        let decoded = percent_decode_str(fragment).decode_utf8_lossy();
        root.pointer(&decoded).or_else(|| root.pointer(fragment))
    }
}

/// Referenced files.
#[derive(Default)]
struct Wanted {
    queue: VecDeque<String>,
    known: BTreeSet<String>,
    /// References to files that aren't read.
    elsewhere: BTreeSet<String>,
}

impl Wanted {
    /// Makes the references of a document relative to the description's folder: `name#/pointer`.
    fn absolute(&mut self, value: &mut Value, base: &str) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map.iter_mut() {
                    match inner {
                        Value::String(to) if key == "$ref" => self.reference(to, base),
                        inner => self.absolute(inner, base),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.absolute(item, base)),
            _ => {}
        }
    }

    fn reference(&mut self, to: &mut String, base: &str) {
        let (file, fragment) = to.split_once('#').unwrap_or((to.as_str(), ""));
        if file.is_empty() {
            *to = format!("{base}#{fragment}");
            return;
        }
        let decoded = percent_decode_str(file).decode_utf8_lossy();
        let Some(name) = joined(base, &decoded) else {
            self.elsewhere.insert(to.clone());
            return;
        };
        if !name.is_empty() && self.known.insert(name.clone()) {
            self.queue.push_back(name.clone());
        }
        *to = format!("{name}#{fragment}");
    }
}

/// The path of a referenced file within the description's folder; `None` if it is outside.
fn joined(base: &str, file: &str) -> Option<String> {
    let is_elsewhere = file.contains("://") || file.starts_with(['/', '\\']) || file.contains('\0');
    let has_scheme = file
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.contains('/'));
    if is_elsewhere || has_scheme {
        return None;
    }
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn each_reference(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(to) if key == "$ref" => visit(to),
                    inner => each_reference(inner, visit),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_reference(item, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_folder_of_the_description() {
        for (base, file, name) in [
            ("", "a.yaml", Some("a.yaml")),
            ("", "./parts/../a b.yaml", Some("a b.yaml")),
            ("parts/x.yaml", "y.yaml", Some("parts/y.yaml")),
            ("parts/x.yaml", "../y.yaml", Some("y.yaml")),
            ("", "../y.yaml", None),
            ("parts/x.yaml", "../../y.yaml", None),
            ("", "/etc/hosts", None),
            ("", "https://api.test/x.yaml", None),
            ("", "file:x.yaml", None),
        ] {
            assert_eq!(joined(base, file).as_deref(), name, "{base} {file}");
        }
    }
}
