//! Traces values of a response that a later request contains.

use std::collections::{HashMap, HashSet};

use lab_workload::looks_secret;

use super::atoms::{Atom, ORIGIN, Position, atoms, put, stands};
use super::find::{Source, find};
use super::noise::is_part_of_page;
use super::read::Recorded;
use crate::draft::Request;
use crate::text::Text;
use lab_units::names::Names;

/// Most captured values; fewer than a workload's most variables.
const MOST: usize = 60;
/// Most named values, of those that stay as recorded.
const MOST_SAID: usize = 20;
/// Number of responses before a request that are searched.
const BACK: usize = 200;

/// Expressions evaluated once before a request, by its number: the variable and its value.
pub(super) type Sets = HashMap<usize, Vec<(String, String)>>;

/// Captures the values, and replaces them in later requests.
pub(super) fn trace(kept: &[Recorded], requests: &mut [Request], said: &mut Vec<String>) -> Sets {
    let mut tracer = Tracer::default();
    tracer.names.variable(ORIGIN);
    for at in 0..requests.len() {
        let found = atoms(&mut requests[at]);
        if at > 0 && follows(&kept[at - 1], &kept[at]) {
            tracer.location(at, &kept[at - 1], requests);
        }
        for atom in &found {
            tracer.atom(at, atom, kept, requests);
            tracer.freeze(at, atom, kept, requests);
        }
        tracer
            .typed
            .extend(found.into_iter().map(|atom| atom.value));
    }
    said.append(&mut tracer.frozen);
    if tracer.more_frozen > 0 {
        said.push(format!(
            "{} more values stay as recorded, though answers held them",
            tracer.more_frozen
        ));
    }
    if tracer.left > 0 {
        said.push(format!(
            "{} more values come back than are captured ({MOST})",
            tracer.left
        ));
    }
    tracer.sets
}

/// Returns true if a request follows the redirect of the one before it.
fn follows(before: &Recorded, one: &Recorded) -> bool {
    let to = before
        .answered("location")
        .unwrap_or(&before.entry.response.redirect);
    let leads = before.url.join(to).is_ok_and(|to| {
        let without = |url: &url::Url| {
            let mut url = url.clone();
            url.set_fragment(None);
            url
        };
        without(&to) == without(&one.url)
    });
    let is_target = to.starts_with('/') && !to.starts_with("//") || to.starts_with("http");
    let is_redirect = (300..400).contains(&before.entry.response.status);
    is_redirect
        && leads
        && is_target
        && !to.contains(['#', ' '])
        && one.entry.request.method == "GET"
}

#[derive(Default)]
struct Tracer {
    names: Names,
    /// The expression for a value.
    known: HashMap<String, String>,
    /// Values that a request contained before any response.
    typed: HashSet<String>,
    sets: Sets,
    captured: usize,
    left: usize,
    /// Sentences about values that responses contained and requests send as recorded.
    frozen: Vec<String>,
    /// Number of further ones.
    more_frozen: usize,
}

impl Tracer {
    /// Uses the location of the response before as the request's target.
    fn location(&mut self, at: usize, before: &Recorded, requests: &mut [Request]) {
        // An absolute URL has scheme and host before its path.
        let is_absolute = before
            .answered("location")
            .is_some_and(|to| to.starts_with("http"));
        let more = if is_absolute { 2 } else { 0 };
        let name = self.names.variable("location");
        requests[at - 1]
            .captures
            .push((name.clone(), "header.Location".to_owned()));
        // Later requests contain its parts, too.
        let path: Vec<String> = requests[at]
            .target
            .as_literal()
            .map(|target| target.split('/').map(str::to_owned).collect())
            .unwrap_or_default();
        for (nth, segment) in path.iter().enumerate().skip(1) {
            if is_given(segment) && !segment.contains(['?', '%']) && !self.typed.contains(segment) {
                let code = format!("({name} | split('/') | list)[{}]", nth + more);
                self.known.entry(segment.clone()).or_insert(code);
            }
        }
        requests[at].target = Text::code(&name);
    }

    fn atom(&mut self, at: usize, atom: &Atom, kept: &[Recorded], requests: &mut [Request]) {
        if is_part_of_page(&kept[at]) || !may_come_back(atom) {
            return;
        }
        if let Some(code) = self.known.get(&atom.value) {
            put(&mut requests[at], atom, code);
            return;
        }
        if self.typed.contains(&atom.value) {
            return;
        }
        let back = (at.saturating_sub(BACK)..at).rev();
        let mut sources = back.filter_map(|from| Some((from, find(&kept[from], atom)?)));
        let Some((from, source)) = sources.next() else {
            return;
        };
        if self.captured >= MOST {
            self.left += 1;
            return;
        }
        self.captured += 1;
        let code = self.capture((from, at), source, requests);
        put(&mut requests[at], atom, &code);
        self.known.insert(atom.value.clone(), code);
    }

    /// Notes a value that looks generated, if a response contained it and the request sends it as recorded.
    fn freeze(&mut self, at: usize, atom: &Atom, kept: &[Recorded], requests: &mut [Request]) {
        let value = atom.value.as_str();
        if is_part_of_page(&kept[at])
            || self.known.contains_key(value)
            || self.typed.contains(value)
            || !is_unusual(atom)
            || !stands(&mut requests[at], atom)
        {
            return;
        }
        let mut back = (at.saturating_sub(BACK)..at).rev();
        let Some(from) = back.find(|from| kept[*from].holds(value)) else {
            return;
        };
        if self.frozen.len() >= MOST_SAID {
            self.more_frozen += 1;
            return;
        }
        let line = |one: &Recorded| format!("{} {}", one.entry.request.method, one.url.path());
        let what = match atom.place {
            Position::Path => "a part of its path".to_owned(),
            Position::Word => "a word of its body".to_owned(),
            _ => format!("`{}`", atom.name),
        };
        let becomes = match looks_secret(&atom.name) {
            true => "is asked of the environment",
            false => "stays as recorded",
        };
        self.frozen.push(format!(
            "{}: {what} {becomes}, though the answer to {} held it: capture it there, or all users send one value",
            line(&kept[at]),
            line(&kept[from])
        ));
    }

    /// Captures a value and returns its expression.
    fn capture(
        &mut self,
        (from, at): (usize, usize),
        source: Source,
        requests: &mut [Request],
    ) -> String {
        let captures = &mut requests[from].captures;
        let known = captures
            .iter()
            .find(|(_, capture)| *capture == source.capture);
        let known = known.map(|(name, _)| name.clone());
        if !source.is_list {
            return known.unwrap_or_else(|| {
                let name = self.names.variable(&source.name);
                captures.push((name.clone(), source.capture));
                name
            });
        }
        let list = known.unwrap_or_else(|| {
            let name = self.names.variable(&format!("{}_list", source.name));
            captures.push((name.clone(), source.capture));
            name
        });
        let name = self.names.variable(&source.name);
        let sets = self.sets.entry(at).or_default();
        sets.push((name.clone(), format!("pick({list})")));
        name
    }
}

/// Returns true if a value is eight or more characters that no person would type.
fn is_unusual(atom: &Atom) -> bool {
    const USUAL: [&str; 4] = ["accept", "content-type", "x-requested-with", "soapaction"];
    let value = atom.value.as_str();
    let is_usual =
        atom.place == Position::Header && USUAL.contains(&atom.name.to_ascii_lowercase().as_str());
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    let is_odd = letters && value.contains(['+', '/', '=', '|', '~', '$', '!', '*']);
    (8..=4096).contains(&value.len())
        && !is_usual
        && !value.contains(char::is_whitespace)
        && (is_given(value) || is_odd)
}

/// Returns true if a value may come from a server.
fn may_come_back(atom: &Atom) -> bool {
    let value = atom.value.as_str();
    if value.len() > 4096 || value.contains(['\n', '\r']) {
        return false;
    }
    let is_key = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == "id" || name.ends_with("id") || name.ends_with("key")
    };
    let is_token = [
        "csrf",
        "xsrf",
        "token",
        "nonce",
        "state",
        "viewstate",
        "verification",
    ];
    let named = || {
        let name = atom.name.to_ascii_lowercase();
        is_token.iter().any(|part| name.contains(part)) && value.len() >= 4
    };
    match atom.place {
        Position::Path => is_given(value),
        // A page number or a count identifies nothing.
        Position::Query | Position::Form | Position::Json | Position::Part | Position::Field => {
            named() || (is_given(value) && (value.len() >= 6 || is_key(&atom.name)))
        }
        Position::Word => false,
        Position::Header => {
            value.len() >= 8 && (named() || looks_secret(&atom.name) || is_given(value))
        }
    }
}

/// Returns true if a text looks generated: a number, or letters with digits among them.
fn is_given(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    if text.contains(' ') {
        return false;
    }
    let is_number = digits > 0 && digits == text.len();
    let is_mixed = digits > 0 && letters > 0 && text.len() >= 6;
    is_number || is_mixed || text.len() >= 24
}
