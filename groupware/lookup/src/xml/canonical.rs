//! A block of metadata as its content alone: two blocks that say the same are equal, however they
//! were written. Identifiers and white space around texts say nothing.

use super::reader::{Walk, XmlError};

/// The content of a block; `None` if it isn't XML.
pub(crate) fn canonical(xml: &str) -> Option<String> {
    let mut walk = Walk::new(xml.as_bytes()).ok()?;
    let mut out = String::with_capacity(xml.len());
    write(&mut walk, &mut out).ok()?;
    Some(out)
}

fn write(walk: &mut Walk<'_>, out: &mut String) -> Result<(), XmlError> {
    let root = walk.root()?;
    let mut open = vec![root];
    begin(&open[0], out);
    while !open.is_empty() {
        let (text, child) = walk.text_and_child()?;
        out.push_str(text.trim());
        match child {
            Some(child) => {
                begin(&child, out);
                open.push(child);
            }
            None => {
                open.pop();
                out.push('\u{1}');
            }
        }
    }
    Ok(())
}

/// Control characters can't come in XML, so that no text can look like an element.
fn begin(element: &super::reader::Element<'_>, out: &mut String) {
    out.extend(["\u{2}", &element.namespace, "\u{3}", element.local]);
    for attribute in [&element.kind, &element.name, &element.value] {
        out.extend(["\u{4}", attribute.as_deref().unwrap_or_default()]);
    }
    out.push('\u{5}');
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
}
