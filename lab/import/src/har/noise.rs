//! The requests of a recording that are no part of a measurement.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::read::Recorded;

/// A kind of requests that may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noise {
    /// Pictures, icons among them.
    Images,
    /// Fonts.
    Fonts,
    /// Video and audio.
    Media,
    /// Style sheets.
    Styles,
    /// Scripts.
    Scripts,
    /// Beacons, and requests that count visitors.
    Analytics,
}

impl Noise {
    /// The kinds skipped by default.
    pub const USUAL: [Self; 4] = [Self::Images, Self::Fonts, Self::Media, Self::Analytics];
    /// All kinds, by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("images", Self::Images),
        ("fonts", Self::Fonts),
        ("media", Self::Media),
        ("styles", Self::Styles),
        ("scripts", Self::Scripts),
        ("analytics", Self::Analytics),
    ];

    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, noise)| *noise == self);
        found.map_or("", |(name, _)| name)
    }
}

impl FromStr for Noise {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, noise)| *noise).ok_or(())
    }
}

/// Methods of browsers, calendars, and cache administrators.
const METHODS: [&str; 24] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "MKCALENDAR",
    "REPORT",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "QUERY",
    "PURGE",
    "BAN",
    "SEARCH",
    "LINK",
    "UNLINK",
    "ACL",
    "TRACE",
];

/// Parts of paths and hosts of visitor counters.
const COUNTERS: [&str; 14] = [
    "google-analytics",
    "googletagmanager",
    "/gtag/",
    "doubleclick",
    "matomo",
    "piwik",
    "plausible",
    "hotjar",
    "segment.io",
    "sentry",
    "/telemetry",
    "/beacon",
    "/csp-report",
    "/analytics",
];

/// Why a request is skipped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Host(String),
    Kind(Noise),
    Browser(&'static str),
}

/// The remaining requests, and a sentence for each reason to skip others.
pub(super) fn sift(
    all: Vec<Recorded>,
    hosts: &[String],
    without: &[Noise],
) -> (Vec<Recorded>, Vec<String>) {
    let own = all.iter().find(|one| is_page(one)).or(all.first());
    let own = own.map(Recorded::server).unwrap_or_default();
    let mut left_out: BTreeMap<Why, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    for one in all {
        match why(&one, (&own, hosts), without) {
            Some(why) => *left_out.entry(why).or_default() += 1,
            None => kept.push(one),
        }
    }
    let said = left_out.into_iter().map(|(why, count)| words(&why, count));
    (kept, said.collect())
}

fn is_page(one: &Recorded) -> bool {
    let is_html = one
        .answered("content-type")
        .is_some_and(|kind| kind.contains("html"));
    one.entry.kind == "document" || (one.entry.kind.is_empty() && is_html)
}

fn why(one: &Recorded, (own, hosts): (&str, &[String]), without: &[Noise]) -> Option<Why> {
    if let Some(browser) = browsers_own(one) {
        return Some(Why::Browser(browser));
    }
    let named = |host: &String| {
        let port = one.url.port_or_known_default().unwrap_or(0);
        one.url
            .host_str()
            .is_some_and(|own| *host == own || *host == format!("{own}:{port}"))
    };
    let is_kept = match hosts.is_empty() {
        true => one.server() == own,
        false => hosts.iter().any(named),
    };
    if !is_kept {
        return Some(Why::Host(one.url.host_str().unwrap_or_default().to_owned()));
    }
    kind(one)
        .filter(|kind| without.contains(kind))
        .map(Why::Kind)
}

/// Why a request was the browser's own, or was never sent, if so.
fn browsers_own(one: &Recorded) -> Option<&'static str> {
    let kind = one.entry.kind.as_str();
    if !METHODS.contains(&one.entry.request.method.as_str()) {
        return Some(
            "of a method that importing doesn't know; write it into the workload yourself",
        );
    }
    let is_socket = matches!(one.url.scheme(), "ws" | "wss") || kind == "websocket";
    let is_preflight = kind == "preflight"
        || (one.entry.request.method == "OPTIONS"
            && one.sent("access-control-request-method").is_some());
    if is_socket {
        return Some(match one.entry.messages {
            0 => "a WebSocket, without messages in the recording",
            _ => {
                "a WebSocket, whose messages the recording has but importing doesn't take: say them in a workload of \
                 their own (`protocol: websocket`)"
            }
        });
    }
    if is_preflight {
        return Some("a preflight, which browsers send by themselves");
    }
    if kind == "eventsource" {
        return Some("a stream of events, which has no end");
    }
    if one.entry.is_from_cache {
        return Some("answered from the browser's cache");
    }
    (one.entry.response.status < 100).then_some("cancelled, without an answer")
}

fn kind(one: &Recorded) -> Option<Noise> {
    let address = one.url.as_str().to_ascii_lowercase();
    if matches!(
        one.entry.kind.as_str(),
        "ping" | "beacon" | "csp-violation-report"
    ) || COUNTERS.iter().any(|part| address.contains(part))
    {
        return Some(Noise::Analytics);
    }
    let answered = one.answered("content-type").unwrap_or_default();
    let answered = answered.to_ascii_lowercase();
    match (one.entry.kind.as_str(), answered.as_str()) {
        ("image", _) => Some(Noise::Images),
        ("font", _) => Some(Noise::Fonts),
        ("media", _) => Some(Noise::Media),
        ("stylesheet", _) => Some(Noise::Styles),
        ("script", _) => Some(Noise::Scripts),
        (_, kind) if kind.starts_with("image/") => Some(Noise::Images),
        (_, kind) if kind.starts_with("font/") || kind.contains("woff") => Some(Noise::Fonts),
        (_, kind) if kind.starts_with("video/") || kind.starts_with("audio/") => Some(Noise::Media),
        (_, kind) if kind.starts_with("text/css") => Some(Noise::Styles),
        (_, kind) if kind.contains("javascript") => Some(Noise::Scripts),
        _ => None,
    }
}

/// Returns true if a request is for a part of a page, whose address a page names.
pub(super) fn is_part_of_page(one: &Recorded) -> bool {
    kind(one).is_some()
}

fn words(why: &Why, count: usize) -> String {
    let requests = if count == 1 { "request" } else { "requests" };
    match why {
        Why::Host(host) => {
            format!("{count} {requests} to {host} left out (--host {host} takes them)")
        }
        Why::Kind(noise) => {
            let name = noise.name();
            format!("{count} {requests} left out: {name} (--without says which kinds)")
        }
        Why::Browser(what) => format!("{count} {requests} left out: {what}"),
    }
}
