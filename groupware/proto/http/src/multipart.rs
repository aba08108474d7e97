//! A streaming parser of `multipart/form-data` (RFC 7578): the caller keeps the bytes, the parser
//! classifies them. It stores only the boundary, so that a body takes no more memory than the bytes
//! that the caller reads at once.

use memchr::memmem;

use crate::FieldError;

/// Largest head of a part.
pub const PART_HEAD_BYTES: usize = 8 * 1024;
/// Most headers of a part.
pub const PART_HEADERS: usize = 16;
/// Most parts of a form.
pub const PARTS: usize = 64;

/// Returns the boundary in a `Content-Type`; `None` if it is no form.
pub fn boundary(content_type: &str) -> Option<String> {
    let (essence, rest) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(rest, "boundary")?;
    // RFC 2046, 5.1.1.
    let is_fine = (1..=70).contains(&boundary.len()) && boundary.bytes().all(|byte| byte > b' ');
    is_fine.then_some(boundary)
}

/// The state of a parse.
#[derive(Debug)]
pub struct Multipart {
    /// `\r\n--boundary`
    delimiter: Vec<u8>,
    state: State,
    parts: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Preamble,
    /// After a delimiter.
    Delimited,
    Content,
    Done,
}

/// The meaning of the first bytes of the form. The caller drops `taken` of them.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Undecided until there are more bytes, or the form ends.
    More,
    /// Nothing of interest.
    Skip {
        /// The number of bytes.
        taken: usize,
    },
    /// A part begins.
    Part {
        /// The number of bytes.
        taken: usize,
        /// The parsed head.
        head: PartHead,
    },
    /// Content of the current part: these bytes themselves.
    Content {
        /// The number of bytes.
        taken: usize,
    },
    /// The part is complete.
    PartEnd {
        /// The number of bytes.
        taken: usize,
    },
    /// The form is complete; further bytes are ignored.
    End,
}

/// The head of a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartHead {
    /// The field's name.
    pub field: String,
    /// The file's name, if it is one.
    pub file_name: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
}

impl Multipart {
    /// Starts a form with this boundary.
    pub fn new(boundary: &str) -> Self {
        Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            state: State::Preamble,
            parts: 0,
        }
    }

    /// Classifies the first of these bytes.
    ///
    /// # Errors
    /// If they are no form, or exceed a bound.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Event, FieldError> {
        match self.state {
            State::Preamble => self.preamble(bytes),
            State::Delimited => self.delimited(bytes),
            State::Content => Ok(self.content(bytes)),
            State::Done => Ok(Event::End),
        }
    }

    /// A form begins with a delimiter; a short text before it is skipped.
    fn preamble(&mut self, bytes: &[u8]) -> Result<Event, FieldError> {
        // The first delimiter has no line end before it.
        let first = &self.delimiter[2..];
        let at = match bytes.starts_with(first) {
            true => Some(first.len()),
            false => memmem::find(bytes, &self.delimiter).map(|at| at + self.delimiter.len()),
        };
        match at {
            Some(taken) => {
                self.state = State::Delimited;
                Ok(Event::Skip { taken })
            }
            None if bytes.len() > PART_HEAD_BYTES => Err(malformed()),
            None => Ok(Event::More),
        }
    }

    fn delimited(&mut self, bytes: &[u8]) -> Result<Event, FieldError> {
        if bytes.starts_with(b"--") {
            self.state = State::Done;
            return Ok(Event::End);
        }
        // Blanks may follow, up to the end of the line.
        let Some(line) = memmem::find(bytes, b"\r\n") else {
            return incomplete(bytes);
        };
        if !bytes[..line].iter().all(|byte| b" \t".contains(byte)) {
            return Err(malformed());
        }
        let head = &bytes[line + 2..];
        let end = match head.starts_with(b"\r\n") {
            true => Some(2),
            false => memmem::find(head, b"\r\n\r\n").map(|at| at + 4),
        };
        let Some(end) = end else {
            return incomplete(bytes);
        };
        self.parts += 1;
        if end > PART_HEAD_BYTES || self.parts > PARTS {
            return Err(malformed());
        }
        self.state = State::Content;
        Ok(Event::Part {
            taken: line + 2 + end,
            head: part_head(&head[..end])?,
        })
    }

    fn content(&mut self, bytes: &[u8]) -> Event {
        match memmem::find(bytes, &self.delimiter) {
            Some(0) => {
                self.state = State::Delimited;
                Event::PartEnd {
                    taken: self.delimiter.len(),
                }
            }
            Some(taken) => Event::Content { taken },
            None => match bytes.len().saturating_sub(self.delimiter.len() - 1) {
                // The remaining bytes may be the beginning of a delimiter.
                0 => Event::More,
                taken => Event::Content { taken },
            },
        }
    }
}

/// More bytes are needed, unless there are too many already.
fn incomplete(bytes: &[u8]) -> Result<Event, FieldError> {
    match bytes.len() > PART_HEAD_BYTES {
        true => Err(malformed()),
        false => Ok(Event::More),
    }
}

fn malformed() -> FieldError {
    FieldError::Malformed("The body is not a form with files.".into())
}

fn part_head(bytes: &[u8]) -> Result<PartHead, FieldError> {
    let mut headers = [httparse::EMPTY_HEADER; PART_HEADERS];
    let parsed = httparse::parse_headers(bytes, &mut headers);
    let Ok(httparse::Status::Complete((_, headers))) = parsed else {
        return Err(malformed());
    };
    let mut head = PartHead::default();
    for header in headers {
        let value = std::str::from_utf8(header.value).map_err(|_| malformed())?;
        if header.name.eq_ignore_ascii_case("content-disposition") {
            let (_, rest) = value.split_once(';').ok_or_else(malformed)?;
            head.field = parameter(rest, "name").unwrap_or_default();
            head.file_name = parameter(rest, "filename");
        } else if header.name.eq_ignore_ascii_case("content-type") {
            head.media_type = Some(value.trim().to_owned());
        }
    }
    Ok(head)
}

/// Returns a parameter of a header: a token, or a quoted string, in which browsers write `%22` for
/// a quote and other clients escape it with a backslash.
fn parameter(mut rest: &str, wanted: &str) -> Option<String> {
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, behind) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        let name = name.trim_start_matches([';', ' ', '\t']).trim();
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = behind;
    }
}

/// Returns the text up to the closing quote, and the rest.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value.replace("%22", "\""), &quoted[at + 1..])),
            '\\' => match letters.next() {
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                // Old browsers send the path of a file on Windows.
                Some((_, other)) => value.extend(['\\', other]),
                None => return None,
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The parts of a form that arrives in pieces of these lengths.
    fn read(
        form: &[u8],
        boundary: &str,
        pieces: &[usize],
    ) -> Result<Vec<(PartHead, Vec<u8>)>, FieldError> {
        let mut multipart = Multipart::new(boundary);
        let (mut buffer, mut at, mut pieces) = (Vec::new(), 0, pieces.iter().cycle());
        let (mut parts, mut open) = (Vec::new(), None);
        loop {
            let taken = match multipart.next(&buffer)? {
                Event::More if at == form.len() => return Err(malformed()),
                Event::More => {
                    let end = form
                        .len()
                        .min(at + pieces.next().copied().unwrap_or(1).max(1));
                    buffer.extend_from_slice(&form[at..end]);
                    at = end;
                    0
                }
                Event::Skip { taken } => taken,
                Event::Part { taken, head } => {
                    open = Some((head, Vec::new()));
                    taken
                }
                Event::Content { taken } => {
                    let (_, content) = open.as_mut().expect("content is of a part");
                    content.extend_from_slice(&buffer[..taken]);
                    taken
                }
                Event::PartEnd { taken } => {
                    parts.extend(open.take());
                    taken
                }
                Event::End => return Ok(parts),
            };
            buffer.drain(..taken);
        }
    }

    const FORM: &str = "ignored\r\n--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\
                        plain\r\n--B  \r\ncontent-disposition: form-data; name=f; \
                        filename=\"a \\\"b\\\".txt\"\r\nContent-Type: text/plain\r\n\r\n\
                        \r\n--\r\n--Bx\r\n--B--\r\nignored";

    #[test]
    fn forms_are_read_whatever_the_pieces() {
        for piece in [1, 2, 3, 7, 1000] {
            // A content line that begins like a delimiter ends the part.
            assert!(read(FORM.as_bytes(), "B", &[piece]).is_err());
            let form = FORM.replace("--Bx", "--Ax");
            let parts = read(form.as_bytes(), "B", &[piece]).unwrap();
            assert_eq!(parts.len(), 2, "{parts:?}");
            assert_eq!((&*parts[0].0.field, &*parts[0].1), ("x", &b"plain"[..]));
            let head = PartHead {
                field: "f".into(),
                file_name: Some("a \"b\".txt".into()),
                media_type: Some("text/plain".into()),
            };
            assert_eq!(parts[1], (head, b"\r\n--\r\n--Ax".to_vec()));
        }
    }

    #[test]
    fn what_is_no_form_is_refused_before_it_is_large() {
        let endless_head = format!("--B\r\nX: {}", "x".repeat(1 << 20));
        let endless_preamble = "x".repeat(1 << 20);
        let many = "--B\r\n\r\n\r\n".repeat(100);
        for form in [
            &*endless_head,
            &endless_preamble,
            &many,
            "--Bx\r\n",
            "--B\r\nno header\r\n\r\n",
        ] {
            let error = read(form.as_bytes(), "B", &[4096]).unwrap_err();
            assert!(matches!(error, FieldError::Malformed(_)));
        }
    }

    #[test]
    fn boundaries() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(boundary(text).as_deref(), expected, "{text}");
        };
        check("multipart/form-data; boundary=abc", Some("abc"));
        check(
            "Multipart/Form-Data; charset=x; boundary=\"a-b\"",
            Some("a-b"),
        );
        check("multipart/form-data", None);
        check("multipart/form-data; boundary=", None);
        check("multipart/mixed; boundary=abc", None);
        check(
            &format!("multipart/form-data; boundary={}", "x".repeat(71)),
            None,
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(form: Vec<u8>, pieces in prop::collection::vec(1_usize..50, 1..5)) {
            let _ = read(&form, "B", &pieces);
        }

        #[test]
        fn content_comes_back(
            contents in prop::collection::vec("[\r\n\\-B x]{0,60}", 0..4),
            pieces in prop::collection::vec(1_usize..50, 1..5),
        ) {
            prop_assume!(contents.iter().all(|content| !format!("\r\n{content}").contains("\r\n--B")));
            let mut form = String::new();
            for content in &contents {
                form += "--B\r\nContent-Disposition: form-data; name=f\r\n\r\n";
                form += content;
                form += "\r\n";
            }
            form += "--B--";
            let parts = read(form.as_bytes(), "B", &pieces).unwrap();
            let found: Vec<_> = parts.into_iter().map(|(_, content)| content).collect();
            let expected: Vec<_> = contents.iter().map(|content| content.clone().into_bytes()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn no_header_panics(text: String) {
            let _ = (boundary(&text), part_head(text.as_bytes()), parameter(&text, "a"));
        }
    }
}
