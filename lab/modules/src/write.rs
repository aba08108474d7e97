//! Makes functions that may wait generators, and lets their callers wait, by insertions.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::edit::Edit;
use crate::facts::{Call, Facts, Function, Kind, Start};
use crate::source::SiteKind;
use crate::waits::Waits;

/// A call site without its file and line.
pub(crate) struct Place {
    pub(crate) at: u32,
    pub(crate) kind: SiteKind,
    pub(crate) name: Option<String>,
    pub(crate) group: Vec<String>,
}

/// What the calls and functions of a file become.
pub(crate) struct Written {
    pub(crate) edits: Vec<Edit>,
    pub(crate) places: Vec<Place>,
    /// Waits at places where none is possible: offset, message, help.
    pub(crate) problems: Vec<(u32, String, String)>,
}

enum How {
    Generator,
    Async,
    Sync,
}

/// Writes a file; its call sites get the numbers from `first` on.
pub(crate) fn written(waits: &Waits<'_>, text: &str, file: usize, first: u32) -> Written {
    let facts = &waits.facts[file];
    let mut out = Written {
        edits: Vec::new(),
        places: Vec::new(),
        problems: Vec::new(),
    };
    for (start, function) in &facts.functions {
        if waits.waits(file, *start) {
            convert(*start, function, &mut out.edits);
        }
    }
    release(waits, file, &mut out.edits);
    let mut begun = HashSet::new();
    let mut calls: Vec<&Call> = facts.calls.iter().collect();
    calls.sort_by_key(|call| (call.span.0, u32::MAX - call.span.1));
    for call in calls {
        site(waits, file, call, first, &mut out);
        if !waits.call_waits(file, call) {
            continue;
        }
        if waits.waits_for_callback(file, call)
            && let Some((_, at)) = &call.method
        {
            out.edits.push(Edit::open(*at, *at, "$$"));
        }
        let how = how(waits, file, call);
        if matches!(how, How::Sync) {
            impossible(waits, file, call, &mut out.problems);
        }
        // Calls at one place are in order, the longest first: it begins the statement.
        let sync = matches!(how, How::Sync);
        let begins = facts.statements.contains(&call.span.0) && (sync || begun.insert(call.span.0));
        wrap(text, facts, call, (&how, begins), &mut out.edits);
    }
    out
}

/// Forgets locals that aren't used any more before the function waits: what they hold would wait with it.
fn release(waits: &Waits<'_>, file: usize, edits: &mut Vec<Edit>) {
    let facts = &waits.facts[file];
    let mut waiting: HashMap<Start, BTreeSet<u32>> = HashMap::new();
    for call in &facts.calls {
        if waits.waits(file, call.function) && !call.fixed && waits.call_waits(file, call) {
            waiting
                .entry(call.function)
                .or_default()
                .insert(call.span.0);
        }
    }
    let mut declared = HashSet::new();
    for local in &facts.locals {
        let (Some(calls), Some(uses)) =
            (waiting.get(&local.function), facts.uses.get(&local.symbol))
        else {
            continue;
        };
        let passed = |function: &Start| {
            let outer =
                std::iter::successors(Some(*function), |inner| facts.passing.get(inner).copied());
            outer.into_iter().any(|function| function == local.function)
        };
        if !uses.functions.iter().all(passed) {
            continue;
        }
        let block = &facts.blocks[local.block];
        let next = block[local.statement + 1..]
            .iter()
            .find(|(start, end)| *start > uses.last && calls.range(*start..*end).next().is_some());
        let Some((start, _)) = next else {
            continue;
        };
        edits.push(Edit::open(
            *start,
            u32::MAX - 1,
            format!("{}=void 0;", local.name),
        ));
        let (keyword, _) = block[local.statement];
        if local.is_const && declared.insert(keyword) {
            edits.push(Edit::replace(keyword, keyword + 5, "let"));
        }
    }
}

fn how(waits: &Waits<'_>, file: usize, call: &Call) -> How {
    let Some(function) = waits.facts[file].functions.get(&call.function) else {
        return How::Sync;
    };
    if call.fixed || function.is_generator {
        How::Sync
    } else if function.is_async || function.becomes_async && waits.waits(file, call.function) {
        How::Async
    } else if waits.waits(file, call.function) {
        How::Generator
    } else {
        How::Sync
    }
}

/// Makes a function a generator, or asynchronous if it is the callback of a promise.
fn convert(start: Start, function: &Function, edits: &mut Vec<Edit>) {
    if function.becomes_async {
        edits.push(Edit::open(start, function.end, "async "));
        return;
    }
    if function.kind != Kind::Arrow {
        edits.push(Edit::open(function.head, function.end, "*"));
        return;
    }
    let open = if function.bare_param {
        "(function*("
    } else {
        "(function*"
    };
    edits.push(Edit::open(start, function.end, open));
    if function.bare_param {
        edits.push(Edit::close(function.params.1, start, ")"));
    }
    let this = if function.uses_this {
        ".bind(this)"
    } else {
        ""
    };
    if function.expression {
        edits.push(Edit::replace(
            function.arrow,
            function.arrow + 2,
            "{return(",
        ));
        edits.push(Edit::close(function.end, start, format!(")}}){this}")));
    } else {
        edits.push(Edit::replace(function.arrow, function.arrow + 2, "  "));
        edits.push(Edit::close(function.end, start, format!("){this}")));
    }
}

/// Lets the function around wait for what a call returns.
fn wrap(
    text: &str,
    facts: &Facts,
    call: &Call,
    (how, begins): (&How, bool),
    edits: &mut Vec<Edit>,
) {
    let (start, end) = call.span;
    let first = if begins { "0," } else { "" };
    let (open, close) = match how {
        How::Generator => (
            format!("{first}(($$k=($$t="),
            ")?.[$$K])?$$k>1?yield*$$t:yield $$t:$$t)",
        ),
        How::Async => (
            format!("{first}(($$k=($$t="),
            ")?.[$$K])?await $$a($$t):$$t)",
        ),
        How::Sync => ("$$y(".to_owned(), ")"),
    };
    edits.push(Edit::open(start, end, open));
    edits.push(Edit::close(end, start, close));
    // What follows in a chain with `?.` must still be skipped if there is nothing.
    if facts.chains.get(&start).is_some_and(|until| *until > end) {
        let rest = text.get(end as usize..).unwrap_or_default();
        let at = end + (rest.len() - rest.trim_start().len()) as u32;
        match rest.trim_start().as_bytes() {
            [b'?', ..] => {}
            [b'.', ..] => edits.push(Edit::close(at, 0, "?")),
            _ => edits.push(Edit::close(at, 0, "?.")),
        }
    }
}

/// Numbers a call of the API, and lets the host know the number.
fn site(waits: &Waits<'_>, file: usize, call: &Call, first: u32, out: &mut Written) {
    let Some((module, name)) = waits.api(file, &call.callee) else {
        return;
    };
    let Some(kind) = site_kind(&module, &name) else {
        return;
    };
    let Some(last) = call.args.last() else {
        return;
    };
    let number = first + out.places.len() as u32;
    out.places.push(Place {
        at: call.span.0,
        kind,
        name: site_name(kind, &name, call),
        group: call.groups.clone(),
    });
    let (start, end) = last.span;
    out.edits.push(Edit::open(start, end + 1, "($$v="));
    out.edits.push(Edit::close(
        end,
        start.saturating_sub(1),
        format!(",$$at.s={number},$$v)"),
    ));
}

fn site_kind(module: &str, name: &str) -> Option<SiteKind> {
    match (module, name) {
        ("k6", "sleep") => Some(SiteKind::Sleep),
        ("k6", "check") => Some(SiteKind::Check),
        ("k6", "group") => Some(SiteKind::Group),
        ("k6", _) => None,
        ("k6/http", "batch") => Some(SiteKind::Batch),
        (
            "k6/http",
            "get" | "head" | "post" | "put" | "patch" | "del" | "options" | "request"
            | "asyncRequest",
        ) => Some(SiteKind::Request),
        _ => None,
    }
}

fn site_name(kind: SiteKind, name: &str, call: &Call) -> Option<String> {
    if kind == SiteKind::Request && call.tag_name.is_some() {
        return call.tag_name.clone();
    }
    let label = call.label.as_ref()?;
    if kind != SiteKind::Request {
        return Some(label.clone());
    }
    let (method, address) = match name {
        "del" => ("DELETE".to_owned(), label.as_str()),
        "request" | "asyncRequest" => label
            .split_once(' ')
            .map(|(method, rest)| (method.to_uppercase(), rest))?,
        name => (name.to_uppercase(), label.as_str()),
    };
    Some(format!("{method} {}", super::values::path(address)))
}

/// Notes a request or wait at a place where none is possible.
fn impossible(
    waits: &Waits<'_>,
    file: usize,
    call: &Call,
    problems: &mut Vec<(u32, String, String)>,
) {
    let Some((module, name)) = waits.api(file, &call.callee) else {
        return;
    };
    let what = match (module.as_str(), name.as_str()) {
        ("k6", "sleep") => "a user can't sleep",
        ("k6/http", _) => "a request can't be sent",
        _ => return,
    };
    let facts = &waits.facts[file];
    let Some(function) = facts.functions.get(&call.function) else {
        return;
    };
    let place = match function.kind {
        Kind::Module => "at module level".to_owned(),
        Kind::Getter => "within a getter".to_owned(),
        Kind::Setter => "within a setter".to_owned(),
        Kind::Constructor => "within a constructor".to_owned(),
        _ if call.fixed => "in the default of a parameter or in a field of a class".to_owned(),
        _ if function.is_generator => "within a generator".to_owned(),
        _ if function.constructs => "within a function that is used with new".to_owned(),
        _ => match &function.callback_of {
            Some(name) if name.starts_with("new ") => format!("within the function of {name}"),
            Some(name) => format!("within a {name}"),
            None => return,
        },
    };
    let help = match function.kind {
        Kind::Module => "move it into setup() or into the function of a scenario",
        _ => "do it before, in a loop, and use its result here",
    };
    problems.push((call.span.0, format!("{what} {place}"), help.to_owned()));
}
