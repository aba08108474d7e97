//! Converts HTML to text, with the addresses of its links.

use std::cell::{Cell, RefCell};

use html5ever::LocalName;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};
use mail_parser::decoders::html::html_to_text;

use super::shape::{Sink, state_behind, tokenize};

/// Elements that start and end a line.
const LINES: [&str; 16] = [
    "address", "article", "center", "dd", "div", "dl", "dt", "footer", "form", "header", "li",
    "ol", "section", "title", "tr", "ul",
];
/// Elements that start and end a paragraph.
const BLOCKS: [&str; 11] = [
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "p",
    "pre",
    "table",
];
/// Elements whose content is no readable text.
const UNREAD: [&str; 6] = ["iframe", "noembed", "noframes", "script", "style", "title"];

/// Returns the text of a mail's HTML.
pub fn text_of(html: &str) -> String {
    match tokenize(html, Prose::default()) {
        Some(prose) => prose.text.into_inner().trim().to_owned(),
        // HTML that is too expensive to convert well.
        None => html_to_text(html),
    }
}

#[derive(Default)]
struct Prose {
    tokens: Cell<usize>,
    text: RefCell<String>,
    /// Whether white space precedes the next letter.
    is_spaced: Cell<bool>,
    /// The open element of [`UNREAD`].
    unread: RefCell<Option<LocalName>>,
    /// The address of the open link, and the start of its text.
    link: RefCell<Option<(String, usize)>>,
}

impl Prose {
    /// Ends the line, and adds so many empty lines.
    fn end_line(&self, empty: usize) {
        let mut text = self.text.borrow_mut();
        let ends = text.len() - text.trim_end_matches('\n').len();
        if !text.is_empty() {
            text.extend(std::iter::repeat_n('\n', (empty + 1).saturating_sub(ends)));
        }
        self.is_spaced.set(false);
    }

    fn write(&self, letters: &str) {
        let mut text = self.text.borrow_mut();
        for letter in letters.chars() {
            if letter.is_whitespace() && letter != '\u{a0}' {
                self.is_spaced.set(true);
                continue;
            }
            let is_line_start = text.is_empty() || text.ends_with('\n');
            if self.is_spaced.replace(false) && !is_line_start {
                text.push(' ');
            }
            text.push(if letter == '\u{a0}' { ' ' } else { letter });
        }
    }

    fn start(&self, tag: &Tag) {
        let value = |name: &str| {
            let found = tag.attrs.iter().find(|it| &*it.name.local == name);
            found.map(|it| it.value.trim().to_owned())
        };
        match &*tag.name {
            "br" => {
                self.text.borrow_mut().push('\n');
                self.is_spaced.set(false);
            }
            "a" => {
                self.end_link();
                let begin = self.text.borrow().len();
                *self.link.borrow_mut() = value("href").map(|href| (href, begin));
            }
            "img" => self.write(&value("alt").unwrap_or_default()),
            "td" | "th" => self.is_spaced.set(true),
            name if UNREAD.contains(&name) => *self.unread.borrow_mut() = Some(tag.name.clone()),
            _ => {}
        }
        self.break_line(&tag.name);
        if &*tag.name == "li" {
            self.write("- ");
            self.is_spaced.set(true);
        }
    }

    fn break_line(&self, name: &str) {
        if BLOCKS.contains(&name) {
            self.end_line(1);
        } else if LINES.contains(&name) {
            self.end_line(0);
        }
    }

    /// Appends the address of a link to its text, unless the text contains it.
    fn end_link(&self) {
        let Some((href, begin)) = self.link.take() else {
            return;
        };
        let address = href.strip_prefix("mailto:").unwrap_or(&href);
        let leads_on = ["http://", "https://", "mailto:"].iter().any(|scheme| {
            let start = href.get(..scheme.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(scheme)
        });
        let is_said = {
            let text = self.text.borrow();
            text.get(begin..).is_some_and(|text| text.contains(address))
        };
        if leads_on && !is_said {
            self.is_spaced.set(true);
            self.write(&format!("<{address}>"));
        }
    }
}

impl Sink for Prose {
    fn tokens(&self) -> Option<usize> {
        Some(self.tokens.get())
    }
}

impl TokenSink for Prose {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        self.tokens.set(self.tokens.get() + 1);
        match token {
            Token::TagToken(tag) => {
                match tag.kind {
                    TagKind::StartTag => self.start(&tag),
                    TagKind::EndTag => {
                        if self.unread.borrow().as_ref() == Some(&tag.name) {
                            *self.unread.borrow_mut() = None;
                        }
                        if &*tag.name == "a" {
                            self.end_link();
                        }
                        self.break_line(&tag.name);
                    }
                }
                state_behind(&tag)
            }
            Token::CharacterTokens(letters) if self.unread.borrow().is_none() => {
                self.write(&letters);
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_its_lines_and_the_addresses_of_its_links() {
        for (html, text) in [
            ("<p>One  &amp;\n two</p><p>three", "One & two\n\nthree"),
            ("a<br>b<br><br>c", "a\nb\n\nc"),
            (
                "Please <a href='https://pier.example/x?a=1&amp;b'>confirm now</a>.",
                "Please confirm now <https://pier.example/x?a=1&b>.",
            ),
            (
                "<a href=\"https://pier.example\">https://pier.example</a>",
                "https://pier.example",
            ),
            (
                "<a href='mailto:ada@pier.example'>Ada</a>",
                "Ada <ada@pier.example>",
            ),
            ("<a href='javascript:x'>a</a><a name=b>b</a>", "ab"),
            ("<ul><li>one<li>two</ul>", "- one\n- two"),
            (
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</table>d",
                "a b\nc\n\nd",
            ),
            (
                "<head><title>t</title><style>p{}</style></head><script>x</script><img alt='A pier' src=x>",
                "A pier",
            ),
            ("<div>a</div> <div>b</div>", "a\nb"),
            ("<h1>Head</h1>text", "Head\n\ntext"),
            ("a&nbsp;b", "a b"),
            ("", ""),
        ] {
            assert_eq!(text_of(html), text, "{html}");
        }
    }

    #[test]
    fn what_costs_too_much_still_has_its_text() {
        let attributes: String = (0..20_000).map(|id| format!("a{id} ")).collect();
        assert_eq!(text_of(&format!("<i {attributes}>pier</i>")).trim(), "pier");
    }
}
