//! Loads a script: converts its files, runs them once for their options, and reads the files that they open.

use std::cell::RefCell;
use std::rc::Rc;

use lab_modules::{Api, Files, LoadError, Source};

use crate::api;
use crate::engine::{Limits, Runtime};
use crate::program::{Inner, Program, Variables};
use crate::thrown::Thrown;

/// The most files that a script opens.
const OPENED: usize = 1_000;

/// The modules of k6, and others.
struct Bundled;

impl Api for Bundled {
    fn resolve(&self, specifier: &str) -> Option<&'static str> {
        api::resolve(specifier)
    }

    fn refused(&self, specifier: &str) -> Option<(String, &'static str)> {
        api::refused(specifier)
    }
}

impl Program {
    /// Loads a script from its entry file.
    ///
    /// # Errors
    ///
    /// All problems that were found, each with its place and what to do.
    pub fn load(
        entry: &str,
        files: &dyn Files,
        env: &Variables,
    ) -> Result<Program, Vec<LoadError>> {
        let inner = Inner {
            converted: lab_modules::converted(entry, files, &Bundled)?,
            environment: env.clone(),
            ..Inner::default()
        };
        described(inner, files)
    }

    /// Checks a script without running it: its files, its syntax, and where it waits.
    ///
    /// # Errors
    ///
    /// All problems that were found.
    pub fn check(entry: &str, files: &dyn Files) -> Result<(), Vec<LoadError>> {
        lab_modules::check(entry, files, &Bundled)
    }
}

/// Reads the files that the modules open, and runs the modules for the options. They run again for each file with a
/// composed name.
fn described(mut inner: Inner, files: &dyn Files) -> Result<Program, Vec<LoadError>> {
    for name in std::mem::take(&mut inner.converted.opened) {
        read_opened(&mut inner, files, name);
    }
    for _ in 0..OPENED {
        let program = Program::new(inner);
        let wanted: Rc<RefCell<Vec<String>>> = Rc::default();
        let described = Runtime::loading(&program, Limits::default(), 0, &wanted)
            .and_then(|mut runtime| runtime.describe());
        inner = program.into_inner();
        let wanted = wanted.take();
        let mut found = false;
        for name in wanted {
            found |= read_opened(&mut inner, files, name);
        }
        if found {
            continue;
        }
        let text = described.map_err(|thrown| vec![of_thrown(&inner, &thrown)])?;
        read_description(&mut inner, &text);
        return Ok(Program::new(inner));
    }
    Err(vec![LoadError {
        file: inner.converted.sources[0].name.clone(),
        line: 1,
        column: 1,
        message: format!("the script opens more than {OPENED} files"),
        help: String::new(),
    }])
}

/// Reads a file that the script opens, unless it is known. Returns true if it is new.
fn read_opened(inner: &mut Inner, files: &dyn Files, name: String) -> bool {
    let sources = &mut inner.converted.sources;
    if sources.iter().any(|source| source.name == name) {
        return false;
    }
    match files.read(&name) {
        Ok(text) => sources.push(Source { name, text }),
        // The call of `open` says so.
        Err(_) => return false,
    }
    true
}

fn read_description(inner: &mut Inner, text: &str) {
    let mut description: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    inner.options = description["options"].take();
    if let serde_json::Value::Array(names) = description["functions"].take() {
        let names = names
            .into_iter()
            .filter_map(|name| name.as_str().map(str::to_owned));
        inner.functions = names.collect();
    }
    inner.settings = api::Settings::of(&inner.options, inner.converted.mentions);
}

fn of_thrown(inner: &Inner, thrown: &Thrown) -> LoadError {
    let frame = thrown.stack.first();
    LoadError {
        file: frame.map_or_else(
            || inner.converted.sources[0].name.clone(),
            |frame| frame.file.clone(),
        ),
        line: frame.map_or(1, |frame| frame.line),
        column: 1,
        message: thrown.message.clone(),
        help: String::new(),
    }
}
