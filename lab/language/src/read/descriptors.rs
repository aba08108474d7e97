//! Descriptors of a gRPC workload's services: compiled descriptor sets, and `.proto` files, which are compiled here
//! with all their imports.

use std::collections::HashMap;

use lab_workload::{Descriptors, MAX_DESCRIPTOR_BYTES};
use protox::Compiler;
use protox::file::{File, FileResolver, GoogleFileResolver};

use super::files::{Files, open, read_all};
use crate::error::Problems;
use crate::file::{ProtocolFile, WorkloadFile};
use lab_units::parts::{At, OneOrMany, Scalar};
use lab_units::source::sibling_path;

/// Maximum `.proto` files, including imports.
const MAX_FILES: usize = 1_000;

/// Sources by their import names.
#[derive(Default)]
struct Sources {
    texts: HashMap<String, String>,
    bytes: usize,
}

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.texts.get(name) {
            Some(text) => File::from_source(name, text),
            // Files that are part of every compiler.
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// Reads the descriptors that the workload names; `None` if a problem was reported.
pub(super) fn read(
    file: &WorkloadFile,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Option<Descriptors>> {
    let named = match file.protocol.as_ref().map(|protocol| &protocol.value) {
        Some(ProtocolFile::Full(full)) => full.descriptors.as_ref(),
        _ => None,
    };
    let named = named.map(OneOrMany::as_slice).unwrap_or_default();
    let Some(first) = named.first() else {
        return Some(None);
    };
    let mut set = Vec::new();
    let mut sources = Sources::default();
    let mut names = Vec::new();
    for at in named {
        let bytes = bytes(at, files, problems)?;
        match at.text().ends_with(".proto") {
            false => set.extend_from_slice(&bytes),
            true => {
                let (root, name) = split(&at.text());
                names.push(name.clone());
                let found = gather(&mut sources, (root, name, bytes), at, files);
                found.map_err(|what| note(at, what, problems)).ok()?;
            }
        }
    }
    if !names.is_empty() {
        let compiled = compiled(sources, &names);
        set.extend_from_slice(&compiled.map_err(|what| note(first, what, problems)).ok()?);
    }
    let read = Descriptors::parse(&set).map_err(|error| {
        let what = format!("`{}` describes no services: {error}", first.text());
        note(first, what, problems);
    });
    read.ok().map(Some)
}

/// Compiles a set with all of these files and their imports.
fn compiled(sources: Sources, names: &[String]) -> Result<Vec<u8>, String> {
    let mut compiler = Compiler::with_file_resolver(sources);
    compiler.include_imports(true);
    // The debug form of the error has file, line, and column.
    let opened = compiler.open_files(names).map(drop);
    opened.map_err(|error| format!("{error:?}"))?;
    Ok(compiler.encode_file_descriptor_set())
}

/// Adds a source and its imports, which are searched in its own folder, then in the workload's.
fn gather(
    sources: &mut Sources,
    (root, name, bytes): (String, String, Vec<u8>),
    at: &At<Scalar>,
    files: &dyn Files,
) -> Result<(), String> {
    let mut waiting = vec![(name, bytes)];
    while let Some((name, bytes)) = waiting.pop() {
        sources.bytes += bytes.len();
        if sources.bytes > MAX_DESCRIPTOR_BYTES || sources.texts.len() == MAX_FILES {
            let most = MAX_DESCRIPTOR_BYTES >> 20;
            return Err(format!(
                "it and what it imports are over {MAX_FILES} files, or {most} MiB"
            ));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is no text (UTF-8)"))?;
        // Errors in it are reported when all are compiled.
        let parsed = File::from_source(&name, &text);
        let imports = parsed.map(|file| file.file_descriptor_proto().dependency.clone());
        sources.texts.insert(name, text);
        for import in imports.unwrap_or_default() {
            let is_known = sources.texts.contains_key(&import)
                || waiting.iter().any(|(name, _)| *name == import);
            let folders = [root.as_str(), ""].map(|folder| format!("{folder}{import}"));
            let mut places = folders
                .iter()
                .map(|path| sibling_path(&at.span.file.name, path));
            if !is_known && let Some(bytes) = places.find_map(|path| files.read(&path).ok()) {
                waiting.push((import, bytes));
            }
        }
    }
    Ok(())
}

/// Splits a path into the folder, with its slash, and the file name.
fn split(path: &str) -> (String, String) {
    let at = path.rfind('/').map_or(0, |at| at + 1);
    (path[..at].to_owned(), path[at..].to_owned())
}

fn bytes(at: &At<Scalar>, files: &dyn Files, problems: &mut Problems) -> Option<Vec<u8>> {
    let bytes = open(at, files, problems)?;
    let read = read_all(&*bytes, MAX_DESCRIPTOR_BYTES);
    read.map_err(|error| note(at, format!("`{}`: {error}", at.text()), problems))
        .ok()
}

fn note(at: &At<Scalar>, message: String, problems: &mut Problems) {
    let help =
        "name a `.proto` file, or what `protoc --include_imports --descriptor_set_out=…` wrote";
    problems.push(
        at.span
            .first_line()
            .problem(message, "named here")
            .help(help),
    );
}
