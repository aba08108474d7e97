//! Multipart forms (RFC 7578), as browsers write them.

use crate::text::Text;

/// Default boundary between the parts of a form.
pub(crate) const BOUNDARY: &str = "plimsoll-part";

/// A part of a form.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The name of its file, if it is one.
    pub(crate) file: Option<String>,
    /// Its content type; empty if it has none.
    pub(crate) kind: String,
    pub(crate) value: Text,
}

/// A boundary like `wish` that occurs in no part.
pub(crate) fn boundary(wish: &str, parts: &[Part]) -> String {
    let mut boundary = wish.to_owned();
    while parts
        .iter()
        .any(|part| part.value.with_holes().contains(&boundary))
    {
        boundary.push('0');
    }
    boundary
}

/// The body with these parts.
pub(crate) fn body(parts: Vec<Part>, boundary: &str) -> Text {
    let mut body = Text::default();
    for part in parts {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            quotable(&part.name)
        );
        if let Some(file) = &part.file {
            head.push_str(&format!("; filename=\"{}\"", quotable(file)));
        }
        if !part.kind.is_empty() {
            head.push_str(&format!("\r\nContent-Type: {}", part.kind));
        }
        head.push_str("\r\n\r\n");
        body.push(Text::literal(&head));
        body.push(part.value);
        body.push(Text::literal("\r\n"));
    }
    body.push(Text::literal(&format!("--{boundary}--\r\n")));
    body.joined()
}

/// Escapes a name for quotes.
fn quotable(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
