//! Formats of text lines: those of nginx (`log_format`) and Apache (`LogFormat`), and named common ones.

use std::borrow::Cow;

use super::entry::{Entry, Point, Skip, hex, number, unescaped};
use super::moment::{Moment, length};

/// Names of formats.
pub const FORMATS: [&str; 11] = [
    "common",
    "combined",
    "vhost_combined",
    "json",
    "caddy",
    "traefik",
    "envoy",
    "alb",
    "haproxy",
    "w3c",
    "gor",
];

/// The field of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Ignored,
    Client,
    /// A client's address and its port, as `10.0.1.2:33317`, `::1:33317`, or `unix:1`.
    Peer,
    Local,
    Iso,
    /// Since 1970; digits to µs.
    Epoch(usize),
    Request,
    /// The same with the escapes of HAProxy.
    HashedRequest,
    Method,
    Target,
    Path,
    Query,
    Status,
    Bytes,
    Agent,
    Host,
    /// Digits to µs.
    Took(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Field(Field),
}

/// A format of text lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    parts: Vec<Part>,
    pub(super) point: Point,
    /// True if lines may have more than the format.
    is_open: bool,
}

const COMMON: &str =
    "$remote_addr $_ $remote_user [$time_local] \"$request\" $status $body_bytes_sent";
const COMBINED: &str = "$remote_addr $_ $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                        \"$http_referer\" \"$http_user_agent\"";
const VHOST: &str = "$host $remote_addr $_ $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                     \"$http_referer\" \"$http_user_agent\"";
/// Of Amazon's Application Load Balancer, up to the time at which it received the request.
const ALB: &str = "$type $_ $elb $remote_addr $target $rt $tt $pt $status $target_status $in $bytes_sent \
                   \"$request\" \"$http_user_agent\" $cipher $protocol $group \"$trace\" \"$host\" \"$cert\" \
                   $priority $time_iso8601 ";
/// Envoy's default.
const ENVOY: &str = "[$time_iso8601] \"$request\" $status $flags $in $bytes_sent $duration $upstream \"$xff\" \
                     \"$http_user_agent\" \"$id\" \"$http_host\"";
/// HAProxy's `option httplog`. Captured headers are a part of `$queues`.
const HAPROXY: &str = "$client_and_port [$time_local] $frontend $backend/$server $tr/$tw/$tc/$tr/$active_ms $status \
                       $bytes_sent $cookie $set_cookie $end $open $queues \"$request\"";

impl Format {
    /// A format by its name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (text, point) = match name {
            "common" => (COMMON, Point::Unknown),
            "combined" => (COMBINED, Point::Unknown),
            "vhost_combined" => (VHOST, Point::Unknown),
            "alb" => (ALB, Point::Start),
            "envoy" => (ENVOY, Point::Start),
            "haproxy" => (HAPROXY, Point::Start),
            _ => return None,
        };
        let mut format = Self::nginx(text).ok()?;
        if name == "haproxy" {
            for part in &mut format.parts {
                if let Part::Field(field @ Field::Request) = part {
                    *field = Field::HashedRequest;
                }
            }
        }
        Some(Self {
            point,
            is_open: true,
            ..format
        })
    }

    /// Parses a format of the server's configuration.
    ///
    /// # Errors
    /// In words, when it is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match (text.contains('$'), text.contains('%')) {
            (true, _) => Self::nginx(text),
            (false, true) => Self::apache(text),
            (false, false) => Err(format!(
                "`{text}` is no format: write a name ({}), nginx's `log_format`, or Apache's `LogFormat`",
                FORMATS.join(", ")
            )),
        }
    }

    fn nginx(text: &str) -> Result<Self, String> {
        let mut parts = Parts::default();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            parts.literal(&rest[..at]);
            let after = &rest[at + 1..];
            let (name, behind) = match after.strip_prefix('{') {
                Some(inner) => inner
                    .split_once('}')
                    .ok_or_else(|| "`${` has no `}`".to_owned())?,
                None => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
                }
            };
            parts.field(variable(name))?;
            rest = behind;
        }
        parts.literal(rest);
        parts.format(Point::End)
    }

    fn apache(text: &str) -> Result<Self, String> {
        let text = text.replace("\\\"", "\"").replace("\\t", "\t");
        let mut parts = Parts::default();
        let mut rest = &*text;
        while let Some(at) = rest.find('%') {
            parts.literal(&rest[..at]);
            let after = &rest[at + 1..];
            let behind =
                after.trim_start_matches(|c: char| c.is_ascii_digit() || "!,<>".contains(c));
            let (argument, behind) = match behind.strip_prefix('{') {
                Some(inner) => inner
                    .split_once('}')
                    .ok_or_else(|| "`%{` has no `}`".to_owned())?,
                None => ("", behind),
            };
            let letters = if behind.starts_with('^') { 3 } else { 1 };
            let (code, behind) = behind
                .split_at_checked(letters)
                .ok_or_else(|| "the format ends with `%`".to_owned())?;
            match (code, argument) {
                ("%", _) => parts.literal("%"),
                ("t", "") => {
                    parts.literal("[");
                    parts.field(Field::Local)?;
                    parts.literal("]");
                }
                _ => parts.field(directive(code, argument)?)?,
            }
            rest = behind;
        }
        parts.literal(rest);
        let ends = text.contains("%{end:");
        parts.format(if ends { Point::End } else { Point::Start })
    }

    /// Returns true if lines have such a field.
    fn has(&self, field: impl Fn(Field) -> bool) -> bool {
        let is_it = |part: &Part| matches!(part, Part::Field(one) if field(*one));
        self.parts.iter().any(is_it)
    }

    /// Returns true if lines have the user agent.
    pub(super) fn has_agent(&self) -> bool {
        self.has(|field| field == Field::Agent)
    }

    /// Parses a line.
    pub(super) fn entry<'l>(&self, line: &'l [u8]) -> Result<Entry<'l>, Skip> {
        let mut entry = Entry::default();
        let (mut path, mut query) = (None, None);
        let mut rest = line;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let field = match part {
                Part::Literal(text) => {
                    rest = rest.strip_prefix(&text[..]).ok_or(Skip::Format)?;
                    continue;
                }
                Part::Field(field) => *field,
            };
            let end = match parts.peek() {
                Some(Part::Literal(text)) => end_of(rest, text).ok_or(Skip::Format)?,
                _ if self.is_open => rest.iter().position(|b| *b == b' ').unwrap_or(rest.len()),
                _ => rest.len(),
            };
            let (value, after) = rest.split_at(end);
            rest = after;
            match field {
                Field::Path => path = Some(value),
                Field::Query => query = Some(value),
                field => take(field, value, &mut entry)?,
            }
        }
        if !rest.is_empty() && !self.is_open {
            return Err(Skip::Format);
        }
        if let Some(path) = path.filter(|_| entry.target.is_empty()) {
            let mut target = unescaped(path).into_owned();
            let query = query.filter(|query| !query.is_empty() && *query != b"-");
            if let Some(query) = query {
                target.extend(if query.starts_with(b"?") {
                    &b""[..]
                } else {
                    b"?"
                });
                target.extend(&*unescaped(query));
            }
            entry.target = Cow::Owned(target);
        }
        Ok(entry)
    }
}

/// The end of a value before this text. A quote after a backslash is within the value.
fn end_of(text: &[u8], literal: &[u8]) -> Option<usize> {
    let first = *literal.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|b| *b == first)?;
        let slashes = text[..at].iter().rev().take_while(|b| **b == b'\\').count();
        let is_within = first == b'"' && slashes % 2 == 1;
        if text[at..].starts_with(literal) && !is_within {
            return Some(at);
        }
        from = at + 1;
    }
}

/// A target without the escapes of HAProxy, `#22`.
fn unhashed(text: &[u8]) -> Vec<u8> {
    let mut parts = text.split(|b| *b == b'#');
    let mut out = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let split = part.split_at_checked(2);
        match split.and_then(|(digits, rest)| Some((hex(digits)?, rest))) {
            Some((byte, rest)) => {
                out.push(byte);
                out.extend(rest);
            }
            None => {
                out.push(b'#');
                out.extend(part);
            }
        }
    }
    out
}

fn take<'l>(field: Field, value: &'l [u8], entry: &mut Entry<'l>) -> Result<(), Skip> {
    let moment = |moment: Option<Moment>| moment.map(Some).ok_or(Skip::Moment);
    let text = || match value {
        b"-" => Cow::Borrowed(&b""[..]),
        value => unescaped(value),
    };
    match field {
        Field::Ignored | Field::Path | Field::Query => {}
        Field::Client => entry.client = text(),
        Field::Peer => {
            let colon = value.iter().rposition(|b| *b == b':').ok_or(Skip::Format)?;
            let is_number = number::<u64>(&value[colon + 1..]).is_some();
            if !is_number || value.contains(&b' ') {
                return Err(Skip::Format);
            }
            entry.client = Cow::Borrowed(&value[..colon]);
        }
        Field::Local => entry.moment = moment(Moment::local(value))?,
        Field::Iso => entry.moment = moment(Moment::iso(value))?,
        Field::Epoch(digits) => entry.moment = moment(Moment::epoch(value, digits))?,
        Field::Request | Field::HashedRequest => {
            if !entry.set_request(value) {
                return Err(Skip::Request);
            }
            if let Cow::Borrowed(target) = entry.target {
                entry.target = unescaped(target);
            }
            if field == Field::HashedRequest {
                entry.target = Cow::Owned(unhashed(&entry.target));
            }
        }
        Field::Method => entry.method = text(),
        Field::Target => entry.target = text(),
        Field::Status => entry.status = number(value),
        Field::Bytes => entry.bytes = number(value),
        Field::Agent => entry.agent = Some(text()),
        Field::Host => entry.host = text(),
        Field::Took(digits) => entry.took_us = length(value, digits),
    }
    Ok(())
}

/// A variable of nginx.
fn variable(name: &str) -> Field {
    match name {
        "remote_addr" | "realip_remote_addr" => Field::Client,
        "client_and_port" => Field::Peer,
        "time_local" => Field::Local,
        "time_iso8601" => Field::Iso,
        "msec" => Field::Epoch(6),
        "request" => Field::Request,
        "request_method" => Field::Method,
        "request_uri" => Field::Target,
        "uri" | "document_uri" => Field::Path,
        "args" | "query_string" => Field::Query,
        "status" => Field::Status,
        "body_bytes_sent" | "bytes_sent" => Field::Bytes,
        "http_user_agent" => Field::Agent,
        "host" | "http_host" | "server_name" => Field::Host,
        "request_time" => Field::Took(6),
        "active_ms" => Field::Took(3),
        _ => Field::Ignored,
    }
}

/// A directive of Apache (mod_log_config).
fn directive(code: &str, argument: &str) -> Result<Field, String> {
    let is = |name: &str| argument.eq_ignore_ascii_case(name);
    Ok(match code {
        "h" | "a" => Field::Client,
        "t" => {
            let unit = argument
                .trim_start_matches("begin:")
                .trim_start_matches("end:");
            match unit {
                "sec" => Field::Epoch(6),
                "msec" => Field::Epoch(3),
                "usec" => Field::Epoch(0),
                "%Y-%m-%dT%H:%M:%S%z" | "%FT%T%z" => Field::Iso,
                _ => {
                    return Err(format!(
                        "the time `%{{{argument}}}t` is not read: write it as `%t` or `%{{usec}}t` in the log"
                    ));
                }
            }
        }
        "r" => Field::Request,
        "m" => Field::Method,
        "U" => Field::Path,
        "q" => Field::Query,
        "s" => Field::Status,
        "b" | "B" | "O" => Field::Bytes,
        "i" if is("user-agent") => Field::Agent,
        "i" if is("host") => Field::Host,
        "v" | "V" => Field::Host,
        "D" => Field::Took(0),
        "T" if argument == "ms" => Field::Took(3),
        "T" if argument == "us" => Field::Took(0),
        "T" => Field::Took(6),
        _ => Field::Ignored,
    })
}

#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn literal(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Literal(before)) => before.extend(text.bytes()),
            _ => self.0.push(Part::Literal(text.into())),
        }
    }

    fn field(&mut self, field: Field) -> Result<(), String> {
        if let Some(Part::Field(_)) = self.0.last() {
            return Err("two fields of the format have no text between them".to_owned());
        }
        self.0.push(Part::Field(field));
        Ok(())
    }

    fn format(self, point: Point) -> Result<Format, String> {
        let format = Format {
            parts: self.0,
            point,
            is_open: false,
        };
        let moment = |field| matches!(field, Field::Local | Field::Iso | Field::Epoch(_));
        let target = |field| {
            use Field::{HashedRequest, Path, Request, Target};
            matches!(field, Request | HashedRequest | Target | Path)
        };
        match (format.has(moment), format.has(target)) {
            (false, _) => Err("the format has no time (`$time_local`, `$msec`, `%t`)".to_owned()),
            (_, false) => Err("the format has no request (`$request`, `%r`)".to_owned()),
            _ => Ok(format),
        }
    }
}
