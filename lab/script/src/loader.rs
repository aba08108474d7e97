//! Loads a script: reads its files, finds the functions that may wait, and writes them as generators.
//!
//! The text of a file is changed by insertions only, and no line end is added or removed, so the places of errors are
//! those of the file.

mod collect;
mod common;
mod deep;
mod edit;
mod facts;
mod literals;
mod modules;
mod purity;
mod state;
mod typescript;
mod values;
mod waits;
mod write;

use std::cell::RefCell;
use std::rc::Rc;

use oxc_allocator::Allocator;
use oxc_ast_visit::Visit as _;

use crate::engine::{Limits, Runtime};
use crate::program::{Files, Inner, LoadError, Program, Site, SiteKind, Source, Variables};
use crate::thrown::Thrown;
use collect::Collector;
use deep::deep;
use edit::{Edit, Lines, applied};
use facts::{Facts, Module};
use modules::{File, Imports, Parsed, error};
use state::{Shares, Writer};
use waits::{Named, Waits};

/// What each module of the script begins with.
const HEAD: &str =
    "import{$$K,$$U,$$at,$$a,$$y,$$f,$$z,$$o,$$open}from\"$$\";let $$t,$$k,$$v;export const $$m=0;";
/// The most files that a script opens.
const OPENED: usize = 1_000;

/// Loads a script from its entry file.
pub(crate) fn load(
    entry: &str,
    files: &dyn Files,
    env: &Variables,
) -> Result<Program, Vec<LoadError>> {
    let read = modules::read(entry, files)?;
    let mut inner = deep(|| written(&read.files))?;
    inner.sources = read.sources;
    inner.environment = env.clone();
    described(inner, files)
}

/// Checks a script without running it.
pub(crate) fn check(entry: &str, files: &dyn Files) -> Result<(), Vec<LoadError>> {
    let read = modules::read(entry, files)?;
    let inner = deep(|| written(&read.files))?;
    let broken = |(file, (_, text)): (&File, &(String, String))| {
        let problem = deep(|| modules::problem(text))?;
        Some(error(
            file,
            0,
            format!("what the loader made of the file isn't JavaScript: {problem}"),
            String::new(),
        ))
    };
    let problems: Vec<LoadError> = read
        .files
        .iter()
        .zip(&inner.modules)
        .filter_map(broken)
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn written(files: &[File]) -> Result<Inner, Vec<LoadError>> {
    let allocators: Vec<Allocator> = files.iter().map(|_| Allocator::default()).collect();
    let mut parsed = Vec::new();
    let mut problems = Vec::new();
    for (file, allocator) in files.iter().zip(&allocators) {
        match modules::parsed(allocator, file) {
            Ok(done) => parsed.push(done),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let mut all: Vec<Facts> = files
        .iter()
        .zip(&parsed)
        .map(|(file, parsed)| collected(file, &names, parsed))
        .collect();
    waits::mark_constructors(&mut all);
    for (file, facts) in files.iter().zip(&all) {
        for (at, message, help) in &facts.problems {
            problems.push(error(file, *at, message.clone(), help.clone()));
        }
    }
    let order = order(files);
    let shares = shares(&order, &parsed, &all);
    let mut inner = Inner::default();
    let counts = write_files(files, &parsed, &all, &shares, &mut inner, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    inner.main = main(&names, &order, &counts, &all, &shares);
    let mut variables: Vec<String> = all
        .iter()
        .flat_map(|facts| facts.variables.clone())
        .collect();
    variables.sort();
    variables.dedup();
    inner.variables = variables;
    Ok(inner)
}

fn collected(file: &File, names: &[String], parsed: &Parsed<'_>) -> Facts {
    let imports = Imports::of(file, parsed.program);
    let mut collector = Collector::new(&file.text, &parsed.scoping, &imports, &file.name);
    collector.visit_program(parsed.program);
    let mut facts = collector.facts;
    modules::exports(file, names, parsed.program, &parsed.scoping, &mut facts);
    facts.imports = imports.0;
    facts
}

/// The order in which modules are evaluated: what is imported first.
fn order(files: &[File]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; files.len()];
    let mut open = vec![(0, false)];
    while let Some((file, left)) = open.pop() {
        if left {
            order.push(file);
            continue;
        }
        if std::mem::replace(&mut seen[file], true) {
            continue;
        }
        open.push((file, true));
        let mut next: Vec<usize> = files[file]
            .specifiers
            .values()
            .filter_map(|module| match module {
                Module::File(number) => Some(*number),
                Module::Api(_) => None,
            })
            .collect();
        next.sort_unstable();
        open.extend(next.into_iter().rev().map(|file| (file, false)));
    }
    order
}

fn shares(order: &[usize], parsed: &[Parsed<'_>], facts: &[Facts]) -> Shares {
    let mut shares = Shares::default();
    for (file, parsed) in parsed.iter().enumerate() {
        shares.note_changes(file, parsed, facts);
    }
    for file in order {
        shares.decide(*file, &parsed[*file], facts);
    }
    shares
}

/// Writes all files, and numbers their call sites; returns how many functions of each initialise a user.
fn write_files(
    files: &[File],
    parsed: &[Parsed<'_>],
    all: &[Facts],
    shares: &Shares,
    inner: &mut Inner,
    problems: &mut Vec<LoadError>,
) -> Vec<usize> {
    let waits = Waits::new(all);
    inner.sites.push(Site {
        file: String::new(),
        line: 0,
        kind: SiteKind::Unknown,
        name: "unknown place".to_owned(),
        group: Vec::new(),
    });
    let mut counts = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let mut writer = Writer {
            file: number,
            scoping: &parsed[number].scoping,
            facts: all,
            shares,
            edits: vec![head(&file.text)],
            initialisers: 0,
        };
        writer.write(parsed[number].program);
        counts.push(writer.initialisers);
        let made = write::written(&waits, &file.text, number, inner.sites.len() as u32);
        let lines = Lines::new(&file.text);
        for place in made.places {
            let line = original(file, lines.place(place.at).0);
            inner.sites.push(Site {
                name: place
                    .name
                    .unwrap_or_else(|| format!("{}:{line}", file.name)),
                file: file.name.clone(),
                line,
                kind: place.kind,
                group: place.group,
            });
        }
        for (at, message, help) in made.problems {
            problems.push(error(file, at, message, help));
        }
        let mut edits = writer.edits;
        edits.extend(made.edits);
        edits.extend(all[number].fixed.iter().cloned());
        inner
            .modules
            .push((file.name.clone(), applied(&file.text, edits)));
        if let Some(lines) = &file.lines {
            inner.lines.insert(file.name.clone(), lines.clone());
        }
    }
    counts
}

fn original(file: &File, line: u32) -> u32 {
    let lines = file.lines.as_ref();
    lines
        .and_then(|lines| lines.get(line as usize - 1).copied())
        .unwrap_or(line)
}

/// The beginning of a module, behind the line for the shell.
fn head(text: &str) -> Edit {
    if text.starts_with("#!") {
        let end = text.find('\n').unwrap_or(text.len());
        return Edit::replace(0, end as u32, HEAD);
    }
    Edit::close(0, u32::MAX, HEAD)
}

/// The module that imports all others, and gives the prelude what the entry exports.
fn main(
    names: &[String],
    order: &[usize],
    counts: &[usize],
    facts: &[Facts],
    shares: &Shares,
) -> String {
    let mut out = String::from("import{$functions,$$U}from\"$$\";");
    for (number, name) in names.iter().enumerate() {
        let module = format!("script:{name}");
        out.push_str(&format!("import*as $${number} from{module:?};"));
    }
    out.push_str("$functions({__proto__:null");
    for name in exported_names(facts, 0, 32) {
        let value = match waits::exported(facts, 0, &name, 32) {
            Named::Local(file, symbol) => shares.place(file, symbol),
            _ => None,
        };
        match value {
            Some(place) => out.push_str(&format!(",get {name:?}(){{return $$U[{place}]}}")),
            None => out.push_str(&format!(",get {name:?}(){{return $$0[{name:?}]}}")),
        }
    }
    out.push_str("},[");
    for file in order {
        for i in 0..counts[*file] {
            out.push_str(&format!("$${file}.$$i{i},"));
        }
    }
    out.push_str("]);");
    out
}

fn exported_names(facts: &[Facts], file: usize, depth: usize) -> Vec<String> {
    let mut names: Vec<String> = facts[file]
        .exports
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    if depth > 0 {
        for module in &facts[file].all_from {
            if let Module::File(number) = module {
                let inner = exported_names(facts, *number, depth - 1).into_iter();
                names.extend(inner.filter(|name| name != "default"));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Runs the modules once, to read the options; reads the files that they open.
fn described(mut inner: Inner, files: &dyn Files) -> Result<Program, Vec<LoadError>> {
    for _ in 0..OPENED {
        let program = Program::new(inner);
        let wanted: Rc<RefCell<Vec<String>>> = Rc::default();
        let limits = Limits {
            turn: std::time::Duration::from_secs(10),
            ..Limits::default()
        };
        let described = Runtime::loading(&program, limits, 0, &wanted)
            .and_then(|mut runtime| runtime.describe());
        inner = program.into_inner();
        let wanted = wanted.take();
        let mut found = false;
        for name in wanted {
            if let Ok(text) = files.read(&name) {
                inner.sources.push(Source { name, text });
                found = true;
            }
        }
        if found {
            continue;
        }
        let text = described.map_err(|thrown| vec![of_thrown(&inner, &thrown)])?;
        read_description(&mut inner, &text);
        return Ok(Program::new(inner));
    }
    Err(vec![LoadError {
        file: inner.sources[0].name.clone(),
        line: 1,
        column: 1,
        message: format!("the script opens more than {OPENED} files"),
        help: String::new(),
    }])
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
}

fn of_thrown(inner: &Inner, thrown: &Thrown) -> LoadError {
    let frame = thrown.stack.first();
    LoadError {
        file: frame.map_or_else(|| inner.sources[0].name.clone(), |frame| frame.file.clone()),
        line: frame.map_or(1, |frame| frame.line),
        column: 1,
        message: thrown.message.clone(),
        help: String::new(),
    }
}
