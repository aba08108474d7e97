//! A loaded script: its files, its options, its exported functions, and its call sites.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::api::Settings;
use lab_modules::{Converted, Site, Source};

/// A loaded script. It is cheap to copy, and can be loaded again from its [`Program::sources`] elsewhere.
#[derive(Debug, Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

/// What the loader makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inner {
    pub(crate) converted: Converted,
    pub(crate) environment: Variables,
    pub(crate) options: Value,
    pub(crate) functions: Vec<String>,
    pub(crate) settings: Settings,
}

/// The variables that a script reads from `__ENV`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(pub BTreeMap<String, String>);

impl Program {
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
        let modules = self.inner.converted.modules.iter();
        modules.map(|(name, text)| (name.as_str(), text.as_str()))
    }

    pub(crate) fn main(&self) -> &str {
        &self.inner.converted.main
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn environment(&self) -> &Variables {
        &self.inner.environment
    }

    /// The line in the source of a line that runs.
    pub(crate) fn original_line(&self, file: &str, line: u32) -> u32 {
        let lines = self.inner.converted.lines.get(file);
        let found = lines.and_then(|lines| lines.get((line as usize).saturating_sub(1)));
        found.copied().unwrap_or(line)
    }

    /// The files as the engine runs them, with what the loader inserted.
    #[doc(hidden)]
    pub fn written(&self) -> Vec<(String, String)> {
        self.inner.converted.modules.clone()
    }

    /// All files, the entry first: what to archive, to hash, and to send to other generators.
    pub fn sources(&self) -> &[Source] {
        &self.inner.converted.sources
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
        &self.inner.converted.sites
    }

    /// The names of variables that the source reads from `__ENV`.
    pub fn variables(&self) -> &[String] {
        &self.inner.converted.variables
    }

    /// The names that tags give requests, as far as the source has them as texts.
    pub fn tag_names(&self) -> &[String] {
        &self.inner.converted.tag_names
    }
}
