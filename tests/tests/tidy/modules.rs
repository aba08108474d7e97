//! The imports between modules of a crate, read from paths in the code, and the circles among them.
//!
//! A re-export is resolved to the module of the item; a folder's own file that re-exports items below it does not
//! import them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::source::code;

type Module = Vec<String>;

/// A crate's modules, by their paths, with the names in scope and the paths that each refers to.
pub(crate) struct Graph {
    modules: BTreeMap<Module, Names>,
}

#[derive(Default)]
struct Names {
    /// Name in scope → the path that it stands for.
    uses: BTreeMap<String, Module>,
    /// Paths that are not re-exports.
    refers: BTreeSet<Module>,
}

impl Graph {
    /// Reads all source files below a crate's `src`.
    pub(crate) fn read(src: &Path, files: &[std::path::PathBuf]) -> Self {
        let texts: BTreeMap<Module, Vec<String>> = files
            .iter()
            .filter_map(|file| {
                let inner = file.strip_prefix(src).ok()?;
                let module = module_of(inner)?;
                Some((module, code(&fs::read_to_string(file).ok()?)))
            })
            .collect();
        let modules = texts
            .iter()
            .map(|(module, lines)| (module.clone(), names(module, lines, &texts)))
            .collect();
        Self { modules }
    }

    /// Returns sets of modules that all import each other, over any number of steps.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let edges = self.edges();
        let reach: BTreeMap<&Module, BTreeSet<&Module>> = edges
            .keys()
            .map(|module| (module, reachable(module, &edges)))
            .collect();
        let mut circles = BTreeSet::new();
        for (module, far) in &reach {
            let circle: Vec<String> = far
                .iter()
                .filter(|other| reach.get(**other).is_some_and(|back| back.contains(module)))
                .map(|other| other.join("::"))
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    fn edges(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        self.modules
            .iter()
            .map(|(module, names)| {
                let to = names
                    .refers
                    .iter()
                    .filter_map(|path| self.home(path, 8))
                    .filter(|home| home != module)
                    .collect();
                (module.clone(), to)
            })
            .collect()
    }

    /// Returns the module of the item that the path names.
    fn home(&self, path: &[String], depth: usize) -> Option<Module> {
        let mut module = Module::new();
        for (at, segment) in path.iter().enumerate() {
            let below: Module = module.iter().chain([segment]).cloned().collect();
            if self.modules.contains_key(&below) {
                module = below;
                continue;
            }
            let names = self.modules.get(&module)?;
            return match names.uses.get(segment) {
                Some(target) if depth > 0 => {
                    let whole: Module = target.iter().chain(&path[at + 1..]).cloned().collect();
                    self.home(&whole, depth - 1)
                }
                _ => Some(module),
            };
        }
        Some(module)
    }
}

fn reachable<'a>(
    from: &'a Module,
    edges: &'a BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Module> = edges.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(edges.get(module).into_iter().flatten());
        }
    }
    seen
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`; the crate's root is the empty path. Test files are no modules.
fn module_of(inner: &Path) -> Option<Module> {
    let mut parts: Module = inner
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if parts.iter().any(|part| part == "tests" || part == "bin") {
        return None;
    }
    if matches!(
        parts.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        parts.pop();
    }
    Some(parts)
}

fn names(module: &Module, lines: &[String], all: &BTreeMap<Module, Vec<String>>) -> Names {
    let text = lines.join("\n");
    let mut found = Names::default();
    let mut rest = String::new();
    for statement in text.split_inclusive(';') {
        let Some(start) = use_start(statement) else {
            rest.push_str(statement);
            continue;
        };
        rest.push_str(&statement[..start]);
        let public = statement[..start].trim_end().ends_with("pub")
            || statement[..start].trim_end().ends_with(')');
        let tree = statement[start + 4..].trim_end_matches(';');
        for (name, path) in leaves(tree) {
            let Some(path) = absolute(module, &path, all) else {
                continue;
            };
            let facade = public && path.starts_with(module);
            if !facade {
                found.refers.insert(path.clone());
            }
            found.uses.insert(name, path);
        }
    }
    inline(module, &rest, &mut found, all);
    found
}

/// Returns where the `use` of a statement begins, if it is one.
fn use_start(statement: &str) -> Option<usize> {
    let at = statement.rfind("use ")?;
    let before = statement[..at].trim_end();
    let line = before.rsplit(['\n', ';', '{', '}', ']']).next()?.trim();
    let starts = line.is_empty() || line == "pub" || line.starts_with("pub(");
    (starts && !statement[at..].contains('=')).then_some(at)
}

/// Expands `a::{b, c as d}` to `(b, a::b)` and `(d, a::c)`.
fn leaves(tree: &str) -> Vec<(String, Module)> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        return leaf(tree).into_iter().collect();
    };
    let prefix: Module = segments(&tree[..open]);
    let inner = tree[open + 1..].trim_end().trim_end_matches('}');
    split_outside(inner)
        .iter()
        .flat_map(|part| leaves(part))
        .map(|(name, path)| {
            let path: Module = if path == ["self"] {
                prefix.clone()
            } else {
                prefix.iter().cloned().chain(path).collect()
            };
            let name = if name == "self" {
                path.last().cloned().unwrap_or_default()
            } else {
                name
            };
            (name, path)
        })
        .collect()
}

fn leaf(tree: &str) -> Option<(String, Module)> {
    let (path, name) = match tree.split_once(" as ") {
        Some((path, name)) => (segments(path), name.trim().to_owned()),
        None => {
            let path = segments(tree);
            let name = path.last()?.clone();
            (path, name)
        }
    };
    (!path.is_empty()).then_some((name, path))
}

fn segments(path: &str) -> Module {
    path.split("::")
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty() && part != "*")
        .collect()
}

/// Splits at commas outside of braces.
fn split_outside(inner: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in inner.chars() {
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth = match c {
                    '{' => depth + 1,
                    '}' => depth.saturating_sub(1),
                    _ => depth,
                };
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Returns a path from the crate's root; `None` if it leads to another crate.
fn absolute(
    module: &Module,
    path: &[String],
    all: &BTreeMap<Module, Vec<String>>,
) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some(module.iter().chain(rest).cloned().collect()),
        "super" => absolute(
            &module[..module.len().checked_sub(1)?].to_vec(),
            &prepend(rest),
            all,
        ),
        _ => {
            let below: Module = module.iter().chain([first]).cloned().collect();
            all.contains_key(&below)
                .then(|| module.iter().chain(path).cloned().collect())
        }
    }
}

/// The rest after one `super`: a further `super` is kept, all else is relative to the parent.
fn prepend(rest: &[String]) -> Module {
    if rest.first().is_some_and(|next| next == "super") {
        return rest.to_vec();
    }
    std::iter::once("self".to_owned())
        .chain(rest.iter().cloned())
        .collect()
}

/// Paths in the code itself: `crate::a::b`, `super::c`, and `d::e` where `d` is in scope or a child.
fn inline(module: &Module, code: &str, found: &mut Names, all: &BTreeMap<Module, Vec<String>>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for token in code.split(|c: char| !is_part(c)) {
        if !token.contains("::") {
            continue;
        }
        let path = segments(token);
        let Some(first) = path.first() else { continue };
        let whole = match found.uses.get(first) {
            Some(target) => Some(target.iter().chain(&path[1..]).cloned().collect()),
            None => absolute(module, &path, all),
        };
        if let Some(whole) = whole {
            found.refers.insert(whole);
        }
    }
}
