//! The names of a script's checks and metrics, found in its text. A name that the script computes is not found.

use lab_script::{Program, SiteKind, Source};
use lab_workload::MetricKind;

/// Returns the names of all checks: the keys of the object in each call of `check`.
pub(crate) fn checks(program: &Program) -> Vec<String> {
    let mut names = Vec::new();
    for site in program.sites() {
        if site.kind != SiteKind::Check {
            continue;
        }
        let source = program.sources().iter().find(|one| one.name == site.file);
        let Some(text) = source.and_then(text) else {
            continue;
        };
        let start: usize = text
            .split_inclusive('\n')
            .take(site.line.saturating_sub(1) as usize)
            .map(str::len)
            .sum();
        let rest = &text[start..];
        if let Some(at) = rest.find("check") {
            names.extend(keys(&rest[at..]));
        }
    }
    unique(names)
}

/// A metric of a script.
#[derive(Debug, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) kind: MetricKind,
    /// Whether its values are times.
    pub(crate) is_time: bool,
}

/// Returns all metrics, each name once.
pub(crate) fn metrics(program: &Program) -> Vec<Metric> {
    let mut found: Vec<Metric> = Vec::new();
    for text in program.sources().iter().filter_map(text) {
        for metric in metrics_of(text) {
            if found.iter().all(|known| known.name != metric.name) {
                found.push(metric);
            }
        }
    }
    found
}

/// Returns the metrics that a text makes, also by another name: `import { Counter as C }`.
fn metrics_of(text: &str) -> Vec<Metric> {
    let mut found = Vec::new();
    for (class, kind) in [
        ("Trend", MetricKind::Trend),
        ("Rate", MetricKind::Rate),
        ("Counter", MetricKind::Counter),
        ("Gauge", MetricKind::Gauge),
    ] {
        let renamed = text.split_once(&format!("{class} as "));
        let renamed = renamed.map(|(_, rest)| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
            &rest[..end.unwrap_or(rest.len())]
        });
        for class in [Some(class), renamed.filter(|name| !name.is_empty())] {
            let calls = class.into_iter().flat_map(|class| made(text, class));
            found.extend(calls.map(|(name, is_time)| Metric {
                name,
                kind,
                is_time,
            }));
        }
    }
    found
}

/// Returns the names in the calls of a class, each with whether `true` follows it.
fn made(text: &str, class: &str) -> Vec<(String, bool)> {
    let starts_here = |at: usize| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '$')
    };
    let calls = text.match_indices(class);
    let calls = calls.filter(|(at, _)| starts_here(*at));
    let found = calls.filter_map(|(at, _)| {
        let rest = text[at + class.len()..].trim_start().strip_prefix('(')?;
        let (name, rest) = quoted(rest.trim_start())?;
        let is_time = rest.trim_start().strip_prefix(',');
        let is_time = is_time.is_some_and(|rest| rest.trim_start().starts_with("true"));
        (!name.is_empty()).then_some((name, is_time))
    });
    found.collect()
}

/// Returns the text of a file of code.
fn text(source: &Source) -> Option<&str> {
    let is_code = [".js", ".ts", ".mjs", ".cjs", ".mts"];
    let is_code = is_code.iter().any(|end| source.name.ends_with(end));
    std::str::from_utf8(&source.text).ok().filter(|_| is_code)
}

/// Returns the keys of the first object in a call's arguments.
fn keys(call: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut in_object) = (0usize, None);
    let mut rest = call;
    let mut is_key = false;
    while let Some(c) = rest.chars().next() {
        if matches!(c, '"' | '\'' | '`') {
            let Some((text, after)) = quoted(rest) else {
                return names;
            };
            let is_before_colon = after.trim_start().starts_with([':', ']']);
            if is_key && in_object == Some(depth) && is_before_colon {
                names.push(text);
                is_key = false;
            }
            rest = after;
            continue;
        }
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        let at_word = is_key && in_object == Some(depth) && (c.is_alphabetic() || c == '_');
        if at_word {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            if after.trim_start().starts_with([':', '(']) {
                names.push(word.to_owned());
            }
            is_key = false;
            rest = after;
            continue;
        }
        match c {
            '{' => {
                depth += 1;
                if in_object.is_none() && depth == 2 {
                    (in_object, is_key) = (Some(depth), true);
                }
            }
            '(' => depth += 1,
            // A computed key: its text may be one literal.
            '[' if is_key => {}
            '[' => depth += 1,
            ']' if in_object == Some(depth) => {}
            ')' | '}' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return names;
                }
            }
            ',' if in_object == Some(depth) => is_key = true,
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    names
}

/// Returns a literal text at the beginning, and what follows it; `None` if there is none, or if it is computed.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            c => value.push(c),
        }
    }
    None
}

fn unique(names: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_object() {
        let call = "check(res, {\n  'status is 200': (r) => r.status === 200 && f({ a: 1 }),\n  \
                    \"body, with a comma\": (r) => r.body.includes('x: y'),\n  // 'no': 1,\n  \
                    plain: (r) => { return { deep: 1 }; },\n  [`literal`]: () => true,\n}); check(b, { 'other': 1 })";
        assert_eq!(
            keys(call),
            ["status is 200", "body, with a comma", "plain", "literal"]
        );
        assert_eq!(keys("check(res, checks, { tag: 'a' })"), ["tag"]);
        assert!(keys("check(res").is_empty());
    }

    #[test]
    fn metrics_have_the_kind_of_their_class() {
        let text = "import { Counter as C, Trend } from 'k6/metrics';\nconst orders = new C('orders');\n\
                    const took = new Trend('took', true), other = new MyTrend('no'), x = new k.Gauge(\"stock\");";
        let found = metrics_of(text);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.kind, one.is_time))
            .collect();
        assert_eq!(
            found,
            [
                ("took", MetricKind::Trend, true),
                ("orders", MetricKind::Counter, false),
                ("stock", MetricKind::Gauge, false)
            ]
        );
    }

    #[test]
    fn texts_end_at_their_quote() {
        assert_eq!(quoted("'a\\'b' c"), Some(("a'b".to_owned(), " c")));
        assert_eq!(quoted("x"), None);
        assert_eq!(quoted("'open"), None);
    }
}
