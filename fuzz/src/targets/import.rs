//! Any text as a recording and as a description: a workload that loads, or an error.

use std::io;

use lab_import::har::{HarOptions, Noise};
use lab_import::openapi::{Files as References, OpenApiOptions};
use lab_import::{ImportError, Imported, har, openapi};
use lab_study::{Files, load_workload};

struct One(String);

impl Files for One {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }
}

/// The text of all files.
struct Referred<'t>(&'t str);

impl References for Referred<'_> {
    fn read(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
}

fn check(imported: Result<Imported, ImportError>) {
    if let Ok(imported) = imported {
        // A workload may exceed the limits for steps or variables.
        let loaded = load_workload("w.workload.yaml", &One(imported.workload.clone()));
        if let Err(error) = loaded {
            let said = error.to_string();
            let is_limit = ["at most", "more than", "has ", "twice"]
                .iter()
                .any(|word| said.contains(word));
            assert!(is_limit, "{said}\n{}", imported.workload);
        }
    }
}

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let name = "fuzzed".to_owned();
    check(har::import(
        text,
        &HarOptions {
            name: name.clone(),
            hosts: vec![],
            without: Noise::USUAL.to_vec(),
        },
    ));
    // The text after a zero byte is every file that the description refers to.
    let (description, file) = text.split_once('\0').unwrap_or((text, ""));
    let options = OpenApiOptions { name, from: None };
    check(openapi::import(description, &options, &Referred(file)));
}
