//! Loads a script: reads its files, finds the functions that may wait, and writes them as generators.
//!
//! The text of a file is changed by insertions only, and no line end is added or removed, so the places of errors are
//! those of the file.

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast_visit::Visit as _;

use crate::collect::Collector;
use crate::deep::deep;
use crate::edit::{Edit, Lines, applied};
use crate::facts::{Facts, Module};
use crate::modules::{self, File, Imports, Parsed, error};
use crate::shares::Shares;
use crate::source::{Api, Files, LoadError, Mentions, Site, SiteKind, Source};
use crate::state::Writer;
use crate::waits::{self, Named, Waits};
use crate::write;

/// What each module of the script begins with.
const HEAD: &str =
    "import{$$K,$$U,$$at,$$a,$$y,$$f,$$z,$$o,$$open}from\"$$\";let $$t,$$k,$$v;export const $$m=0;";
/// A script in the form in which the engine runs it.
#[derive(Debug, Clone, Default)]
pub struct Converted {
    /// All files, the entry first.
    pub sources: Vec<Source>,
    /// The call sites in a fixed order; the first one stands for unknown places.
    pub sites: Vec<Site>,
    /// The names of variables that the sources read from `__ENV`.
    pub variables: Vec<String>,
    /// The names that tags give requests.
    pub tag_names: Vec<String>,
    /// The files that `open('…')` names, without those of composed names.
    pub opened: Vec<String>,
    /// What the files mention.
    pub mentions: Mentions,
    /// The files as the engine runs them: names and texts.
    pub modules: Vec<(String, String)>,
    /// The module that imports them.
    pub main: String,
    /// The lines in the sources of files that aren't JavaScript.
    pub lines: HashMap<String, Vec<u32>>,
}

/// Reads a script and the files that it imports, and converts them.
///
/// # Errors
///
/// All problems that were found, each with its place and what to do.
pub fn converted(
    entry: &str,
    files: &dyn Files,
    api: &dyn Api,
) -> Result<Converted, Vec<LoadError>> {
    let read = modules::read(entry, files, api)?;
    let mut made = deep(|| written(&read.files))?;
    made.sources = read.sources;
    Ok(made)
}

/// Checks a script without running it.
///
/// # Errors
///
/// All problems that were found.
pub fn check(entry: &str, files: &dyn Files, api: &dyn Api) -> Result<(), Vec<LoadError>> {
    let read = modules::read(entry, files, api)?;
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

fn written(files: &[File]) -> Result<Converted, Vec<LoadError>> {
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
    let mut inner = Converted::default();
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
    for facts in all {
        inner.tag_names.extend(facts.tag_names);
        inner.opened.extend(facts.opened);
        inner.mentions.cookie_jars |= facts.mentions.cookie_jars;
        inner.mentions.sent_requests |= facts.mentions.sent_requests;
        inner.mentions.response_types |= facts.mentions.response_types;
    }
    inner.opened.sort();
    inner.opened.dedup();
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
    inner: &mut Converted,
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
            let line = file.original(lines.place(place.at).0);
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
