//! A source file as the rules see it: code without comments, strings, and test modules, line for line. It reads
//! rustfmt's layout and is no parser of Rust.

/// Returns the file's lines without comments and the contents of strings; lines of test modules are empty.
pub(crate) fn code(text: &str) -> Vec<String> {
    without_tests(blanked(text).lines().map(str::to_owned).collect())
}

/// Returns the file's lines as written; those of test modules are empty.
pub(crate) fn shipped(text: &str) -> Vec<String> {
    without_tests(text.lines().map(str::to_owned).collect())
}

/// A function: where it begins, its name, its lines.
pub(crate) struct Function {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) lines: usize,
}

/// Returns all functions with a body, by rustfmt's layout: the closing brace has the indent of the `fn`.
pub(crate) fn functions(code: &[String]) -> Vec<Function> {
    let mut found = Vec::new();
    for (start, line) in code.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = indent_of(line);
        let end = code[start..].iter().position(|line| {
            indent_of(line) == indent && (line.trim_start().starts_with('}') || ends_at_once(line))
        });
        if let Some(length) = end {
            found.push(Function {
                line: start + 1,
                name,
                lines: length + 1,
            });
        }
    }
    found
}

fn ends_at_once(line: &str) -> bool {
    function_name(line).is_some() && (line.ends_with('}') || line.ends_with(';'))
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start();
    for prefix in [
        "pub(crate) ",
        "pub(super) ",
        "pub ",
        "const ",
        "async ",
        "extern \"\" ",
    ] {
        words = words.strip_prefix(prefix).unwrap_or(words);
    }
    let name: String = words
        .strip_prefix("fn ")?
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    Some(name)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Empties inline test modules, from their attribute to the closing brace.
fn without_tests(mut lines: Vec<String>) -> Vec<String> {
    let mut at = 0;
    while at < lines.len() {
        let opens = lines[at].trim() == "#[cfg(test)]"
            && lines
                .get(at + 1)
                .is_some_and(|next| next.trim_start().starts_with("mod ") && next.ends_with('{'));
        if !opens {
            at += 1;
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent_of(&lines[at])));
        let end = (at..lines.len())
            .find(|&line| lines[line] == closing)
            .unwrap_or(lines.len() - 1);
        for line in &mut lines[at..=end] {
            line.clear();
        }
        at = end + 1;
    }
    lines
}

/// The token around the current character.
enum Inside {
    Code,
    Line,
    Block(usize),
    Text,
    Raw(usize),
}

/// Removes comments and the contents of strings, and keeps every line break.
pub(crate) fn blanked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut inside = Inside::Code;
    let mut at = 0;
    while at < chars.len() {
        let (next, skip, kept) = step(&inside, &chars[at..]);
        out.extend(chars[at..at + skip].iter().filter(|c| kept || **c == '\n'));
        at += skip;
        inside = next;
    }
    out
}

/// One step: returns the new state, the number of characters consumed, and whether they are kept.
fn step(inside: &Inside, rest: &[char]) -> (Inside, usize, bool) {
    let second = rest.get(1).copied().unwrap_or(' ');
    match (inside, rest[0]) {
        (Inside::Code, '/') if second == '/' => (Inside::Line, 2, false),
        (Inside::Code, '/') if second == '*' => (Inside::Block(1), 2, false),
        (Inside::Code, '"') => (Inside::Text, 1, true),
        (Inside::Code, 'r') if raw_hashes(&rest[1..]).is_some() => {
            let hashes = raw_hashes(&rest[1..]).unwrap_or_default();
            (Inside::Raw(hashes), hashes + 2, false)
        }
        (Inside::Code, '\'') => (Inside::Code, char_literal(rest), false),
        (Inside::Code, c) if c.is_alphanumeric() || c == '_' => {
            let word = rest
                .iter()
                .take_while(|c| c.is_alphanumeric() || **c == '_')
                .count();
            // `br"…"`: the prefix of a raw string may end the word.
            (Inside::Code, word.max(1), true)
        }
        (Inside::Line, '\n') => (Inside::Code, 1, true),
        (Inside::Block(1), '*') if second == '/' => (Inside::Code, 2, false),
        (Inside::Block(depth), '*') if second == '/' => (Inside::Block(depth - 1), 2, false),
        (Inside::Block(depth), '/') if second == '*' => (Inside::Block(depth + 1), 2, false),
        (Inside::Text, '\\') => (Inside::Text, 2.min(rest.len()), false),
        (Inside::Text, '"') => (Inside::Code, 1, true),
        (Inside::Raw(hashes), '"')
            if rest[1..]
                .iter()
                .take(*hashes)
                .filter(|c| **c == '#')
                .count()
                == *hashes =>
        {
            (Inside::Code, hashes + 1, false)
        }
        (Inside::Code, _) => (Inside::Code, 1, true),
        (Inside::Line, _) => (Inside::Line, 1, false),
        (Inside::Block(depth), _) => (Inside::Block(*depth), 1, false),
        (Inside::Text, _) => (Inside::Text, 1, false),
        (Inside::Raw(hashes), _) => (Inside::Raw(*hashes), 1, false),
    }
}

/// After an `r`: the number of hashes of a raw string that begins here.
fn raw_hashes(rest: &[char]) -> Option<usize> {
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    (rest.get(hashes) == Some(&'"')).then_some(hashes)
}

/// The length of a character literal, or of a lifetime's quote alone.
fn char_literal(rest: &[char]) -> usize {
    match (rest.get(1), rest.get(2)) {
        (Some('\\'), _) => rest[2..]
            .iter()
            .skip(1)
            .position(|c| *c == '\'')
            .map_or(1, |end| end + 4),
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}
