//! Finds the values at a path of an HTML page in one pass: no tree is built, so that no page can delay a generator.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use crate::html_path::HtmlPath;
use html_escape::decode_html_entities;
use lol_html::html_content::{Element, EndTag, TextChunk};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Settings};

/// Maximum number of values per capture.
const MAX_VALUES: usize = 100_000;
/// Maximum bytes of the values of one capture: nested elements each keep their text.
const MAX_BYTES: usize = 8 << 20;
/// Maximum memory for the search: the open elements of a page.
const MAX_MEMORY: usize = 16 << 20;

/// Values found so far.
#[derive(Default)]
struct Found {
    values: Vec<String>,
    bytes: usize,
    /// The values whose elements are still open, innermost last.
    open: Vec<usize>,
}

/// Returns all values at the path, in page order: texts of elements up to their end tags, with white space collapsed,
/// or the attribute's values of elements that have it. Nothing is fetched or executed.
///
/// # Errors
/// Describes an exceeded limit.
pub fn values(body: &[u8], path: &HtmlPath) -> Result<Vec<String>, String> {
    let found = Rc::new(RefCell::new(Found::default()));
    let handlers = match path.attribute() {
        Some(name) => attributes(name, &found),
        None => texts(&found),
    };
    let memory = MemorySettings::new().with_max_allowed_memory_usage(MAX_MEMORY);
    let settings = Settings::new()
        .append_element_content_handler((Cow::Borrowed(path.selector()), handlers))
        .with_memory_settings(memory)
        .with_strict(false);
    let mut reader = HtmlRewriter::new(settings, |_: &[u8]| {});
    let read = reader.write(body).and_then(|()| reader.end());
    read.map_err(|error| format!("the page can't be looked through: {error}"))?;
    let found = std::mem::take(&mut *found.borrow_mut());
    Ok(found.values.iter().map(|text| plain(text)).collect())
}

/// Decodes character references, and collapses white space.
fn plain(text: &str) -> String {
    let decoded = decode_html_entities(text);
    let mut words = String::with_capacity(decoded.len());
    for word in decoded.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

impl Found {
    fn begin(&mut self, value: String) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.values.len() >= MAX_VALUES {
            return Err(format!("it has more than {MAX_VALUES} values").into());
        }
        self.bytes += value.len();
        self.values.push(value);
        self.bounded()
    }

    fn text(&mut self, text: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.bytes += text.len() * self.open.len();
        self.bounded()?;
        for place in &self.open {
            self.values[*place].push_str(text);
        }
        Ok(())
    }

    fn bounded(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match self.bytes > MAX_BYTES {
            true => Err(format!("its values have more than {} MiB", MAX_BYTES >> 20).into()),
            false => Ok(()),
        }
    }
}

fn attributes<'h>(name: &'h str, found: &Rc<RefCell<Found>>) -> ElementContentHandlers<'h> {
    let found = Rc::clone(found);
    ElementContentHandlers::default().element(move |element: &mut Element| {
        match element.get_attribute(name) {
            Some(value) => found.borrow_mut().begin(value),
            None => Ok(()),
        }
    })
}

fn texts<'h>(found: &Rc<RefCell<Found>>) -> ElementContentHandlers<'h> {
    let (begun, read) = (Rc::clone(found), Rc::clone(found));
    ElementContentHandlers::default()
        .element(move |element: &mut Element| {
            let mut found = begun.borrow_mut();
            found.begin(String::new())?;
            if element.can_have_content() {
                let place = found.values.len() - 1;
                found.open.push(place);
                let ended = Rc::clone(&begun);
                element.on_end_tag(Box::new(move |_: &mut EndTag| {
                    // Unclosed elements within it end with it.
                    let open = &mut ended.borrow_mut().open;
                    open.retain(|other| *other < place);
                    Ok(())
                }))?;
            }
            Ok(())
        })
        .text(move |text: &mut TextChunk| read.borrow_mut().text(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html><title>A shop</title><form action=/buy>\
        <input type=hidden name=csrf value=' x&amp;y '><input name=n></form>\
        <ul class='items wide'><li><a href=/1>One <b>and\n only</b></a><li><a HREF='/2'>Two</a></ul>\
        <a>no link</a><!-- <a href=/3>none</a> --><script>'<a href=/4>'</script>";

    fn check(path: &str, expected: &[&str]) {
        let parsed = HtmlPath::parse(path).unwrap();
        assert_eq!(
            values(PAGE.as_bytes(), &parsed).unwrap(),
            expected,
            "{path}"
        );
    }

    #[test]
    fn values_are_those_of_the_page() {
        check("(form input[name=csrf])@value", &["x&y"]);
        check("(.items a)@href", &["/1", "/2"]);
        check("(.items a)", &["One and only", "Two"]);
        check("(ul.wide > li > a > b)", &["and only"]);
        // Elements without the attribute are skipped.
        check("(a)@href", &["/1", "/2"]);
        check("(title)", &["A shop"]);
        check("(input)", &["", ""]);
        check("(table)", &[]);
    }

    #[test]
    fn no_page_costs_more_than_it_may() {
        let all = HtmlPath::parse("(div)").unwrap();
        assert_eq!(values(b"", &all).unwrap(), Vec::<String>::new());
        let deep = "<div>x".repeat(20_000);
        let error = values(deep.as_bytes(), &all).unwrap_err();
        assert!(error.contains("8 MiB"), "{error}");
        let many = "<div></div>".repeat(MAX_VALUES + 1);
        let error = values(many.as_bytes(), &all).unwrap_err();
        assert!(error.contains("100000"), "{error}");
    }
}
