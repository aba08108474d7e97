//! Records of a store as lines of text and back, so that a test can pin the stored form: a line is `partition key
//! value`, and bytes that aren't printable ASCII are written as `\xHH`.
//!
//! Independent of the store: the test scans and writes the records.

/// Partition, key, and value.
pub type Row = (String, Vec<u8>, Vec<u8>);

/// Writes one line for each record.
pub fn lines(rows: &[Row]) -> String {
    rows.iter()
        .map(|(partition, key, value)| format!("{partition} {} {}\n", shown(key), shown(value)))
        .collect()
}

/// Reads the records of a snapshot file, whose head is skipped.
///
/// # Panics
/// When the file is malformed.
pub fn rows(snapshot: &str) -> Vec<Row> {
    let body = snapshot
        .splitn(3, "---\n")
        .nth(2)
        .expect("a snapshot has a head");
    body.lines().map(row).collect()
}

fn row(line: &str) -> Row {
    let mut parts = line.splitn(3, ' ');
    let mut part = || parts.next().expect("partition, key, and value");
    (part().to_owned(), bytes(part()), bytes(part()))
}

fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0x21..=0x7E => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = std::str::from_utf8(&rest[1..3]).expect("two digits");
            bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
            rest = &rest[3..];
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let row = ("p".to_owned(), b"k\\x \0".to_vec(), all);
        let text = format!("---\nhead\n---\n{}", lines(std::slice::from_ref(&row)));
        assert_eq!(rows(&text), [row]);
    }
}
