//! A loaded script: its files, its options, its exported functions, and its call sites.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::loader;

/// A loaded script. It is cheap to copy, and can be loaded again from its [`Program::sources`] elsewhere.
#[derive(Debug, Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

/// What the loader makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inner {
    pub(crate) sources: Vec<Source>,
    pub(crate) environment: Variables,
    pub(crate) options: Value,
    pub(crate) functions: Vec<String>,
    pub(crate) sites: Vec<Site>,
    pub(crate) variables: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// The files as the engine runs them.
    pub(crate) modules: Vec<(String, String)>,
    /// The module that imports them.
    pub(crate) main: String,
    /// The lines in the sources of files that aren't JavaScript.
    pub(crate) lines: HashMap<String, Vec<u32>>,
}

/// A file that a script consists of or opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path relative to the folder of the entry, with `/`; it may begin with `../`.
    pub name: String,
    /// The content.
    pub text: Vec<u8>,
}

/// Reads the files of a script.
pub trait Files {
    /// The content of a file, named relative to the folder of the entry.
    ///
    /// # Errors
    ///
    /// A sentence if it can't be read, or is outside the folders that may be read.
    fn read(&self, name: &str) -> Result<Vec<u8>, String>;
}

/// Files that are in memory, such as those of a [`Program`] that was sent to another machine.
#[derive(Debug, Clone, Copy)]
pub struct Bundle<'a>(pub &'a [Source]);

impl Files for Bundle<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|source| source.name == name);
        found
            .map(|source| source.text.clone())
            .ok_or_else(|| "the file is not among those of the script".to_owned())
    }
}

/// The variables that a script reads from `__ENV`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(pub BTreeMap<String, String>);

/// A problem of a script that prevents it from being loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct LoadError {
    /// The file, as in [`Source::name`].
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to do; empty if there is nothing more to say.
    pub help: String,
}

/// A place in a script that calls the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The file, as in [`Source::name`].
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What is called.
    pub kind: SiteKind,
    /// A name for reports: `GET /items/{id}` of a request, the text of a group.
    pub name: String,
    /// The names of the groups around the call in the same function, outermost first.
    pub group: Vec<String>,
}

/// What a call site calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// The place of all calls whose place isn't known: the first of [`Program::sites`].
    Unknown,
    /// A request of HTTP.
    Request,
    /// Several requests at once.
    Batch,
    /// A check.
    Check,
    /// A group.
    Group,
    /// A wait.
    Sleep,
    /// A WebSocket.
    Socket,
    /// Another call of a k6 module.
    Other,
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
        loader::load(entry, files, env)
    }

    /// Checks a script without running it: its files, its syntax, and where it waits.
    ///
    /// # Errors
    ///
    /// All problems that were found.
    pub fn check(entry: &str, files: &dyn Files) -> Result<(), Vec<LoadError>> {
        loader::check(entry, files)
    }

    pub(crate) fn new(inner: Inner) -> Program {
        Program {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn into_inner(self) -> Inner {
        Arc::try_unwrap(self.inner).unwrap_or_else(|shared| (*shared).clone())
    }

    /// The files as the engine runs them.
    pub(crate) fn modules(&self) -> impl Iterator<Item = (&str, &str)> {
        let modules = self.inner.modules.iter();
        modules.map(|(name, text)| (name.as_str(), text.as_str()))
    }

    pub(crate) fn main(&self) -> &str {
        &self.inner.main
    }

    pub(crate) fn environment(&self) -> &Variables {
        &self.inner.environment
    }

    /// The line in the source of a line that runs.
    pub(crate) fn original_line(&self, file: &str, line: u32) -> u32 {
        let lines = self.inner.lines.get(file);
        let found = lines.and_then(|lines| lines.get((line as usize).saturating_sub(1)));
        found.copied().unwrap_or(line)
    }

    /// The files as the engine runs them, with what the loader inserted.
    #[doc(hidden)]
    pub fn written(&self) -> Vec<(String, String)> {
        self.inner.modules.clone()
    }

    /// All files, the entry first: what to archive, to hash, and to send to other generators.
    pub fn sources(&self) -> &[Source] {
        &self.inner.sources
    }

    /// The value of `export const options`; an empty object if there is none.
    pub fn options(&self) -> &Value {
        &self.inner.options
    }

    /// The names of the exported functions: `default`, `setup`, `teardown`, `handleSummary`, and others.
    pub fn functions(&self) -> &[String] {
        &self.inner.functions
    }

    /// The call sites in a fixed order; the first one stands for unknown places.
    pub fn sites(&self) -> &[Site] {
        &self.inner.sites
    }

    /// The names of variables that the source reads from `__ENV`.
    pub fn variables(&self) -> &[String] {
        &self.inner.variables
    }

    /// Sentences on what differs from k6 for this script.
    pub fn notes(&self) -> &[String] {
        &self.inner.notes
    }
}
