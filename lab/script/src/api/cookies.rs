//! What is known of a user's cookies, for scripts that read them. The lab's client keeps those that are sent.

use url::Url;

use crate::turn::Cookie;

/// The most cookies of a jar; further ones replace the oldest.
const MOST: usize = 1000;

/// The cookies of a jar, as far as answers and the script have shown them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// The cookies that are sent to an address, those of the longest path first (RFC 6265, 5.4).
    pub(crate) fn of(&self, url: &Url, now_ms: f64) -> Vec<&Cookie> {
        let mut found: Vec<&Cookie> = self
            .cookies
            .iter()
            .filter(|cookie| {
                sent_to(cookie, url) && cookie.expires_ms.is_none_or(|end| end > now_ms)
            })
            .collect();
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        found
    }

    /// Puts a cookie in place of the one with its name, domain, and path; one whose life is over only removes that.
    pub(crate) fn put(&mut self, cookie: Cookie, now_ms: f64) {
        self.cookies.retain(|old| {
            (&old.name, &old.domain, &old.path) != (&cookie.name, &cookie.domain, &cookie.path)
        });
        let is_over = cookie.expires_ms.is_some_and(|end| end <= now_ms);
        if cookie.max_age.map_or(is_over, |age| age <= 0) {
            return;
        }
        if self.cookies.len() == MOST {
            self.cookies.remove(0);
        }
        self.cookies.push(cookie);
    }

    /// Removes the cookies that would be sent to an address, or one of them, and returns them.
    pub(crate) fn remove(&mut self, url: &Url, name: Option<&str>) -> Vec<Cookie> {
        let (gone, kept) = std::mem::take(&mut self.cookies)
            .into_iter()
            .partition(|cookie| {
                sent_to(cookie, url) && name.is_none_or(|name| name == cookie.name)
            });
        self.cookies = kept;
        gone
    }
}

/// Makes a cookie as a script or a header sets it, for an address.
pub(crate) fn cookie_for(url: &Url, name: &str, value: &str) -> Cookie {
    Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: url.host_str().unwrap_or_default().to_owned(),
        path: default_path(url),
        ..Cookie::default()
    }
}

/// Reads a `Set-Cookie` header (RFC 6265, 5.2).
pub(crate) fn read(header: &str, url: Option<&Url>) -> Option<Cookie> {
    let mut parts = header.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let value = value.trim();
    let mut cookie = match url {
        Some(url) => cookie_for(url, name, value),
        None => Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            ..Cookie::default()
        },
    };
    for part in parts.take(32) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "domain" if !value.is_empty() => {
                value
                    .strip_prefix('.')
                    .unwrap_or(value)
                    .to_ascii_lowercase()
                    .clone_into(&mut cookie.domain);
            }
            "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
            "expires" => cookie.expires_ms = date(value),
            "max-age" => cookie.max_age = value.parse().ok(),
            "secure" => cookie.secure = true,
            "httponly" => cookie.http_only = true,
            _ => {}
        }
    }
    Some(cookie)
}

/// Reads a date of a header or of a script: `Wed, 21 Oct 2026 07:28:00 GMT`, with hyphens, or as in RFC 3339.
pub(crate) fn date(text: &str) -> Option<f64> {
    use jiff::fmt::rfc2822::DateTimeParser;
    let spaced = text
        .replace('-', " ")
        .replace("GMT", "+0000")
        .replace("UTC", "+0000");
    let moment = DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(&spaced)
        .ok()
        .or_else(|| text.parse::<jiff::Timestamp>().ok())?;
    Some(moment.as_millisecond() as f64)
}

fn default_path(url: &Url) -> String {
    let path = url.path();
    match path.rfind('/') {
        Some(0) | None => "/".to_owned(),
        Some(end) => path[..end].to_owned(),
    }
}

fn sent_to(cookie: &Cookie, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let domain = cookie.domain.as_str();
    let same_site = host.eq_ignore_ascii_case(domain)
        || host.len() > domain.len()
            && host.as_bytes()[host.len() - domain.len() - 1] == b'.'
            && host.is_char_boundary(host.len() - domain.len())
            && host[host.len() - domain.len()..].eq_ignore_ascii_case(domain);
    let path = url.path();
    let below = path
        .strip_prefix(cookie.path.as_str())
        .is_some_and(|rest| rest.is_empty() || cookie.path.ends_with('/') || rest.starts_with('/'));
    let path_fits = cookie.path.is_empty() || below;
    same_site && path_fits && (!cookie.secure || matches!(url.scheme(), "https" | "wss"))
}
