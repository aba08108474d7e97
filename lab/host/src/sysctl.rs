//! Reads and writes one file of a kernel setting. It knows no journal and no plan.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};

use lab_study::CPU_LATENCY;

use crate::latency;

/// Most bytes of a value.
const MAX_BYTES: u64 = 64 << 10;

/// The value of a file: its text, or the word in brackets where it lists the choices
/// (`always [madvise] never`).
pub fn read(path: &str) -> io::Result<String> {
    if path == CPU_LATENCY {
        return latency::in_force();
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(chosen(String::from_utf8_lossy(&bytes).trim()).to_owned())
}

fn chosen(text: &str) -> &str {
    let in_brackets = |word: &'_ str| word.starts_with('[') && word.ends_with(']');
    let mut words = text.split_ascii_whitespace().filter(|w| in_brackets(w));
    match (words.next(), words.next()) {
        (Some(word), None) => &word[1..word.len() - 1],
        _ => text,
    }
}

/// Writes a value in one call, as the kernel requires.
fn put(path: &str, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(format!("{value}\n").as_bytes())
}

/// Writes a value if it differs.
pub fn write(path: &str, value: &str) -> io::Result<()> {
    if same(&read(path)?, value) {
        return Ok(());
    }
    put(path, value)
}

/// Compares values: the kernel separates numbers by tabs, people by blanks.
pub fn same(a: &str, b: &str) -> bool {
    a.split_ascii_whitespace().eq(b.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_is_the_value() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("[none] mq-deadline"), "none");
        assert_eq!(chosen("4096\t131072\t6291456"), "4096\t131072\t6291456");
        assert_eq!(chosen("[a] [b]"), "[a] [b]");
        assert_eq!(chosen(""), "");
    }
}
