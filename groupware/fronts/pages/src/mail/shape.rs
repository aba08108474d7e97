//! Whether a mail's HTML can be taken apart at a bounded cost.
//!
//! The rules for broken HTML make parsers copy every element of style that was left open into
//! each block that follows, and look through all that is open again and again: a hundred kilobytes
//! can ask for gigabytes. A tokenizer, which has no such rules, counts what they would do. What
//! would hide tags from it, drawings and lists to choose from, counts as too much at once.

use std::cell::{Cell, RefCell};

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Largest HTML that is shown as such; Gmail cuts off at 102 KiB.
const BYTES: usize = 512 << 10;
/// Most tags that open something.
const STARTS: usize = 20_000;
/// Most levels of what is open, as counted by names. Browsers cut off at 512.
const LEVELS: usize = 1000;
/// Most copies of elements of style that the rules can ask for.
const COPIES: usize = 500_000;
/// What is fed to the tokenizer at once, and how often in a row without a token: a tag of more
/// has more attributes than can be compared with each other.
const PIECE_BYTES: usize = 4 << 10;
const PIECES_OF_A_TOKEN: usize = 16;

/// Elements that are opened again in the next block.
const STYLES: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// Behind the start of one of these, an earlier element of style can't be closed.
const FENCES: [&str; 8] = [
    "applet", "caption", "marquee", "object", "table", "td", "template", "th",
];
/// Elements that close themselves, or are closed by the next of their kind.
const SHORT: [&str; 20] = [
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
    "option", "p", "tbody", "td", "th", "tr", "wbr",
];
/// Elements within which tags follow other rules.
const FOREIGN: [&str; 4] = ["frameset", "math", "select", "svg"];

/// Whether the HTML costs little to take apart.
pub(crate) fn is_modest(html: &str) -> bool {
    if html.len() > BYTES {
        return false;
    }
    let tokenizer = Tokenizer::new(Shape::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let (mut rest, mut seen, mut pieces) = (html, 0, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        input.push_back(StrTendril::from_slice(piece));
        // A script's end asks to run it: it is passed over.
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        let shape = &tokenizer.sink;
        pieces = match shape.tokens.get() == seen {
            true => pieces + 1,
            false => 0,
        };
        seen = shape.tokens.get();
        if shape.is_too_much.get() || pieces > PIECES_OF_A_TOKEN {
            return false;
        }
    }
    true
}

#[derive(Default)]
struct Shape {
    tokens: Cell<usize>,
    starts: Cell<usize>,
    copies: Cell<usize>,
    is_too_much: Cell<bool>,
    open: RefCell<Vec<LocalName>>,
    styles: RefCell<Vec<LocalName>>,
    /// How many of the styles are behind a fence.
    fenced: Cell<usize>,
}

impl Shape {
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
        let is_too_much = self.starts.get() > STARTS
            || self.copies.get() > COPIES
            || open.len() > LEVELS
            || is(&FOREIGN);
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
}

impl TokenSink for Shape {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        self.tokens.set(self.tokens.get() + 1);
        let Token::TagToken(tag) = token else {
            return TokenSinkResult::Continue;
        };
        if tag.kind == TagKind::EndTag {
            self.end(&tag.name);
            return TokenSinkResult::Continue;
        }
        // Once it is too much, nothing more is counted.
        if !self.is_too_much.get() {
            self.start(&tag);
        }
        match &*tag.name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => TokenSinkResult::Plaintext,
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
        assert!(is_modest(&letter));
        assert!(is_modest("") && is_modest("plain &amp; simple") && is_modest("<"));
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
            "<svg><style><div>".to_owned(),
            "<select><style></select>".to_owned(),
            repeat("x", 600 << 10),
        ] {
            assert!(!is_modest(&html), "{:.60}", html);
        }
    }

    #[test]
    fn what_is_hidden_from_the_parser_closes_nothing() {
        let open: String = (0..2000)
            .map(|id| format!("<b id={id}><style></b></style><i title='</b>'></i><!--</b>-->"))
            .collect();
        assert!(!is_modest(&(open + &"<p>x".repeat(2000))));
    }
}
