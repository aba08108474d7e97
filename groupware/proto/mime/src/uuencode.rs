//! Files in texts as written by `uuencode`: lines between `begin 644 NAME` and `end`, whose first
//! letter encodes their number of bytes.

/// A file in a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    /// The start of its first line.
    pub(crate) start: usize,
    /// The end of its last line.
    pub(crate) end: usize,
    pub(crate) name: &'a [u8],
}

/// Finds the next file in a text from this offset on. Each line is examined once, whether it is part of a file or not.
pub(crate) fn find(text: &[u8], from: usize) -> Option<Found<'_>> {
    let mut begun: Option<(usize, &[u8], bool)> = None;
    let mut at = from;
    for line in text[from..].split_inclusive(|byte| *byte == b'\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let line = without_line_end(line);
        begun = match begun {
            Some((start, name, _)) if line.trim_ascii_end() == b"end" => {
                return Some(Found { start, end, name });
            }
            Some((start, name, is_over)) if !is_over && data_bytes(line).is_some() => {
                Some((start, name, data_bytes(line) == Some(0)))
            }
            // An empty line before the last one.
            Some((start, name, true)) if line.is_empty() => Some((start, name, true)),
            _ => name_of(line).map(|name| (start, name, false)),
        };
    }
    None
}

/// Decodes the file in content, with or without its first line. `None` if there is none.
pub(crate) fn decode(content: &[u8]) -> Option<Vec<u8>> {
    let lines = || content.split(|byte| *byte == b'\n').map(without_line_end);
    let has_begin = lines().any(|line| name_of(line).is_some());
    let from = if has_begin {
        lines().position(|line| name_of(line).is_some())? + 1
    } else {
        0
    };
    let mut decoded = Vec::with_capacity(content.len() / 4 * 3);
    for line in lines().skip(from) {
        match data_bytes(line) {
            // Trailing spaces may be missing, but not most of a file.
            Some(bytes) if bytes > 0 && decoded.len() + bytes <= content.len() => {
                push(&mut decoded, &line[1..], bytes);
            }
            _ => break,
        }
    }
    (!decoded.is_empty() || has_begin).then_some(decoded)
}

/// Returns the file name in a `begin` line.
pub(crate) fn name_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"begin ")?;
    let space = rest.iter().position(|byte| *byte == b' ')?;
    let (mode, name) = (&rest[..space], rest[space..].trim_ascii());
    let is_mode =
        (3..=4).contains(&mode.len()) && mode.iter().all(|byte| (b'0'..=b'7').contains(byte));
    (is_mode && !name.is_empty()).then_some(name)
}

/// The number of bytes in a line. `None` if it is no line of a file. Trailing spaces may be missing.
fn data_bytes(line: &[u8]) -> Option<usize> {
    let (first, rest) = line.split_first()?;
    let is_letter = |byte: &u8| (b' '..=b'`').contains(byte);
    let bytes = usize::from(first.checked_sub(b' ')?) & 63;
    // One more character is a checksum.
    let fits = rest.len() <= bytes.div_ceil(3) * 4 + 2;
    (is_letter(first) && fits && rest.iter().all(is_letter)).then_some(bytes)
}

fn push(decoded: &mut Vec<u8>, letters: &[u8], bytes: usize) {
    let end = decoded.len() + bytes;
    for at in (0..bytes.div_ceil(3) * 4).step_by(4) {
        let bits = (at..at + 4).fold(0_u32, |bits, at| {
            let letter = letters.get(at).copied().unwrap_or(b' ');
            bits << 6 | u32::from(letter.wrapping_sub(b' ') & 63)
        });
        decoded.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    decoded.truncate(end);
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As written by `uuencode` of sharutils.
    const FILE: &str = "begin 644 plan.txt\n45&AE('!I97(@:7,@8VQO<V5D+@H`\n`\nend\n";

    #[test]
    fn files_in_texts_are_found_and_decoded() {
        for (text, found) in [
            (format!("Hi\n\n{FILE}Bye\n"), Some((4, 4 + FILE.len()))),
            (FILE.replace('\n', "\r\n"), Some((0, FILE.len() + 4))),
            (FILE.replace("`\nend", " \nend"), Some((0, FILE.len()))),
            (
                FILE.replace("`\nend", "`\n\nend"),
                Some((0, FILE.len() + 1)),
            ),
            (FILE.replace("begin 644", "begin at 644"), None),
            (FILE.replace("end\n", "and\n"), None),
            ("begin 644 x\nThis is just a text.\nend\n".into(), None),
            ("begin 644 \n`\nend\n".into(), None),
            ("begin 644 a\nbegin 644 b\n`\nend".into(), Some((12, 29))),
        ] {
            let place = find(text.as_bytes(), 0).map(|it| (it.start, it.end));
            assert_eq!(place, found, "{text}");
            if let Some((start, end)) = found.filter(|_| text.contains("plan")) {
                let file = decode(&text.as_bytes()[start..end]).unwrap();
                assert_eq!(String::from_utf8_lossy(&file), "The pier is closed.\n");
            }
        }
    }

    #[test]
    fn no_file_is_larger_than_its_lines() {
        // Each line claims 45 bytes.
        let text = format!("begin 644 x\n{}`\nend\n", "M\n".repeat(1000));
        assert!(decode(text.as_bytes()).unwrap().len() <= text.len());
    }

    #[test]
    fn content_without_a_first_line_is_decoded() {
        let line = FILE.lines().nth(1).unwrap();
        assert_eq!(decode(line.as_bytes()).unwrap(), b"The pier is closed.\n");
        assert_eq!(decode(b"just a text"), None);
        assert_eq!(decode(b""), None);
    }
}
