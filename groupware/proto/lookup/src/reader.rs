//! A walk through untrusted XML: no document types, no entities but the five predefined ones,
//! bounded depth and attributes. Knows namespaces; knows no message.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::limits::{ATTRIBUTES, COPIES_BYTES, DEPTH};

/// Why XML is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    /// It can't be parsed.
    #[error("the body is not XML: {0}")]
    Syntax(String),
    /// It has another encoding than UTF-8.
    #[error("the body is not UTF-8")]
    Encoding,
    /// It is truncated.
    #[error("the body ends within an element")]
    Truncated,
    /// It declares a document type, which could declare entities.
    #[error("document type declarations are refused")]
    DocType,
    /// It uses an entity that only a document type can declare.
    #[error("the entity {0} is refused: only the five of XML itself are known")]
    Entity(String),
    /// Elements are nested too deeply.
    #[error("elements are nested deeper than {DEPTH}")]
    Depth,
    /// An element has too many attributes.
    #[error("an element has more than {ATTRIBUTES} attributes")]
    Attributes,
    /// Its blocks, each made standalone, are much larger than the message.
    #[error("the namespaces that its blocks share are too long for so many blocks")]
    Copies,
    /// A prefix is not declared.
    #[error("the prefix {0} stands for no namespace")]
    Prefix(String),
    /// It is XML, but no message.
    #[error("{0}")]
    Message(Cow<'static, str>),
}

impl XmlError {
    fn syntax(error: impl std::fmt::Display) -> Self {
        Self::Syntax(error.to_string())
    }
}

/// An element whose content is read next.
#[derive(Debug, Clone)]
pub(crate) struct Element<'a> {
    /// As written, still escaped.
    pub(crate) namespace: &'a str,
    pub(crate) local: &'a str,
    /// The attributes without a prefix that messages use.
    pub(crate) id: Option<String>,
    pub(crate) id_ref: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) value: Option<String>,
    /// The offset of its tag.
    start: usize,
}

impl Element<'_> {
    pub(crate) fn is(&self, namespace: &str, local: &str) -> bool {
        self.local == local && self.namespace == namespace
    }
}

/// An element copied as a standalone block, and texts of elements within it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// The element, with the namespaces that it needs declared in its first tag.
    pub xml: String,
    /// Names without prefixes, and texts, of the elements that contain only text.
    pub texts: Vec<(String, String)>,
    /// Whether it contains elements.
    pub has_elements: bool,
}

impl Raw {
    /// Parses a standalone block, such as a stored one; `None` if it is none.
    pub fn parse(block: &str) -> Option<Self> {
        let mut walk = Walk::new(block.as_bytes()).ok()?;
        let root = walk.root().ok()?;
        walk.raw(&root).ok()
    }
}

struct Declaration<'a> {
    depth: usize,
    prefix: &'a str,
    /// As written, still escaped: a part of the text, so that no element has a copy.
    namespace: &'a str,
}

impl Declaration<'_> {
    /// An upper bound of its bytes in double quotes.
    fn bytes(&self) -> usize {
        let quotes = self.namespace.matches('"').count();
        let around = " xmlns:=\"\"".len() + quotes * ("&quot;".len() - 1);
        self.prefix.len() + self.namespace.len() + around
    }
}

/// A position in a text.
pub(crate) struct Walk<'a> {
    text: &'a str,
    /// Bytes that further standalone blocks may have.
    left: usize,
    reader: Reader<&'a [u8]>,
    declarations: Vec<Declaration<'a>>,
    /// Indices of the declarations in scope by prefix, the innermost last.
    by_prefix: HashMap<&'a str, Vec<usize>>,
    /// Prefixes that the last tag uses.
    used: Vec<&'a str>,
    depth: usize,
}

/// External declarations that a block needs, in the order of their use.
#[derive(Default)]
struct Needed {
    places: Vec<usize>,
    known: HashSet<usize>,
}

/// The next item within an element.
enum Next<'a> {
    Start(Element<'a>),
    End,
    Text(Cow<'a, str>),
}

impl<'a> Walk<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Result<Self, XmlError> {
        let text = std::str::from_utf8(body).map_err(|_| XmlError::Encoding)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_end_names = true;
        Ok(Self {
            text,
            left: 2 * text.len() + COPIES_BYTES,
            reader,
            declarations: Vec::new(),
            by_prefix: HashMap::new(),
            used: Vec::new(),
            depth: 0,
        })
    }

    /// Returns the outermost element.
    pub(crate) fn root(&mut self) -> Result<Element<'a>, XmlError> {
        self.child()?.ok_or(XmlError::Truncated)
    }

    /// Returns the next element within the current one; `None` at its end.
    pub(crate) fn child(&mut self) -> Result<Option<Element<'a>>, XmlError> {
        loop {
            match self.next()? {
                Next::Start(element) => return Ok(Some(element)),
                Next::End => return Ok(None),
                Next::Text(_) => {}
            }
        }
    }

    /// Returns the text up to the next element within the current one, and that element; `None` at
    /// its end.
    pub(crate) fn text_and_child(&mut self) -> Result<(String, Option<Element<'a>>), XmlError> {
        let mut text = String::new();
        loop {
            match self.next()? {
                Next::Start(element) => return Ok((text, Some(element))),
                Next::End => return Ok((text, None)),
                Next::Text(more) => text.push_str(&more),
            }
        }
    }

    /// Skips to the end of the document, which must end there.
    pub(crate) fn finish(&mut self) -> Result<(), XmlError> {
        while self.depth > 0 {
            self.next()?;
        }
        loop {
            match self.next() {
                Err(XmlError::Truncated) => return Ok(()),
                Ok(Next::Text(text)) if text.trim().is_empty() => {}
                Ok(_) => return Err(XmlError::Message("something follows the message".into())),
                Err(error) => return Err(error),
            }
        }
    }

    /// Skips to the end of the current element.
    pub(crate) fn skip(&mut self) -> Result<(), XmlError> {
        let end = self.depth;
        while self.depth >= end {
            self.next()?;
        }
        Ok(())
    }

    /// Returns the text of the current element, without that of its elements, and skips to its end.
    pub(crate) fn text(&mut self) -> Result<String, XmlError> {
        let mut text = String::new();
        loop {
            match self.next()? {
                Next::Start(_) => self.skip()?,
                Next::End => return Ok(text),
                Next::Text(more) => text.push_str(&more),
            }
        }
    }

    /// Reads to the end of an element that has just begun, and copies it.
    pub(crate) fn raw(&mut self, element: &Element<'a>) -> Result<Raw, XmlError> {
        let (end, outer) = (self.depth, self.depth);
        let mut raw = Raw::default();
        let mut needed = Needed::default();
        self.need(outer, &mut needed);
        let (mut local, mut text, mut is_leaf) = (element.local, String::new(), true);
        while self.depth >= end {
            match self.next()? {
                Next::Start(inner) => {
                    raw.has_elements = true;
                    self.need(outer, &mut needed);
                    (local, is_leaf) = (inner.local, true);
                    text.clear();
                }
                Next::End => {
                    if is_leaf && !text.trim().is_empty() {
                        raw.texts.push((local.to_owned(), text.trim().to_owned()));
                    }
                    is_leaf = false;
                    text.clear();
                }
                Next::Text(more) => text.push_str(&more),
            }
        }
        raw.xml = self.alone(element.start, &needed.places)?;
        Ok(raw)
    }

    /// Returns the index of the innermost declaration of a prefix.
    fn declared(&self, prefix: &str) -> Option<usize> {
        self.by_prefix.get(prefix)?.last().copied()
    }

    /// Records the declarations from outside an element that the last tag needs.
    fn need(&self, outer: usize, needed: &mut Needed) {
        // An element's own prefix, which is last here, is declared first.
        for prefix in self.used.iter().rev() {
            if let Some(found) = self.declared(prefix)
                && self.declarations[found].depth < outer
                && needed.known.insert(found)
            {
                needed.places.push(found);
            }
        }
    }

    /// Copies the text from an offset to the current position, with these declarations in its first
    /// tag. The bytes of all copied declarations are bounded: otherwise a namespace of a megabyte
    /// could be copied thousands of times.
    fn alone(&mut self, start: usize, needed: &[usize]) -> Result<String, XmlError> {
        let raw = &self.text[start..self.position()];
        let name = raw
            .find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/')
            .unwrap_or(raw.len());
        let (name, rest) = raw.split_at(name);
        let needed = needed.iter().filter_map(|at| self.declarations.get(*at));
        let bytes = raw.len() + needed.clone().map(Declaration::bytes).sum::<usize>();
        self.left = self.left.checked_sub(bytes).ok_or(XmlError::Copies)?;
        let mut xml = String::with_capacity(bytes);
        xml.push_str(name);
        for declaration in needed {
            let colon = if declaration.prefix.is_empty() {
                ""
            } else {
                ":"
            };
            let namespace = declaration.namespace.replace('"', "&quot;");
            xml.extend([" xmlns", colon, declaration.prefix, "=\"", &namespace, "\""]);
        }
        xml.push_str(rest);
        Ok(xml)
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position())
            .unwrap_or(usize::MAX)
            .min(self.text.len())
    }

    fn next(&mut self) -> Result<Next<'a>, XmlError> {
        loop {
            let start = self.position();
            match self.reader.read_event().map_err(XmlError::syntax)? {
                Event::Start(tag) | Event::Empty(tag) => return self.start(&tag, start),
                Event::End(_) => {
                    self.end();
                    return Ok(Next::End);
                }
                Event::Text(text) => return Ok(Next::Text(text.xml10_content())),
                Event::CData(text) => return Ok(Next::Text(text.xml10_content())),
                Event::GeneralRef(entity) => return Ok(Next::Text(resolve(&entity)?)),
                Event::DocType(_) => return Err(XmlError::DocType),
                Event::Eof => return Err(XmlError::Truncated),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    fn end(&mut self) {
        let depth = self.depth;
        while let Some(last) = self.declarations.pop_if(|last| last.depth >= depth) {
            if let Some(places) = self.by_prefix.get_mut(last.prefix) {
                places.pop();
            }
        }
        self.depth = depth.saturating_sub(1);
    }

    fn start(&mut self, tag: &BytesStart<'a>, start: usize) -> Result<Next<'a>, XmlError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(XmlError::Depth);
        }
        let name = self.tag_name(start);
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let mut element = Element {
            namespace: "",
            local,
            id: None,
            id_ref: None,
            kind: None,
            name: None,
            value: None,
            start,
        };
        self.attributes(tag, start, &mut element)?;
        self.used.push(prefix);
        element.namespace = match self.declared(prefix).map(|at| &self.declarations[at]) {
            Some(known) => known.namespace,
            None if prefix.is_empty() => "",
            None => return Err(XmlError::Prefix(prefix.to_owned())),
        };
        Ok(Next::Start(element))
    }

    fn attributes(
        &mut self,
        tag: &BytesStart<'a>,
        start: usize,
        element: &mut Element<'a>,
    ) -> Result<(), XmlError> {
        // Duplicates are found by comparing all pairs: only after the number is known to be small.
        if tag.attributes().with_checks(false).count() > ATTRIBUTES {
            return Err(XmlError::Attributes);
        }
        self.used.clear();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(XmlError::syntax)?;
            let name = attribute.key.into_inner();
            let declared = match name.split_once(':') {
                None if name == "xmlns" => Some(""),
                Some(("xmlns", prefix)) => Some(prefix),
                Some((prefix, _)) => {
                    self.used.push(self.within(start, prefix));
                    None
                }
                None => None,
            };
            if let Some(prefix) = declared {
                let declaration = Declaration {
                    depth: self.depth,
                    prefix: self.within(start, prefix),
                    namespace: self.within(start, &attribute.value),
                };
                let places = self.by_prefix.entry(declaration.prefix).or_default();
                places.push(self.declarations.len());
                self.declarations.push(declaration);
                continue;
            }
            let place = match name {
                "id" => &mut element.id,
                "metadataIdRef" => &mut element.id_ref,
                "type" => &mut element.kind,
                "name" => &mut element.name,
                "value" => &mut element.value,
                _ => continue,
            };
            *place = Some(unescape(&attribute.value)?);
        }
        Ok(())
    }

    /// A text of the tag at an offset, as a slice of the whole text, which lives longer.
    fn within(&self, start: usize, part: &str) -> &'a str {
        let rest = &self.text[start..];
        rest.find(part).map_or("", |at| &rest[at..at + part.len()])
    }

    fn tag_name(&self, start: usize) -> &'a str {
        let tag = &self.text[start + 1..];
        let end = tag.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/');
        &tag[..end.unwrap_or(tag.len())]
    }
}

fn resolve<'a>(entity: &BytesRef<'_>) -> Result<Cow<'a, str>, XmlError> {
    if let Some(letter) = entity.resolve_char_ref().map_err(XmlError::syntax)? {
        return Ok(Cow::Owned(letter.to_string()));
    }
    let name = entity.xml10_content();
    match resolve_xml_entity(&name) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => Err(XmlError::Entity(name.chars().take(40).collect())),
    }
}

fn unescape(value: &str) -> Result<String, XmlError> {
    quick_xml::escape::unescape(value)
        .map(Cow::into_owned)
        .map_err(XmlError::syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first block within the outermost element.
    fn block(body: &str) -> String {
        let mut walk = Walk::new(body.as_bytes()).unwrap();
        walk.root().unwrap();
        let child = walk.child().unwrap().unwrap();
        let block = walk.raw(&child).unwrap().xml;
        walk.finish().unwrap();
        block
    }

    #[test]
    fn a_block_declares_what_its_names_need_and_nothing_else() {
        for (body, expected) in [
            // Texts in values that look like prefixes need no declaration.
            (
                r#"<r xmlns:a="u:a" xmlns:b="u:b"><a:x y=" b:= b:z= "/></r>"#,
                r#"<a:x xmlns:a="u:a" y=" b:= b:z= "/>"#,
            ),
            // A value may contain the character that ends a tag.
            (
                r#"<r xmlns:b="u:b"><x y=">" b:z="1"/></r>"#,
                r#"<x xmlns:b="u:b" y=">" b:z="1"/>"#,
            ),
            // The innermost declaration applies, and ends with its element.
            (
                r#"<r xmlns:a="outer"><x><y xmlns:a="inner"><a:z/></y></x></r>"#,
                r#"<x><y xmlns:a="inner"><a:z/></y></x>"#,
            ),
            (
                r#"<r xmlns:a="outer"><x><y xmlns:a="inner"/><a:z/></x></r>"#,
                r#"<x xmlns:a="outer"><y xmlns:a="inner"/><a:z/></x>"#,
            ),
            (
                r#"<r xmlns="d" xmlns:a="u:a"><x><a:y/><a:y/></x></r>"#,
                r#"<x xmlns="d" xmlns:a="u:a"><a:y/><a:y/></x>"#,
            ),
        ] {
            assert_eq!(block(body), expected, "{body}");
        }
    }

    /// Many declarations around many elements: each name is looked up once.
    #[test]
    fn declarations_in_scope_are_found_by_prefix() {
        let mut body = String::new();
        for depth in 0..20 {
            body += &format!("<e{depth}");
            for number in 0..30 {
                body += &format!(" xmlns:p{depth}x{number}=\"u\"");
            }
            body += ">";
        }
        body += &"<p0x0:a/>".repeat(1000);
        let mut walk = Walk::new(body.as_bytes()).unwrap();
        walk.root().unwrap();
        for _ in 1..20 {
            walk.child().unwrap();
        }
        for _ in 0..1000 {
            let child = walk.child().unwrap().unwrap();
            assert_eq!(
                (child.namespace, walk.used.as_slice()),
                ("u", &["p0x0"][..])
            );
            assert_eq!(walk.child().unwrap().map(|child| child.start), None);
        }
        assert_eq!(walk.by_prefix.values().map(Vec::len).max(), Some(1));
    }
}
