//! Keys that identify functions and threads across builds and trials.

use std::borrow::Cow;
use std::fmt;

use crate::model::Function;

/// Identifies a function across builds of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The demangled name without the parts that change with each build: hashes, crate disambiguators, and clone
    /// suffixes. Closures keep their names.
    pub name: String,
    /// The base name of the source file, empty where it isn't known.
    pub file: String,
}

impl Key {
    /// The key of a function.
    pub fn of(function: &Function) -> Self {
        let file = function.file.rsplit(['/', '\\']).next().unwrap_or_default();
        Self {
            name: stable_name(&function.name).into_owned(),
            file: file.to_owned(),
        }
    }

    /// The key for comparisons with a build that names no source files.
    pub fn without_file(self) -> Self {
        Self {
            file: String::new(),
            ..self
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.as_str() {
            "" => f.write_str(&self.name),
            file => write!(f, "{} ({file})", self.name),
        }
    }
}

/// A name without its hash, disambiguators of crates, and suffixes of clones.
fn stable_name(name: &str) -> Cow<'_, str> {
    let mut name = name;
    loop {
        let shorter = without_clone(without_hash(name));
        if shorter.len() == name.len() || shorter.is_empty() {
            break;
        }
        name = shorter;
    }
    without_disambiguators(name)
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Without `::h` and 16 digits at the end, as in rustc's legacy mangling.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((start, hash)) if is_hex(hash, 16) => start,
        _ => name,
    }
}

/// Removes the last suffix of a clone: `.llvm.123`, `.part.0`, `.cold`, or its demangled form.
fn without_clone(name: &str) -> &str {
    if let Some(start) = name.strip_suffix(']')
        && let Some((start, clone)) = start.rsplit_once(" [clone ")
        && is_clone(clone)
    {
        return start;
    }
    for kind in CLONES {
        if let Some(at) = name.rfind(kind)
            && is_clone(&name[at..])
        {
            return &name[..at];
        }
    }
    name
}

/// The suffixes that compilers give to copies and parts of a function.
const CLONES: [&str; 6] = [
    ".llvm.",
    ".part.",
    ".isra.",
    ".constprop.",
    ".lto_priv.",
    ".cold",
];

fn is_clone(suffix: &str) -> bool {
    let digits = |rest: &str| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let kind = CLONES.iter().find_map(|kind| suffix.strip_prefix(kind));
    kind.is_some_and(digits)
}

/// Removes the disambiguators of crates: `core[7e2a5fb0d8c4ad21]::fmt` becomes `core::fmt`.
fn without_disambiguators(name: &str) -> Cow<'_, str> {
    let mut kept: Option<String> = None;
    let mut from = 0;
    for (at, _) in name.match_indices('[') {
        let Some(length) = name[at + 1..].find(']').filter(|_| at >= from) else {
            continue;
        };
        let before = name[..at].chars().next_back();
        let follows_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let inside = &name[at + 1..at + 1 + length];
        if follows_name && (1..=16).contains(&length) && is_hex(inside, length) && length >= 8 {
            let kept = kept.get_or_insert_with(String::new);
            kept.push_str(&name[from..at]);
            from = at + length + 2;
        }
    }
    match kept {
        Some(mut kept) => {
            kept.push_str(&name[from..]);
            Cow::Owned(kept)
        }
        None => Cow::Borrowed(name),
    }
}

/// The group of a thread: its name with `*` for the digits at its end, such as `http-*` for `http-0` and `http-1`.
pub fn thread_group(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("[unnamed threads]");
    }
    let start = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match start.len() == name.len() {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("{start}*")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, thread_group};
    use crate::model::Function;

    fn key(name: &str, file: &str) -> String {
        let function = Function {
            name: name.to_owned(),
            file: file.to_owned(),
        };
        Key::of(&function).to_string()
    }

    #[test]
    fn drops_what_compilers_make_anew_in_each_build() {
        for (name, stable) in [
            ("server::handle::h0123456789abcdef", "server::handle"),
            (
                "server::handle::h0123456789abcdeg",
                "server::handle::h0123456789abcdeg",
            ),
            ("core[7e2a5fb0d8c4ad21]::fmt::write", "core::fmt::write"),
            (
                "<alloc[7e2a5fb0d8c4ad21]::vec::Vec<u8> as core[8e2a5fb0d8c4ad21]::fmt::Debug>::fmt",
                "<alloc::vec::Vec<u8> as core::fmt::Debug>::fmt",
            ),
            ("work.llvm.1234567890", "work"),
            ("work.part.0.cold", "work"),
            ("work(int) [clone .constprop.0] [clone .cold]", "work(int)"),
            ("a::{{closure}}::h0123456789abcdef", "a::{{closure}}"),
            ("a::{closure#1}", "a::{closure#1}"),
            ("<[u8; 8] as x>::y", "<[u8; 8] as x>::y"),
            ("main.(*T).Run", "main.(*T).Run"),
            ("map[deadbeef", "map[deadbeef"),
            ("::h0123456789abcdef", "::h0123456789abcdef"),
            ("", ""),
        ] {
            assert_eq!(key(name, ""), stable, "{name}");
        }
    }

    #[test]
    fn keeps_the_base_name_of_the_file() {
        assert_eq!(key("a", "/build/7/src/a.rs"), "a (a.rs)");
        assert_eq!(key("a", r"C:\src\a.rs"), "a (a.rs)");
    }

    #[test]
    fn groups_threads_by_names_without_trailing_digits() {
        for (name, group) in [
            ("http-0", "http-*"),
            ("http-17", "http-*"),
            ("GC Thread#3", "GC Thread#*"),
            ("store-writer", "store-writer"),
            ("12", "*"),
            ("", "[unnamed threads]"),
        ] {
            assert_eq!(thread_group(name), group);
        }
    }
}
