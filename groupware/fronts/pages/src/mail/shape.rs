//! Checks that a mail's HTML can be parsed at a bounded cost.
//!
//! The HTML rules for unclosed tags make parsers copy every open formatting element into each
//! following block, and scan all open elements repeatedly: a hundred kilobytes can require
//! gigabytes. A tokenizer, which has no such rules, counts the cost. It rewrites the HTML without
//! elements that would hide tags from it: drawings, and selection lists.

use std::cell::{Cell, RefCell};

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Largest HTML that is shown as such; Gmail truncates at 102 KiB.
const BYTES: usize = 512 << 10;
/// Most start tags.
const STARTS: usize = 20_000;
/// Most levels of open elements, as counted by names. Browsers truncate at 512.
const LEVELS: usize = 1000;
/// Most copies of formatting elements that the rules can require.
const COPIES: usize = 500_000;
/// Bytes per piece of the tokenizer's input, and most pieces without a token: a longer tag has too
/// many attributes to compare with each other.
const PIECE_BYTES: usize = 4 << 10;
const PIECES_OF_A_TOKEN: usize = 16;

/// Formatting elements, which are reopened in the next block.
const STYLES: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// Scope markers: behind their start tag, earlier formatting elements can't be closed.
const FENCES: [&str; 8] = [
    "applet", "caption", "marquee", "object", "table", "td", "template", "th",
];
/// Elements that close themselves, or are closed by the next of their kind.
const SHORT: [&str; 20] = [
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
    "option", "p", "tbody", "td", "th", "tr", "wbr",
];
/// Elements without content.
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];
/// Elements that are removed with their content: drawings, and selection lists. Within them, other
/// parsing rules apply, which would hide tags from the tokenizer.
const LEFT_OUT: [&str; 2] = ["select", "svg"];
/// Elements whose tags are removed for the same reason. Their text stays.
const UNWRAPPED: [&str; 5] = ["frame", "frameset", "math", "noscript", "textarea"];
/// Permitted content of a selection list.
const OPTIONS: [&str; 4] = ["hr", "optgroup", "option", "script"];
/// Elements that end a drawing (HTML, 13.2.6.5).
const BREAKS_OUT: [&str; 44] = [
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];
/// Elements whose content is no readable text.
const UNREAD: [&str; 6] = ["iframe", "noembed", "noframes", "script", "style", "title"];

/// Returns the HTML without elements that hide tags from a tokenizer, and without those that its
/// styles hide. `None` if parsing would cost too much.
pub(crate) fn modest(html: &str) -> Option<String> {
    let mut shape = tokenize(html, Shape::new(true))?;
    let open = shape.skipped.take();
    if open.is_some_and(|open| open.why == Why::Style) {
        // An unclosed element must not hide the rest.
        shape = tokenize(html, Shape::new(false))?;
    }
    let modest = shape.modest.into_inner();
    (modest.len() <= 4 * BYTES).then_some(modest)
}

/// A token sink with a limit.
pub(super) trait Sink: TokenSink<Handle = ()> {
    /// The number of tokens so far, or `None` if the limit is exceeded.
    fn tokens(&self) -> Option<usize>;
}

/// Passes HTML to a tokenizer. `None` if that costs too much.
pub(super) fn tokenize<S: Sink>(html: &str, sink: S) -> Option<S> {
    if html.len() > BYTES {
        return None;
    }
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    let (mut rest, mut seen, mut pieces) = (html, 0, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        input.push_back(StrTendril::from_slice(piece));
        // The tokenizer stops at a script's end to run it; the script is skipped.
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        let tokens = tokenizer.sink.tokens()?;
        pieces = match tokens == seen {
            true => pieces + 1,
            false => 0,
        };
        seen = tokens;
        if pieces > PIECES_OF_A_TOKEN {
            return None;
        }
    }
    tokenizer.end();
    tokenizer.sink.tokens()?;
    Some(tokenizer.sink)
}

/// The state of the tokenizer behind a tag.
pub(super) fn state_behind(tag: &Tag) -> TokenSinkResult<()> {
    match (tag.kind, &*tag.name) {
        (TagKind::EndTag, _) => TokenSinkResult::Continue,
        (_, "script") => TokenSinkResult::RawData(RawKind::ScriptData),
        (_, "style" | "xmp" | "iframe" | "noembed" | "noframes") => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        (_, "title" | "textarea") => TokenSinkResult::RawData(RawKind::Rcdata),
        (_, "plaintext") => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

/// An open element that is being removed.
struct Skipped {
    name: LocalName,
    /// The number of open elements of its name.
    depth: usize,
    why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// [`LEFT_OUT`] or [`UNREAD`].
    Kind,
    /// Its style hides it.
    Style,
}

struct Shape {
    tokens: Cell<usize>,
    starts: Cell<usize>,
    copies: Cell<usize>,
    is_too_much: Cell<bool>,
    open: RefCell<Vec<LocalName>>,
    styles: RefCell<Vec<LocalName>>,
    /// The number of formatting elements behind a scope marker.
    fenced: Cell<usize>,
    /// Whether elements hidden by styles are removed.
    hides: bool,
    skipped: RefCell<Option<Skipped>>,
    modest: RefCell<String>,
}

impl Shape {
    fn new(hides: bool) -> Self {
        Self {
            tokens: Cell::default(),
            starts: Cell::default(),
            copies: Cell::default(),
            is_too_much: Cell::default(),
            open: RefCell::default(),
            styles: RefCell::default(),
            fenced: Cell::default(),
            hides,
            skipped: RefCell::default(),
            modest: RefCell::default(),
        }
    }

    fn start(&self, tag: &Tag) {
        let (name, is) = (&tag.name, |names: &[&str]| names.contains(&&*tag.name));
        let (mut open, mut styles) = (self.open.borrow_mut(), self.styles.borrow_mut());
        self.starts.set(self.starts.get() + 1);
        self.copies.set(self.copies.get() + styles.len());
        if is(&FENCES) {
            self.fenced.set(styles.len());
        }
        if is(&STYLES) {
            styles.push(name.clone());
        }
        if !is(&SHORT) {
            open.push(name.clone());
        }
        let is_too_much =
            self.starts.get() > STARTS || self.copies.get() > COPIES || open.len() > LEVELS;
        self.is_too_much.set(self.is_too_much.get() || is_too_much);
    }

    fn end(&self, name: &LocalName) {
        let (mut open, mut styles) = (self.open.borrow_mut(), self.styles.borrow_mut());
        if let Some(at) = open.iter().rposition(|known| known == name) {
            open.remove(at);
        }
        let at = styles.iter().rposition(|known| known == name);
        if let Some(at) = at.filter(|at| *at >= self.fenced.get()) {
            styles.remove(at);
        }
    }

    /// Returns true for a tag within a removed element.
    fn is_skipped(&self, tag: &Tag) -> bool {
        let mut skipped = self.skipped.borrow_mut();
        let Some(open) = &mut *skipped else {
            *skipped = self.skip(tag);
            return skipped.is_some();
        };
        let is_start = tag.kind == TagKind::StartTag;
        let breaks_out = is_start
            && open.why == Why::Kind
            && match &*open.name {
                "select" => !OPTIONS.contains(&&*tag.name),
                "svg" => BREAKS_OUT.contains(&&*tag.name),
                _ => false,
            };
        if breaks_out {
            *skipped = self.skip(tag);
            return skipped.is_some();
        }
        if tag.name == open.name {
            match is_start {
                true if tag.self_closing => {}
                true => open.depth += 1,
                false => open.depth -= 1,
            }
        }
        if open.depth == 0 {
            *skipped = None;
        }
        true
    }

    /// Returns the removed element that a tag starts, if any.
    fn skip(&self, tag: &Tag) -> Option<Skipped> {
        let is_kind = LEFT_OUT.contains(&&*tag.name) || UNREAD.contains(&&*tag.name);
        let why = match is_kind {
            true => Why::Kind,
            false if self.hides && is_hidden(tag) && !VOID.contains(&&*tag.name) => Why::Style,
            false => return None,
        };
        let is_one = tag.kind == TagKind::StartTag && !(tag.self_closing && &*tag.name == "svg");
        is_one.then(|| Skipped {
            name: tag.name.clone(),
            depth: 1,
            why,
        })
    }

    /// Writes a tag that every HTML parser reads the same way.
    fn write(&self, tag: &Tag) {
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let left_out = ["plaintext", "xmp", "listing"];
        let is_left_out = [&LEFT_OUT[..], &UNWRAPPED, &UNREAD, &left_out]
            .iter()
            .any(|names| names.contains(&&*tag.name));
        if !is_name(&tag.name) || is_left_out {
            return;
        }
        let mut modest = self.modest.borrow_mut();
        modest.push('<');
        if tag.kind == TagKind::EndTag {
            modest.push('/');
        }
        modest.push_str(&tag.name);
        let attributes = tag.attrs.iter().filter(|_| tag.kind == TagKind::StartTag);
        for attribute in attributes.filter(|attribute| is_name(&attribute.name.local)) {
            modest.push(' ');
            modest.push_str(&attribute.name.local);
            modest.push_str("=\"");
            escape(&attribute.value, &mut modest);
            modest.push('"');
        }
        modest.push('>');
        drop(modest);
        match tag.kind {
            TagKind::StartTag => self.start(tag),
            TagKind::EndTag => self.end(&tag.name),
        }
    }
}

fn escape(text: &str, to: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\0' => {}
            _ => to.push(letter),
        }
    }
}

/// Returns true if an element's style hides it, such as preview text for lists of mails.
fn is_hidden(tag: &Tag) -> bool {
    let style = tag.attrs.iter().find(|it| &*it.name.local == "style");
    style.is_some_and(|style| {
        let style: String = style
            .value
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        let mut rules = style.split(';');
        rules.any(|rule| {
            matches!(
                rule.trim_end_matches("!important"),
                "display:none" | "visibility:hidden"
            )
        })
    })
}

impl Sink for Shape {
    fn tokens(&self) -> Option<usize> {
        (!self.is_too_much.get()).then(|| self.tokens.get())
    }
}

impl TokenSink for Shape {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        self.tokens.set(self.tokens.get() + 1);
        // Beyond the limit, nothing is counted.
        if self.is_too_much.get() {
            return TokenSinkResult::Continue;
        }
        match token {
            Token::TagToken(tag) => {
                if !self.is_skipped(&tag) {
                    self.write(&tag);
                }
                state_behind(&tag)
            }
            Token::CharacterTokens(text) if self.skipped.borrow().is_none() => {
                escape(&text, &mut self.modest.borrow_mut());
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
    fn what_people_send_is_modest() {
        let row =
            "<tr><td><font face=x><a href='https://x.y'><b>a</b></a></font><br><p>b</td></tr>";
        let letter = format!(
            "<html><head><title>x</title><style>td{{}}</style></head><body>\
             <center><table>{}</table></center><ul>{}</ul></body></html>",
            row.repeat(1000),
            "<li>x".repeat(1000)
        );
        assert!(modest(&letter).is_some());
        for text in ["", "plain &amp; simple", "&lt;"] {
            assert_eq!(modest(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_costs_too_much_is_not() {
        let repeat = |part: &str, times: usize| part.repeat(times);
        let styles: String = (0..5000).map(|id| format!("<b id={id}>")).collect();
        let closed: String = (0..5000)
            .map(|id| format!("<div><b id={id}></div>"))
            .collect();
        let fenced: String = (0..5000)
            .map(|id| format!("<b id={id}><table><td></b></table>"))
            .collect();
        let attributes: String = (0..20_000).map(|id| format!("a{id} ")).collect();
        for html in [
            styles + &repeat("<p>x", 5000),
            closed + &repeat("<p>x", 5000),
            fenced + &repeat("<p>x", 5000),
            repeat("<div>", 5000),
            repeat("<table><td>", 5000),
            repeat("<p>", 30_000),
            format!("<i {attributes}>"),
            repeat("x", 600 << 10),
        ] {
            assert!(modest(&html).is_none(), "{html:.60}");
        }
    }

    #[test]
    fn what_is_hidden_from_the_parser_closes_nothing() {
        let open: String = (0..2000)
            .map(|id| format!("<b id={id}><style></b></style><i title='</b>'></i><!--</b>-->"))
            .collect();
        assert!(modest(&(open + &"<p>x".repeat(2000))).is_none());
    }

    #[test]
    fn what_can_t_be_counted_is_left_out_alone() {
        for (html, expected) in [
            (
                "<p>Dear <b>crew</b></p><svg width=1><circle r=4 /><text>x</text></svg><p>pier",
                "<p>Dear <b>crew</b></p><p>pier",
            ),
            (
                "<p>pier</p><select><option>a<option>b</select> on",
                "<p>pier</p> on",
            ),
            ("<select><option>a<p>text</p>", "<p>text</p>"),
            ("<svg><g><div>text</div>", "<div>text</div>"),
            ("<svg><svg></svg>x</svg>y", "y"),
            ("<svg/>y", "y"),
            ("a<svg><style><p></style></svg>b", "ab"),
            (
                "<math><mi>x</mi><mo>=</mo><mn>5</mn></math>!",
                "<mi>x</mi><mo>=</mo><mn>5</mn>!",
            ),
            ("<frameset><frame src=x></frameset>text", "text"),
            ("<textarea><b>x</textarea>y", "&lt;b&gt;xy"),
            ("<xmp><b>x</xmp>y", "&lt;b&gt;xy"),
            (
                "<script>alert('<p>')</script>y<style>p{}</style>z<title>t</title>",
                "yz",
            ),
            (
                "<svg><foreignObject><p>text</p></foreignObject></svg>y",
                "<p>text</p></foreignobject>y",
            ),
            (
                "<a href='x&quot;y' onclick=z \"q=1>t</a>",
                "<a href=\"x&quot;y\" onclick=\"z\">t</a>",
            ),
            ("x<!-- <p> --><!doctype html>y", "xy"),
        ] {
            assert_eq!(modest(html).as_deref(), Some(expected), "{html}");
        }
    }

    #[test]
    fn what_styles_hide_is_hidden() {
        for (html, expected) in [
            (
                "<div style='display: none; x:y'>preview <div>x</div></div><p>letter",
                "<p>letter",
            ),
            (
                "<span style=\"DISPLAY:NONE !important\">preview</span>letter",
                "letter",
            ),
            (
                "<div style='display:none'>no end<p>letter",
                "<div style=\"display:none\">no end<p>letter",
            ),
            (
                "<div style='display:block'>letter</div>",
                "<div style=\"display:block\">letter</div>",
            ),
            (
                "<img style='display:none' src=x>letter",
                "<img style=\"display:none\" src=\"x\">letter",
            ),
        ] {
            assert_eq!(modest(html).as_deref(), Some(expected), "{html}");
        }
    }
}
