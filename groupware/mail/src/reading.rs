//! Which parts of a message are shown inline, in which order, and which are files.
//!
//! The parts are a tree. Of alternatives, one is shown; of any other multipart, all inline texts,
//! one after the other, and the pictures between them (RFC 2046, 5.1). A text with a name after
//! another text is a file.

use std::collections::{BTreeMap, BTreeSet};

use mail_parser::decoders::html::html_to_text;

use crate::Part;

/// Which of the alternatives is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The last one that can be shown: the author prefers it.
    Preferred,
    /// A text without markup.
    Plain,
}

/// The parts of a message that are shown inline, and the files.
#[derive(Debug)]
pub struct Reading<'v, 'a> {
    parts: &'v [Part<'a>],
    preferred: Vec<usize>,
    plain: Vec<usize>,
    /// Alternatives of the shown parts.
    others: BTreeSet<usize>,
}

impl<'v, 'a> Reading<'v, 'a> {
    /// Classifies all parts of a message.
    pub(crate) fn of(parts: &'v [Part<'a>]) -> Self {
        let mut walk = Walk {
            parts,
            others: BTreeSet::new(),
            blank: BTreeMap::new(),
        };
        let preferred = walk.all(0..parts.len(), Form::Preferred);
        let plain = walk.all(0..parts.len(), Form::Plain);
        Self {
            parts,
            preferred,
            plain,
            others: walk.others,
        }
    }

    /// The inline parts, texts and pictures, in the form that the author prefers.
    pub fn preferred(&self) -> impl Iterator<Item = &'v Part<'a>> {
        self.preferred.iter().map(|at| &self.parts[*at])
    }

    /// The inline parts, without markup where there is a plain text.
    pub fn plain(&self) -> impl Iterator<Item = &'v Part<'a>> {
        self.plain.iter().map(|at| &self.parts[*at])
    }

    /// Returns true if there is a plain text besides the preferred one.
    pub fn has_plain(&self) -> bool {
        self.plain != self.preferred
    }

    /// The attached files: all parts that are not shown inline in either form.
    pub fn files(&self) -> impl Iterator<Item = &'v Part<'a>> {
        let is_read = |at: &usize| {
            let mut all = self.preferred.iter().chain(&self.plain).chain(&self.others);
            all.any(|read| read == at)
        };
        let files = (0..self.parts.len()).filter(move |at| !is_read(at));
        let files = files.map(|at| &self.parts[at]);
        files.filter(|part| !part.is_multipart())
    }
}

struct Walk<'v, 'a> {
    parts: &'v [Part<'a>],
    others: BTreeSet<usize>,
    /// Whether each text is blank. Each is decoded once, at any depth.
    blank: BTreeMap<usize, bool>,
}

impl Walk<'_, '_> {
    /// The inline parts of siblings.
    fn all(&mut self, parts: std::ops::Range<usize>, form: Form) -> Vec<usize> {
        let mut read = Vec::new();
        for at in self.beside(parts) {
            let has_text = read.iter().any(|at: &usize| self.parts[*at].is_text());
            read.extend(self.one(at, form, has_text));
        }
        read
    }

    /// The index of each sibling in a range of parts.
    fn beside(&self, parts: std::ops::Range<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = parts.start;
        while at < parts.end {
            found.push(at);
            at += self.parts[at].inner + 1;
        }
        found
    }

    /// The inline parts of a part, after a text or not.
    fn one(&mut self, at: usize, form: Form, has_text: bool) -> Vec<usize> {
        let part = &self.parts[at];
        let inner = at + 1..at + 1 + part.inner;
        if !part.is_multipart() {
            let is_read = match part.is_text() {
                true => !(has_text && part.is_named),
                false => part.picture().is_some() && !part.is_apart(),
            };
            return if is_read { vec![at] } else { Vec::new() };
        }
        match part.kind.as_str() {
            "multipart/alternative" => self.alternative(inner, form),
            // The parts after the text are shown where it refers to them.
            "multipart/related" => {
                let Some(first) = self.beside(inner.clone()).into_iter().next() else {
                    return Vec::new();
                };
                let read = self.one(first, form, has_text);
                match read.is_empty() {
                    true => self.all(first + 1 + self.parts[first].inner..inner.end, form),
                    false => read,
                }
            }
            _ => self.all(inner, form),
        }
    }

    fn is_blank(&mut self, at: usize) -> bool {
        let part = &self.parts[at];
        *self.blank.entry(at).or_insert_with(|| is_blank(part))
    }

    fn alternative(&mut self, inner: std::ops::Range<usize>, form: Form) -> Vec<usize> {
        let texts = inner.clone().filter(|at| self.parts[*at].is_text());
        self.others.extend(texts);
        let forms: Vec<Vec<usize>> = self
            .beside(inner)
            .into_iter()
            .map(|at| self.one(at, form, false))
            .filter(|read| !read.is_empty())
            .collect();
        let parts = self.parts;
        let is_known = |read: &&Vec<usize>| {
            let mut kinds = read.iter().map(|at| parts[*at].kind.as_str());
            kinds.any(|kind| matches!(kind, "text/plain" | "text/html"))
        };
        let has_markup = |read: &&Vec<usize>| read.iter().any(|at| parts[*at].is_html());
        let mut blank = Vec::new();
        for read in &forms {
            blank.push(read.iter().all(|at| self.is_blank(*at)));
        }
        let is_blank = |read: &Vec<usize>| {
            let at = forms.iter().position(|known| known == read);
            at.is_some_and(|at| blank[at])
        };
        let known = || forms.iter().filter(is_known);
        let preferred = || known().rev().find(|read| !is_blank(read));
        let found = match form {
            Form::Preferred => preferred(),
            Form::Plain => {
                let mut plain = known().filter(|read| !has_markup(read));
                plain.find(|read| !is_blank(read)).or_else(preferred)
            }
        };
        found.or(forms.last()).cloned().unwrap_or_default()
    }
}

/// Returns true for a text without visible content.
fn is_blank(part: &Part<'_>) -> bool {
    if !part.is_text() {
        return false;
    }
    let text = part.text();
    match part.is_html() {
        // Many mails consist of a picture.
        true => {
            !text.to_ascii_lowercase().contains("<img") && html_to_text(&text).trim().is_empty()
        }
        false => text.trim().is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts;

    /// A part with this header and text, or with these parts.
    enum Tree {
        Leaf(&'static str, &'static str),
        Multi(&'static str, Vec<Tree>),
    }
    use Tree::{Leaf, Multi};

    impl Tree {
        fn message(&self, level: usize) -> String {
            match self {
                Leaf(head, text) => format!("{head}\n\n{text}\n"),
                Multi(kind, inner) => {
                    let mut text = format!("Content-Type: multipart/{kind}; boundary=b{level}\n\n");
                    for part in inner {
                        text += &format!("--b{level}\n{}", part.message(level + 1));
                    }
                    text + &format!("--b{level}--\n")
                }
            }
        }
    }

    const PLAIN: &str = "Content-Type: text/plain";
    const HTML: &str = "Content-Type: text/html";
    const PNG: &str = "Content-Type: image/png; name=p.png\nContent-Disposition: inline\nContent-Transfer-Encoding: base64";
    const PNG_DATA: &str = "iVBORw0KGgo=";
    const PDF: &str = "Content-Type: application/pdf; name=a.pdf\nContent-Disposition: inline";

    /// Checks the texts and names that are shown, those without markup, and the names of the files.
    fn check(tree: &Tree, preferred: &[&str], plain: &[&str], files: &[&str]) {
        let message = tree.message(0);
        let parts = parts(message.as_bytes());
        let reading = Reading::of(&parts);
        let shown = |part: &Part<'_>| match part.is_text() {
            true => part.text().trim().to_owned(),
            false => part.name.clone(),
        };
        let all = |read: Vec<&Part<'_>>| read.into_iter().map(shown).collect::<Vec<_>>();
        assert_eq!(all(reading.preferred().collect()), preferred, "{message}");
        assert_eq!(all(reading.plain().collect()), plain, "{message}");
        let names: Vec<_> = reading.files().map(|part| part.name.clone()).collect();
        assert_eq!(names, files, "{message}");
        assert_eq!(reading.has_plain(), preferred != plain, "{message}");
    }

    #[test]
    fn all_texts_are_read_in_their_order() {
        let text = |text| Leaf(PLAIN, text);
        let html = |text| Leaf(HTML, text);
        check(&text("alone"), &["alone"], &["alone"], &[]);
        check(
            &Multi("mixed", vec![text("before"), Leaf(PDF, "x"), text("after")]),
            &["before", "after"],
            &["before", "after"],
            &["a.pdf"],
        );
        let pictured = Multi(
            "mixed",
            vec![html("before"), Leaf(PNG, PNG_DATA), html("<b>after</b>")],
        );
        check(
            &Multi("alternative", vec![text("both"), pictured]),
            &["before", "p.png", "<b>after</b>"],
            &["both"],
            &[],
        );
        let footer = Leaf(
            "Content-Type: text/plain\nContent-Disposition: inline",
            "Pier list",
        );
        check(
            &Multi("mixed", vec![text("letter"), footer]),
            &["letter", "Pier list"],
            &["letter", "Pier list"],
            &[],
        );
        let both = || {
            Multi(
                "alternative",
                vec![Leaf(PLAIN, "plain"), Leaf(HTML, "<p>html")],
            )
        };
        check(
            &Multi("mixed", vec![both(), text("footer")]),
            &["<p>html", "footer"],
            &["plain", "footer"],
            &[],
        );
        check(
            &Multi("related", vec![both(), Leaf(PNG, PNG_DATA)]),
            &["<p>html"],
            &["plain"],
            &["p.png"],
        );
        check(
            &Multi(
                "signed",
                vec![
                    both(),
                    Leaf("Content-Type: application/pgp-signature; name=s.asc", "x"),
                ],
            ),
            &["<p>html"],
            &["plain"],
            &["s.asc"],
        );
        check(
            &Multi(
                "report",
                vec![
                    text("failed"),
                    Leaf("Content-Type: message/delivery-status", "x: y"),
                    Leaf("Content-Type: message/rfc822", "a: b\n\nc"),
                ],
            ),
            &["failed"],
            &["failed"],
            &["part-2.bin", "part-3.eml"],
        );
    }

    #[test]
    fn texts_with_a_name_behind_another_are_files() {
        let named = |more: &str| -> &'static str {
            format!("Content-Type: text/html; name=report.html{more}").leak()
        };
        for more in [
            "",
            "\nContent-Disposition: inline; filename=report.html",
            "\nContent-Disposition: attachment",
        ] {
            check(
                &Multi(
                    "mixed",
                    vec![Leaf(PLAIN, "letter"), Leaf(named(more), "<p>x")],
                ),
                &["letter"],
                &["letter"],
                &["report.html"],
            );
        }
        check(&Leaf(named(""), "<p>x"), &["<p>x"], &["<p>x"], &[]);
        check(
            &Multi(
                "mixed",
                vec![
                    Leaf("Content-Type: text/calendar", "x"),
                    Leaf(PLAIN, "letter"),
                ],
            ),
            &["letter"],
            &["letter"],
            &["part-1.ics"],
        );
    }

    #[test]
    fn of_alternatives_the_last_one_that_can_be_shown_is_read() {
        let text = |text| Leaf(PLAIN, text);
        for blank in [
            "",
            " ",
            "<html><body> &nbsp; </body></html>",
            "<style>x</style>",
        ] {
            check(
                &Multi("alternative", vec![text("plain"), Leaf(HTML, blank)]),
                &["plain"],
                &["plain"],
                &[],
            );
        }
        check(
            &Multi(
                "alternative",
                vec![text(" "), Leaf(HTML, "<img src=cid:x>")],
            ),
            &["<img src=cid:x>"],
            &["<img src=cid:x>"],
            &[],
        );
        check(
            &Multi("alternative", vec![Leaf(HTML, "<p>first"), text("last")]),
            &["last"],
            &["last"],
            &[],
        );
        let calendar = Leaf("Content-Type: text/calendar; method=REQUEST", "x");
        check(
            &Multi(
                "alternative",
                vec![text("plain"), Leaf(HTML, "<p>x"), calendar],
            ),
            &["<p>x"],
            &["plain"],
            &["part-3.ics"],
        );
        let amp = Leaf("Content-Type: text/x-amp-html", "<html amp4email>");
        check(
            &Multi("alternative", vec![text("plain"), amp]),
            &["plain"],
            &["plain"],
            &[],
        );
        let odd = Leaf("Content-Type: text/x-odd", "odd");
        check(&Multi("alternative", vec![odd]), &["odd"], &["odd"], &[]);
        check(
            &Multi("alternative", vec![Leaf(PDF, "x")]),
            &[],
            &[],
            &["a.pdf"],
        );
        check(
            &Multi("alternative", vec![Leaf(PLAIN, "")]),
            &[""],
            &[""],
            &[],
        );
    }

    #[test]
    fn nested_parts_are_looked_at_once() {
        // If each level visited the next one twice, this would take hours.
        for kind in ["related", "alternative", "mixed"] {
            let mut tree = Multi(kind, (0..500).map(|_| Leaf(PDF, "x")).collect());
            for _ in 0..14 {
                tree = Multi(kind, vec![tree]);
            }
            let message = tree.message(0);
            let parts = parts(message.as_bytes());
            assert_eq!(Reading::of(&parts).files().count(), 500, "{kind}");
        }
    }
}
