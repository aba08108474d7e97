//! The canonical content of a metadata block: two blocks with the same content are equal,
//! regardless of syntax. Identifiers and white space around texts are ignored.

use std::collections::HashMap;

use crate::reader::{Element, Walk, XmlError};

/// Returns the content of a block; `None` if it isn't XML.
pub fn canonical(xml: &str) -> Option<String> {
    let mut walk = Walk::new(xml.as_bytes()).ok()?;
    let mut out = String::with_capacity(xml.len());
    write(&mut walk, &mut out).ok()?;
    Some(out)
}

fn write<'a>(walk: &mut Walk<'a>, out: &mut String) -> Result<(), XmlError> {
    let mut namespaces = Namespaces::default();
    let mut open = 1;
    begin(&walk.root()?, &mut namespaces, out);
    while open > 0 {
        let (text, child) = walk.text_and_child()?;
        out.push_str(text.trim());
        match child {
            Some(child) => {
                begin(&child, &mut namespaces, out);
                open += 1;
            }
            None => {
                open -= 1;
                out.push('\u{1}');
            }
        }
    }
    Ok(())
}

/// XML can't contain control characters, so that no text can look like an element.
fn begin<'a>(element: &Element<'a>, namespaces: &mut Namespaces<'a>, out: &mut String) {
    out.push('\u{2}');
    namespaces.write(element.namespace, out);
    out.extend(["\u{3}", element.local]);
    for attribute in [&element.kind, &element.name, &element.value] {
        out.extend(["\u{4}", attribute.as_deref().unwrap_or_default()]);
    }
    out.push('\u{5}');
}

/// The namespaces seen so far, numbered: each is written once, so that the content of a block is
/// never much longer than the block, even if many elements share one long namespace.
#[derive(Default)]
struct Namespaces<'a> {
    numbers: HashMap<&'a str, usize>,
    /// By the position of the declaration in the text: a long one is compared once, not once per
    /// element.
    declared: HashMap<(*const u8, usize), usize>,
}

impl<'a> Namespaces<'a> {
    fn write(&mut self, namespace: &'a str, out: &mut String) {
        let next = self.numbers.len();
        let place = (namespace.as_ptr(), namespace.len());
        let number = match self.declared.get(&place) {
            Some(number) => *number,
            None => {
                let number = *self.numbers.entry(namespace).or_insert(next);
                self.declared.insert(place, number);
                number
            }
        };
        out.push_str(&number.to_string());
        if number == next {
            out.extend(["\u{6}", namespace]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_compared_by_what_they_say() {
        let one = canonical("<a:b xmlns:a='n' id='1'><a:c type='x'> text </a:c></a:b>");
        let two = canonical("<b xmlns='n' id='2'>\n <c type=\"x\">text</c>\n</b>");
        assert!(one.is_some());
        assert_eq!(one, two);
        for other in [
            "<b xmlns='m'><c type='x'>text</c></b>",
            "<b xmlns='n'><c type='y'>text</c></b>",
            "<b xmlns='n'><c type='x'>text</c><c/></b>",
            "<b xmlns='n'><c type='x'/>text</b>",
        ] {
            assert_ne!(one, canonical(other), "{other}");
        }
        assert_eq!(canonical("<b"), None);
    }

    #[test]
    fn what_a_block_says_is_not_longer_than_the_block() {
        let (long, empty) = ("n".repeat(30_000), "<a:c/>".repeat(3000));
        let block = format!("<a:b xmlns:a='{long}'>{empty}</a:b>");
        let content = canonical(&block).unwrap();
        let bytes = content.len();
        assert!(bytes <= 2 * block.len(), "{bytes} of {}", block.len());
        let other = canonical(&block.replace("a:", "").replace(":a=", "=")).unwrap();
        assert!(content == other, "whatever the prefix");
        let nested = |inner: &str| {
            let inside = "<d/>".repeat(3);
            canonical(&format!(
                "<b xmlns='n'><c xmlns='{inner}'>{inside}</c><d/></b>"
            ))
        };
        assert_eq!(nested("n"), nested("n"));
        assert_ne!(nested("n"), nested("m"));
        // The two begin at one position of the text.
        let two = |inner: &str| canonical(&format!("<nm xmlns='n' xmlns:m='nm'><{inner}/></nm>"));
        assert_ne!(two("c"), two("m:c"));
    }
}
