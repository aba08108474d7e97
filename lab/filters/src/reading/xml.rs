//! Finds the values at a path of an XML response in one pass.

use std::borrow::Cow;

use crate::xml_path::XmlPath;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// Maximum nesting; far beyond any real response.
const MAX_DEPTH: usize = 500;
/// Maximum number of values per capture.
const MAX_VALUES: usize = 100_000;
/// Maximum bytes of the values of one capture: nested elements each keep their text.
const MAX_BYTES: usize = 8 << 20;

/// Returns all values at the path, in document order: trimmed texts of elements, or their attribute's values. An empty
/// body has none.
///
/// # Errors
/// Describes invalid XML, or an exceeded limit.
pub fn values(body: &[u8], path: &XmlPath) -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(body);
    let mut finder = Finder {
        path,
        open: Vec::new(),
        texts: Vec::new(),
        found: Vec::new(),
        bytes: 0,
    };
    let mut reader = Reader::from_str(&text);
    loop {
        let event = reader
            .read_event()
            .map_err(|error| format!("not XML: {error}"))?;
        match event {
            Event::Start(tag) => finder.start(&tag)?,
            Event::Empty(tag) => {
                finder.start(&tag)?;
                finder.end();
            }
            Event::End(_) => finder.end(),
            Event::Text(text) => finder.text(&text.xml10_content())?,
            Event::CData(text) => finder.text(&text.xml10_content())?,
            Event::GeneralRef(entity) => {
                let letter = entity.resolve_char_ref();
                let letter = letter.map_err(|error| format!("not XML: {error}"))?;
                let name = entity.xml10_content();
                // Entities defined by a DTD are dropped: no DTD is read.
                let text = letter.map(|letter| Cow::Owned(letter.to_string()));
                let text = text.or_else(|| resolve_xml_entity(&name).map(Cow::Borrowed));
                finder.text(&text.unwrap_or_default())?;
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    match finder.open.is_empty() {
        true => Ok(finder.found),
        false => Err("not XML: it ends within an element".to_owned()),
    }
}

struct Finder<'p> {
    path: &'p XmlPath,
    /// Local names from the root down.
    open: Vec<String>,
    /// Depth of each open matching element, and its index among the values.
    texts: Vec<(usize, usize)>,
    found: Vec<String>,
    /// Total bytes of the values.
    bytes: usize,
}

impl Finder<'_> {
    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("its elements are nested deeper than {MAX_DEPTH}"));
        }
        self.open.push(tag.local_name().as_ref().to_owned());
        if !self.path.matches(&self.open) {
            return Ok(());
        }
        if self.found.len() >= MAX_VALUES {
            return Err(format!(
                "more than {MAX_VALUES} values at `{}`",
                self.path.as_str()
            ));
        }
        let Some(wanted) = self.path.attribute() else {
            self.texts.push((self.open.len(), self.found.len()));
            self.found.push(String::new());
            return Ok(());
        };
        // A check for duplicate attributes takes quadratic time.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| format!("not XML: {error}"))?;
            if attribute.key.local_name().as_ref() == wanted {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let value = value.map_err(|error| format!("not XML: {error}"))?;
                self.take(value.len())?;
                self.found.push(value.into_owned());
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.take(text.len() * self.texts.len())?;
        for (_, place) in &self.texts {
            self.found[*place].push_str(text);
        }
        Ok(())
    }

    /// Counts bytes before they are kept.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        match self.bytes > MAX_BYTES {
            true => Err(format!("its values have more than {} MiB", MAX_BYTES >> 20)),
            false => Ok(()),
        }
    }

    fn end(&mut self) {
        if let Some((_, place)) = self.texts.pop_if(|(depth, _)| *depth == self.open.len()) {
            let trimmed = self.found[place].trim();
            if trimmed.len() < self.found[place].len() {
                self.found[place] = trimmed.to_owned();
            }
        }
        self.open.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MULTISTATUS: &str = r#"<?xml version="1.0"?>
        <d:multistatus xmlns:d="DAV:"><d:response><d:href> /a/1.ics </d:href>
          <d:prop><d:getetag n="1">&quot;x&#38;y&quot;</d:getetag></d:prop></d:response>
        <d:response><d:href>/a/2.ics</d:href><d:empty n="2"/></d:response></d:multistatus>"#;

    #[test]
    fn values_at_a_path_are_found_whatever_their_prefix() {
        let check = |path: &str, expected: &[&str]| {
            let path = XmlPath::parse(path).unwrap();
            assert_eq!(
                values(MULTISTATUS.as_bytes(), &path).unwrap(),
                expected,
                "{path:?}"
            );
        };
        check("//href", &["/a/1.ics", "/a/2.ics"]);
        check("multistatus/response/href", &["/a/1.ics", "/a/2.ics"]);
        check("href", &[]);
        check("//getetag", &["\"x&y\""]);
        check("//*@n", &["1", "2"]);
        check("//empty", &[""]);
    }

    #[test]
    fn what_is_no_xml_says_so() {
        let path = XmlPath::parse("//a").unwrap();
        for wrong in ["<a>", "<a></b>", "<a b=c/>"] {
            let error = values(wrong.as_bytes(), &XmlPath::parse("//a@b").unwrap()).unwrap_err();
            assert!(error.starts_with("not XML"), "{wrong}: {error}");
        }
        assert_eq!(values(b"", &path).unwrap(), Vec::<String>::new());
        let (open, text) = ("<a>".repeat(400), "x".repeat(30_000));
        let error = values((open + &text).as_bytes(), &path).unwrap_err();
        assert!(error.contains("8 MiB"), "{error}");
        let deep = "<a>".repeat(600);
        assert!(
            values(deep.as_bytes(), &path)
                .unwrap_err()
                .contains("deeper")
        );
    }
}
