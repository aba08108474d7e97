//! The cookies of one user, as small as a load generator needs them: host-only, in memory.
//!
//! Follows RFC 6265 where it matters to a session: path, `Secure`, and removal by `Max-Age` or
//! `Expires`. It knows neither connections nor users.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use crate::clock::unix_seconds;
use lab_workload::HeldChallenge;

/// The maximum number of cookies of a user, as in Chromium for one domain. A further cookie evicts the oldest.
const MAX_COOKIES: usize = 180;
/// The maximum length of name and value; longer cookies are ignored.
const MAX_COOKIE_BYTES: usize = 4096;

/// One user's cookies and Digest challenge. Allocates nothing for a user without either.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: OnceCell<Rc<RefCell<Stored>>>,
}

/// Cookies that the server set, in the order in which they are sent: longer paths first, then the older one
/// (RFC 6265, section 5.4).
#[derive(Debug, Default)]
struct Stored {
    list: Vec<Cookie>,
    /// How many were ever stored.
    created: u32,
    /// The challenge that the user answers, if the server uses HTTP Digest.
    challenge: Option<Box<HeldChallenge>>,
}

/// A cookie that the workload sets, rendered for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RenderedCookie {
    /// `name=value`.
    pub(crate) pair: Box<str>,
    /// A cookie of the same name from the server replaces it.
    pub(crate) is_default: bool,
}

impl RenderedCookie {
    pub(crate) fn name(&self) -> &str {
        self.pair.split('=').next().unwrap_or_default()
    }
}

/// The outcome of a `Set-Cookie`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetCookie<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its value.
    pub(crate) value: &'a str,
    /// Whether an older cookie was removed to make room.
    pub(crate) has_evicted: bool,
}

#[derive(Debug)]
struct Cookie {
    /// `name=value`.
    pair: Box<str>,
    name: u32,
    /// Its number among all stored cookies; a cookie that is set again keeps it.
    created: u32,
    path: Box<str>,
    secure: bool,
    /// Seconds since 1970; `None` for the length of the session.
    expires: Option<i64>,
}

impl Cookie {
    fn name(&self) -> &str {
        &self.pair[..self.name as usize]
    }

    fn matches(&self, secure: bool, path: &str) -> bool {
        (secure || !self.secure) && path_matches(&self.path, path)
    }
}

impl Jar {
    /// Returns a jar that shares these cookies, for another connection of the same user.
    pub(crate) fn share(&self) -> Self {
        let cookies = OnceCell::from(Rc::clone(self.cookies.get_or_init(Rc::default)));
        Self { cookies }
    }

    /// Removes all cookies.
    pub(crate) fn clear(&self) {
        if let Some(stored) = self.cookies.get() {
            stored.borrow_mut().list.clear();
        }
    }

    /// Calls `make` with the challenge that the user answers, if there is one.
    pub(crate) fn answer<R>(&self, make: impl FnOnce(Option<&mut HeldChallenge>) -> R) -> R {
        match self.cookies.get() {
            Some(stored) => make(stored.borrow_mut().challenge.as_deref_mut()),
            None => make(None),
        }
    }

    /// Records whether the server refused the credentials of a request, and the challenge that the user answers next.
    /// Returns true if there is one.
    pub(crate) fn refused(
        &self,
        (is_refused, mut challenge): (bool, Option<Box<HeldChallenge>>),
    ) -> bool {
        let is_challenged = challenge.is_some();
        if is_challenged || is_refused && self.cookies.get().is_some() {
            let mut stored = self.cookies.get_or_init(Rc::default).borrow_mut();
            if let (Some(new), Some(old)) = (&mut challenge, &stored.challenge) {
                new.go_on_from(old);
            }
            stored.challenge = challenge;
        }
        is_challenged
    }

    /// Takes a `Set-Cookie` value from a response to a request for `path` on `host`. Returns the cookie's name and
    /// value, also if the cookie is removed or for another host.
    pub(crate) fn store<'a>(
        &self,
        value: &'a str,
        host: &str,
        path: &str,
    ) -> Option<SetCookie<'a>> {
        let mut parts = value.split(';');
        let pair = parts.next()?.trim();
        let (name, text) = pair.split_once('=')?;
        let (name, text) = (name.trim(), text.trim());
        let printable = |s: &str| s.bytes().all(|b| b >= 0x20 && b != 0x7f);
        if name.is_empty() || pair.len() > MAX_COOKIE_BYTES || !printable(pair) {
            return None;
        }
        let attributes = Attributes::parse(parts);
        if attributes
            .domain
            .is_some_and(|domain| !domain_matches(host, domain))
        {
            return Some(SetCookie {
                name,
                value: text,
                has_evicted: false,
            });
        }
        let cookie = Cookie {
            pair: format!("{name}={text}").into(),
            name: name.len() as u32,
            created: 0,
            path: attributes.path.unwrap_or_else(|| default_path(path)).into(),
            secure: attributes.secure,
            expires: attributes.expires,
        };
        let stored = self.cookies.get_or_init(Rc::default);
        let has_evicted = stored.borrow_mut().put(cookie);
        Some(SetCookie {
            name,
            value: text,
            has_evicted,
        })
    }

    /// Appends `Cookie: …` with its line end, if there is any cookie for this request: those of the server, and the
    /// workload's `own` as if they had been set first, for `/`.
    pub(crate) fn write(&self, secure: bool, path: &str, own: &[RenderedCookie], out: &mut String) {
        let Some(stored) = self.cookies.get() else {
            return write_all(own.iter().map(|cookie| &*cookie.pair), out);
        };
        let mut stored = stored.borrow_mut();
        stored.expire();
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let (deeper, others) = stored
            .list
            .split_at(stored.list.partition_point(|cookie| cookie.path.len() > 1));
        let is_replaced = |cookie: &Cookie| {
            let same = |own: &RenderedCookie| !own.is_default && own.name() == cookie.name();
            own.iter().any(same)
        };
        let sent = |cookie: &&Cookie| cookie.matches(secure, path) && !is_replaced(cookie);
        let is_sent = |own: &&RenderedCookie| {
            let same =
                |cookie: &Cookie| cookie.name() == own.name() && cookie.matches(secure, path);
            !own.is_default || !stored.list.iter().any(same)
        };
        let deeper = deeper.iter().filter(sent).map(|cookie| &*cookie.pair);
        let own = own.iter().filter(is_sent).map(|cookie| &*cookie.pair);
        let others = others.iter().filter(sent).map(|cookie| &*cookie.pair);
        write_all(deeper.chain(own).chain(others), out);
    }
}

/// Appends the workload's cookies of one request to a server outside the system.
pub(crate) fn write_to_other(own: &[RenderedCookie], out: &mut String) {
    let own = own.iter().filter(|cookie| !cookie.is_default);
    write_all(own.map(|cookie| &*cookie.pair), out);
}

fn write_all<'a>(pairs: impl Iterator<Item = &'a str>, out: &mut String) {
    let mut lead = "Cookie: ";
    for pair in pairs {
        out.push_str(lead);
        out.push_str(pair);
        lead = "; ";
    }
    if lead == "; " {
        out.push_str("\r\n");
    }
}

impl Stored {
    /// Stores a cookie, or removes the one that it expires. Returns true if it evicted the oldest one.
    fn put(&mut self, mut cookie: Cookie) -> bool {
        let same = |c: &Cookie| c.name() == cookie.name() && c.path == cookie.path;
        let before = self.list.iter().position(same);
        let is_removed = cookie.expires.is_some_and(|at| at <= unix_seconds());
        match before {
            Some(at) if is_removed => {
                self.list.remove(at);
                return false;
            }
            Some(at) => {
                cookie.created = self.list[at].created;
                self.list[at] = cookie;
                return false;
            }
            None if is_removed => return false,
            None => {}
        }
        self.expire();
        let evicts = self.list.len() >= MAX_COOKIES;
        if evicts {
            let oldest = (0..self.list.len()).min_by_key(|at| self.list[*at].created);
            if let Some(at) = oldest {
                self.list.remove(at);
            }
        }
        cookie.created = self.created;
        self.created = self.created.saturating_add(1);
        let longer = |c: &Cookie| c.path.len() >= cookie.path.len();
        let at = self.list.partition_point(longer);
        self.list.insert(at, cookie);
        self.list.shrink_to_fit();
        evicts
    }

    fn expire(&mut self) {
        if self.list.iter().any(|cookie| cookie.expires.is_some()) {
            let now = unix_seconds();
            let lives = |cookie: &Cookie| cookie.expires.is_none_or(|at| at > now);
            self.list.retain(lives);
        }
    }
}

#[derive(Default)]
struct Attributes<'a> {
    path: Option<&'a str>,
    domain: Option<&'a str>,
    secure: bool,
    expires: Option<i64>,
}

impl<'a> Attributes<'a> {
    fn parse(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        let mut by_age = false;
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim(), value.trim());
            if name.eq_ignore_ascii_case("path") {
                found.path = value.starts_with('/').then_some(value);
            } else if name.eq_ignore_ascii_case("domain") {
                found.domain = Some(value.trim_start_matches('.')).filter(|d| !d.is_empty());
            } else if name.eq_ignore_ascii_case("secure") {
                found.secure = true;
            } else if name.eq_ignore_ascii_case("max-age") {
                if let Ok(age) = value.parse::<i64>() {
                    by_age = true;
                    found.expires = Some(if age <= 0 {
                        0
                    } else {
                        unix_seconds().saturating_add(age)
                    });
                }
            } else if name.eq_ignore_ascii_case("expires") && !by_age {
                found.expires = date(value).or(found.expires);
            }
        }
        found
    }
}

fn domain_matches(host: &str, domain: &str) -> bool {
    let Some(at) = host.len().checked_sub(domain.len()) else {
        return false;
    };
    host.is_char_boundary(at)
        && host[at..].eq_ignore_ascii_case(domain)
        && (at == 0 || host.as_bytes()[at - 1] == b'.')
}

fn path_matches(cookie: &str, path: &str) -> bool {
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

/// Returns the folder of the request's path (RFC 6265, section 5.1.4).
fn default_path(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    match path.rfind('/') {
        Some(at) if at > 0 && path.starts_with('/') => &path[..at],
        _ => "/",
    }
}

/// Parses a date in any of the forms that servers write in headers, as RFC 6265, section 5.1.1, parses a cookie's.
/// Returns seconds since 1970.
pub(super) fn date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':') {
        let number = token.parse::<i16>().ok().filter(|n| *n >= 0);
        if time.is_none() && token.contains(':') {
            time = clock_time(token);
        } else if let (None, Some(n), 1..=2) = (day, number, token.len()) {
            day = Some(n);
        } else if let (None, Some(n), 2 | 4) = (year, number, token.len()) {
            year = Some(match n {
                0..=69 if token.len() == 2 => n + 2000,
                70..=99 if token.len() == 2 => n + 1900,
                _ => n,
            });
        } else if let (None, Some(name)) = (month, token.get(..3)) {
            month = MONTHS
                .iter()
                .position(|m| name.eq_ignore_ascii_case(m))
                .map(|m| m as i8 + 1);
        }
    }
    let (hour, minute, second) = time?;
    let day = i8::try_from(day?).ok()?;
    let moment = jiff::civil::DateTime::new(year?, month?, day, hour, minute, second, 0).ok()?;
    let moment = moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(moment.timestamp().as_second())
}

fn clock_time(token: &str) -> Option<(i8, i8, i8)> {
    let mut parts = token.split(':').map(|part| part.parse::<i8>().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests;
