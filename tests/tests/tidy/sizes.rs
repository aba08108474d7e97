//! The maximum length of a function, a file, and a crate.

use std::fs;
use std::path::Path;

use crate::source::{code, functions};
use crate::tree::{complain, crates, files, show};

/// The maximum lines of a file; longer files hold more than one idea.
const FILE_LINES: usize = 700;
/// The maximum lines of a function.
const FUNCTION_LINES: usize = 70;
/// The maximum lines of a crate.
const CRATE_LINES: usize = 9_200;

/// Functions that may be longer, as `file: name`, each with its reason.
const LONG_FUNCTIONS: &[(&str, &str)] = &[(
    "lab/trial/src/trial.rs: analysis",
    "a line for each field of a trial's analysis",
)];

#[test]
fn no_source_file_holds_more_than_one_idea() {
    let offenders: Vec<String> = files(".rs")
        .iter()
        .map(|path| (path, read(path).lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES)
        .map(|(path, lines)| format!("{} has {lines} lines", show(path)))
        .collect();
    complain("split files of over 700 lines by idea", &offenders);
}

#[test]
fn no_function_is_longer_than_a_page() {
    let mut offenders = Vec::new();
    let mut excused = Vec::new();
    for path in files(".rs").into_iter().filter(|path| !is_of_tests(path)) {
        for function in functions(&code(&read(&path))) {
            let name = format!("{}: {}", show(&path), function.name);
            if function.lines <= FUNCTION_LINES {
                continue;
            }
            if LONG_FUNCTIONS.iter().any(|(listed, _)| *listed == name) {
                excused.push(name);
            } else {
                offenders.push(format!(
                    "{name} (line {}) has {}",
                    function.line, function.lines
                ));
            }
        }
    }
    complain(
        "cut functions of over 70 lines, or list them with a reason",
        &offenders,
    );
    let idle: Vec<String> = LONG_FUNCTIONS
        .iter()
        .map(|(listed, _)| (*listed).to_owned())
        .filter(|listed| !excused.contains(listed))
        .collect();
    complain("these are short now: take them off the list", &idle);
}

#[test]
fn no_crate_is_larger_than_a_person_holds_in_mind() {
    let folders = crates();
    let mut sums = vec![0; folders.len()];
    for path in files(".rs") {
        let home = folders
            .iter()
            .position(|folder| path.starts_with(folder.join("src")));
        if let Some(home) = home {
            sums[home] += source_lines(&path);
        }
    }
    assert!(sums.iter().sum::<usize>() > 10_000, "the sources are found");
    let offenders: Vec<String> = folders
        .iter()
        .zip(sums)
        .filter(|(_, lines)| *lines > CRATE_LINES)
        .map(|(folder, lines)| format!("{} has {lines} lines", show(folder)))
        .collect();
    complain("cut crates of over 9,200 lines of source", &offenders);
}

/// The number of lines of a file outside inline tests; 0 for test files.
fn source_lines(path: &Path) -> usize {
    if is_of_tests(path) {
        return 0;
    }
    let text = read(path);
    let kept = code(&text);
    // Lines blanked as tests are not counted, but blank lines of the source are.
    text.lines()
        .zip(kept)
        .filter(|(line, kept)| {
            line.trim().is_empty() || !kept.trim().is_empty() || line.trim_start().starts_with("//")
        })
        .count()
}

/// Returns true for files of tests, which may be long tables, and for the time and sockets that tests simulate.
fn is_of_tests(path: &Path) -> bool {
    let names = ["tests", "tests.rs", "simulation", "simulation.rs"];
    path.components()
        .any(|part| names.iter().any(|name| part.as_os_str() == *name))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("readable")
}
