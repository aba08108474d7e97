//! Converts the requests of a recording to those of a workload, and groups them into steps.

use std::time::Duration;

use lab_workload::looks_secret;

use super::atoms::{ORIGIN, Position, atoms, put};
use super::body::{self, TypedBody};
use super::coding::base64;
use super::read::{Pair, Recorded};
use super::trace::Sets;
use crate::draft::{Body, Json, Request, Step, Wait};
use crate::secret::Secrets;
use crate::text::{HOLE, Text};
use lab_units::names::Names;

/// The shortest pause that is a person's, not a browser's.
const PAUSE_MS: f64 = 400.0;
/// Longest wait before a step; longer pauses are interruptions.
const LONGEST_MS: f64 = 300_000.0;
/// Most requests of a step.
const MOST: usize = 200;

/// Headers that a browser or the engine sends by itself, or that describe the browser's cache.
const DROPPED: [&str; 28] = [
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-length",
    "cookie",
    "dnt",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "origin",
    "pragma",
    "priority",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "referer",
    "save-data",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
];

/// The request, without captures.
pub(super) fn request(one: &Recorded, server: &str, said: &mut Vec<String>) -> Request {
    let sent = &one.entry.request;
    let TypedBody { body, mut kind } = body::of(one, said);
    let is_safe = matches!(sent.method.as_str(), "GET" | "HEAD" | "OPTIONS");
    let mut headers = Vec::new();
    let mut basic_auth = None;
    for Pair { name, value } in &sent.headers {
        let lower = name.to_ascii_lowercase();
        if lower == "authorization"
            && let Some((user, password)) = basic(value)
        {
            basic_auth = Some((Text::literal(&user), Text::literal(&password)));
            continue;
        }
        let is_odd = !is_header(name) || value.chars().any(char::is_control);
        let is_twice = headers
            .iter()
            .any(|(other, _): &(String, _)| other.eq_ignore_ascii_case(name));
        if !is_safe && lower == "origin" && *value == one.server() {
            headers.push((name.clone(), Text::code(ORIGIN)));
            continue;
        }
        // Servers use it to distinguish requests of their own pages from others.
        let is_site = !is_safe && lower == "sec-fetch-site";
        let is_dropped =
            DROPPED.contains(&lower.as_str()) || (lower.starts_with("sec-") && !is_site);
        let is_usual = lower == "accept" && (value.contains("*/*") || value.contains("text/html"));
        if is_odd || is_twice || is_dropped || is_usual {
            continue;
        }
        if lower == "content-type" {
            if let Some(kind) = kind.take() {
                headers.push((name.clone(), Text::literal(&kind)));
            }
            continue;
        }
        headers.push((name.clone(), Text::literal(value)));
    }
    if let Some(kind) = kind {
        headers.push(("Content-Type".to_owned(), Text::literal(&kind)));
    }
    let status = one.entry.response.status;
    let status = u16::try_from(status).unwrap_or(200);
    let is_fine = (200..300).contains(&status) || status == 304 || !(100..600).contains(&status);
    Request {
        method: sent.method.clone(),
        target: Text::literal(&target(one, server)),
        headers,
        body,
        basic_auth,
        expect: (!is_fine).then_some(status),
        captures: Vec::new(),
    }
}

/// A path, or an absolute URL for another server than the first.
fn target(one: &Recorded, server: &str) -> String {
    let url = &one.url;
    let query = url
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    let target = format!("{}{query}", url.path());
    match one.server() == server {
        true => target,
        false => format!("{}{target}", one.server()),
    }
}

fn is_header(name: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Name and password of `Basic …`.
fn basic(value: &str) -> Option<(String, String)> {
    let bytes = base64(value.strip_prefix("Basic ")?)?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Replaces typed secrets with expressions, wherever they occur.
pub(super) fn hide_secrets(requests: &mut [Request], secrets: &mut Secrets) {
    for request in requests.iter_mut() {
        if let Some((_, password)) = &mut request.basic_auth {
            hide("password", password, "", secrets);
        }
        for (name, value) in &mut request.headers {
            if looks_secret(name) {
                let scheme = value.as_literal().and_then(|text| text.split_once(' '));
                let scheme = scheme.map_or(String::new(), |(scheme, _)| format!("{scheme} "));
                hide(name, value, &scheme, secrets);
            }
        }
        match &mut request.body {
            Body::Form(fields) => {
                for (name, value) in fields.iter_mut().filter(|(name, _)| looks_secret(name)) {
                    hide(name, value, "", secrets);
                }
            }
            Body::Json(json) => json.leaves("", &mut |key, leaf| {
                if let Json::Text(text) = leaf
                    && looks_secret(key)
                {
                    hide(key, text, "", secrets);
                }
            }),
            Body::None | Body::Text(_) | Body::Bytes(_) => {}
        }
        hide_in_query(request, secrets);
        let parts = atoms(request)
            .into_iter()
            .filter(|atom| matches!(atom.place, Position::Part | Position::Field));
        for part in parts.filter(|part| looks_secret(&part.name)) {
            let code = secrets.code(&part.name, &part.value);
            put(request, &part, &code);
        }
    }
    let found = secrets.values();
    for request in requests {
        for (value, code) in &found {
            everywhere(request, &mut |text| text.replace(value, code));
        }
    }
}

fn hide(name: &str, text: &mut Text, before: &str, secrets: &mut Secrets) {
    let Some(value) = text
        .as_literal()
        .map(|text| text[before.len()..].to_owned())
    else {
        return;
    };
    if !value.is_empty() {
        *text = Text::with_code(before, &secrets.code(name, &value));
    }
}

fn hide_in_query(request: &mut Request, secrets: &mut Secrets) {
    let target = request.target.with_holes();
    let Some((_, query)) = target.split_once('?') else {
        return;
    };
    for pair in query.split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && looks_secret(name)
            && !value.is_empty()
            && !value.contains(HOLE)
        {
            let code = secrets.code(name, value);
            request.target.replace_between(value, &code, "&=");
        }
    }
}

fn everywhere(request: &mut Request, act: &mut dyn FnMut(&mut Text)) {
    act(&mut request.target);
    request.headers.iter_mut().for_each(|(_, value)| act(value));
    if let Some((name, password)) = &mut request.basic_auth {
        act(name);
        act(password);
    }
    match &mut request.body {
        Body::Form(fields) => fields.iter_mut().for_each(|(_, value)| act(value)),
        Body::Json(json) => json.leaves("", &mut |_, leaf| {
            if let Json::Text(text) = leaf {
                act(text);
            }
        }),
        Body::Text(text) => act(text),
        Body::None | Body::Bytes(_) => {}
    }
}

/// Steps: each starts with a page, or after a pause.
pub(super) fn steps(kept: &[Recorded], requests: Vec<Request>, mut sets: Sets) -> Vec<Step> {
    let mut names = Names::default();
    let mut steps: Vec<Step> = Vec::new();
    let mut busy_until = 0.0_f64;
    for (at, (one, request)) in kept.iter().zip(requests).enumerate() {
        let pause = one.begins - busy_until;
        let set = sets.remove(&at).unwrap_or_default();
        let is_redirected = at > 0 && (300..400).contains(&kept[at - 1].entry.response.status);
        let is_page = one.entry.kind == "document" && !is_redirected;
        let goes_on = steps.last().is_some_and(|step| step.requests.len() < MOST);
        // Draws from a list precede the step.
        if !goes_on || is_page || pause >= PAUSE_MS || !set.is_empty() {
            let ms = pause.min(LONGEST_MS);
            let has_wait = at > 0 && pause >= PAUSE_MS;
            steps.push(Step {
                name: names.step(&name(one, &request)),
                wait: match has_wait {
                    true => Wait::About(Duration::from_secs_f64(ms / 1e3)),
                    false => Wait::None,
                },
                set,
                requests: vec![request],
            });
        } else if let Some(step) = steps.last_mut() {
            step.requests.push(request);
        }
        busy_until = busy_until.max(one.ends);
    }
    steps
}

/// Method and path, without the parts that differ by user.
fn name(one: &Recorded, request: &Request) -> String {
    let method = &request.method;
    match request.target.as_literal() {
        Some(target) => {
            let path = target.split(['?', '#']).next().unwrap_or_default();
            format!("{method} {path}")
        }
        None => {
            let shown = one.url.path().split('/').map(|segment| {
                match segment.bytes().any(|b| b.is_ascii_digit()) || segment.len() >= 24 {
                    true => "…",
                    false => segment,
                }
            });
            format!("{method} {}", shown.collect::<Vec<_>>().join("/"))
        }
    }
}
