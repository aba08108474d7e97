//! Lines of JSON: the fields of Caddy, Traefik, Envoy, and nginx, or user-defined ones.

use std::borrow::Cow;

use serde_json::Value;

use super::entry::{Entry, Point, Skip, number};
use super::moment::{Moment, length};

/// Names of a field in the logs of common servers, the most reliable first. A dot selects a member or an entry.
const TIMES: &[(&str, Point)] = &[
    ("StartUTC", Point::Start),
    ("StartLocal", Point::Start),
    ("start_time", Point::Start),
    ("startTime", Point::Start),
    ("time_us", Point::Start),
    ("ts", Point::End),
    ("msec", Point::End),
    ("time_iso8601", Point::End),
    ("time_local", Point::End),
    ("@timestamp", Point::Unknown),
    ("timestamp", Point::Unknown),
    ("time", Point::Unknown),
];
const METHODS: &[&str] = &[
    "RequestMethod",
    "request.method",
    "request_method",
    "method",
    "verb",
];
const TARGETS: &[&str] = &[
    "RequestPath",
    "request.uri",
    "request_uri",
    "x_envoy_original_path",
    "uri",
    "url",
    "path",
];
const REQUESTS: &[&str] = &["request", "request_line"];
const HOSTS: &[&str] = &[
    "RequestHost",
    "request.host",
    "http_host",
    "host",
    "authority",
    "server_name",
];
const STATUSES: &[&str] = &[
    "DownstreamStatus",
    "status",
    "response_code",
    "status_code",
    "statusCode",
];
const BYTES: &[&str] = &[
    "DownstreamContentSize",
    "size",
    "body_bytes_sent",
    "bytes_sent",
    "bytes",
];
const CLIENTS: &[&str] = &[
    "ClientHost",
    "request.client_ip",
    "request.remote_ip",
    "remote_addr",
    "remote_ip",
    "client_ip",
    "downstream_remote_address",
];
const AGENTS: &[&str] = &[
    "request_User-Agent",
    "request.headers.User-Agent.0",
    "http_user_agent",
    "user_agent",
    "agent",
];
/// In seconds; not needed in logs whose time is the start.
const TOOK: &[&str] = &["request_time", "duration"];

/// Fields of `--fields`.
pub(super) const FIELDS: [&str; 9] = [
    "time", "method", "path", "host", "status", "bytes", "client", "agent", "took",
];

/// The member of a line for each field.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    named: Vec<(String, String)>,
}

impl Fields {
    /// `time=ts,path=request.uri`, one each.
    ///
    /// # Errors
    /// In words, when a field does not exist.
    pub(super) fn parse(named: &[(String, String)]) -> Result<Self, String> {
        match named.iter().find(|(name, _)| !FIELDS.contains(&&**name)) {
            Some((name, _)) => Err(format!(
                "there is no field `{name}`: it is one of {}",
                FIELDS.join(", ")
            )),
            None => Ok(Self {
                named: named.to_vec(),
            }),
        }
    }

    fn own(&self, field: &str) -> Option<&str> {
        let named = self.named.iter().find(|(name, _)| name == field);
        named.map(|(_, member)| &**member)
    }

    fn find(&self, line: &Value, field: &str, usual: &[&str]) -> Option<Cow<'static, [u8]>> {
        if let Some(member) = self.own(field) {
            return text(at(line, member)?);
        }
        usual.iter().find_map(|member| text(at(line, member)?))
    }

    /// The time, and the point of the request that it refers to.
    fn moment(&self, line: &Value) -> Option<(Cow<'static, [u8]>, Point)> {
        if let Some(member) = self.own("time") {
            let known = TIMES.iter().find(|(name, _)| *name == member);
            return Some((
                text(at(line, member)?)?,
                known.map_or(Point::Unknown, |one| one.1),
            ));
        }
        TIMES
            .iter()
            .find_map(|(member, point)| Some((text(at(line, member)?)?, *point)))
    }

    /// Parses a line, and returns the point that its time refers to.
    pub(super) fn entry(&self, line: &[u8]) -> Result<(Entry<'static>, Point), Skip> {
        let line: Value = serde_json::from_slice(line).map_err(|_| Skip::Format)?;
        if !line.is_object() {
            return Err(Skip::Format);
        }
        let (moment, point) = self.moment(&line).ok_or(Skip::Moment)?;
        // A user who names the duration wants it subtracted.
        let point = match self.own("took") {
            Some(_) if point == Point::Unknown => Point::End,
            _ => point,
        };
        let mut entry = Entry {
            moment: Some(Moment::any(&moment).ok_or(Skip::Moment)?),
            ..Entry::default()
        };
        let member = |field, usual| self.find(&line, field, usual);
        match (member("method", METHODS), member("path", TARGETS)) {
            (Some(method), Some(target)) => (entry.method, entry.target) = (method, target),
            _ => {
                let whole = member("request", REQUESTS).ok_or(Skip::Request)?;
                let mut read = Entry::default();
                if !read.set_request(&whole) {
                    return Err(Skip::Request);
                }
                entry.method = Cow::Owned(read.method.into_owned());
                entry.target = Cow::Owned(read.target.into_owned());
            }
        }
        entry.host = member("host", HOSTS).unwrap_or_default();
        entry.status = member("status", STATUSES).and_then(|found| number(&found));
        entry.bytes = member("bytes", BYTES).and_then(|found| number(&found));
        entry.client = member("client", CLIENTS).unwrap_or_default();
        entry.agent = member("agent", AGENTS);
        entry.took_us = member("took", TOOK).and_then(|took| length(&took, 6));
        Ok((entry, point))
    }
}

/// The member at a dotted path. A member whose own name has the dots takes precedence.
fn at<'v>(line: &'v Value, path: &str) -> Option<&'v Value> {
    if let Some(found) = line.get(path) {
        return Some(found);
    }
    let step = |value: &'v Value, name: &str| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    };
    path.split('.').try_fold(line, step)
}

fn text(value: &Value) -> Option<Cow<'static, [u8]>> {
    match value {
        Value::String(text) => Some(Cow::Owned(text.clone().into_bytes())),
        Value::Number(number) => {
            let mut text = number.to_string();
            // As `1e-6`.
            if let Some(value) = number.as_f64().filter(|_| text.contains('e')) {
                text = format!("{value:.9}");
            }
            Some(Cow::Owned(text.into_bytes()))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
