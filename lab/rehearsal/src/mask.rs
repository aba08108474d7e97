//! Masks secrets: detects their names, and removes their values from every text.
//!
//! A value is learnt by its name (a header, a field of a form or of JSON, a cookie), and is masked wherever it occurs,
//! also in later messages. A secret that a server writes under a harmless name before it was sent under a telling one
//! is not detected.

use lab_workload::{Encoding, looks_secret};
use serde_json::Value;

use crate::model::{Request, Response};

/// Replaces a secret.
pub(crate) const MASK: &str = "***";
/// Shorter values are only masked at their place: elsewhere they would match unrelated text.
const LEAST: usize = 4;
/// Deepest JSON that is searched.
const DEPTH: usize = 64;

/// Returns true if a name is that of a secret, or of a session, which is equivalent.
pub(crate) fn is_telling(name: &str) -> bool {
    looks_secret(name) || name.to_ascii_lowercase().contains("session")
}

/// Known secrets.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    shown: bool,
    /// Headers with signatures, in lower case.
    signed: Vec<String>,
    /// Longest first, so that a part doesn't break the whole.
    known: Vec<String>,
}

impl Secrets {
    /// Masks nothing.
    pub(crate) fn shown() -> Self {
        Self {
            shown: true,
            ..Self::default()
        }
    }

    /// Makes headers of these names, in lower case, secret.
    pub(crate) fn signed_by(&mut self, headers: Vec<String>) {
        self.signed.extend(headers);
    }

    pub(crate) fn are_shown(&self) -> bool {
        self.shown
    }

    /// Adds a secret, with its encodings in forms, URLs, and JSON.
    pub(crate) fn learn(&mut self, value: &str) {
        let value = value.trim();
        if value.chars().count() < LEAST || self.shown {
            return;
        }
        let form: String = value.bytes().map(form_encoded).collect();
        let url = form.replace('+', "%20");
        let json = serde_json::to_string(value).unwrap_or_default();
        let json = json
            .get(1..json.len().saturating_sub(1))
            .unwrap_or_default()
            .to_owned();
        for one in [value.to_owned(), form, url, json] {
            if !one.is_empty() && one != MASK && !self.known.contains(&one) {
                self.known.push(one);
            }
        }
        self.known.sort_by_key(|one| std::cmp::Reverse(one.len()));
    }

    /// The text without known secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for one in &self.known {
            if text.contains(one.as_str()) {
                text = text.replace(one.as_str(), MASK);
            }
        }
        text
    }

    fn masked_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.known.is_empty() {
            return bytes;
        }
        // Binary data contains no learnt secret.
        match String::from_utf8(bytes) {
            Ok(text) => self.masked(&text).into_bytes(),
            Err(binary) => binary.into_bytes(),
        }
    }

    /// Learns from a request and masks it.
    pub(crate) fn request(&mut self, mut request: Request) -> Request {
        if self.shown {
            return request;
        }
        self.learn_headers(&request.headers);
        if let Some((_, query)) = request.target.split_once('?') {
            self.learn_form(query);
        }
        self.learn_body(&request.body);
        request.target = self.masked(&request.target);
        self.mask_headers(&mut request.headers);
        request.body = self.masked_bytes(std::mem::take(&mut request.body));
        request
    }

    /// Learns from a response and masks it.
    pub(crate) fn response(&mut self, mut response: Response) -> Response {
        if self.shown {
            return response;
        }
        self.learn_headers(&response.headers);
        self.learn_body(&response.body);
        self.mask_headers(&mut response.headers);
        response.body = self.masked_bytes(std::mem::take(&mut response.body));
        response
    }

    fn learn_headers(&mut self, headers: &[(String, String)]) {
        for (name, value) in headers {
            match name.to_ascii_lowercase().as_str() {
                "cookie" => value.split(';').for_each(|pair| self.learn_pair(pair)),
                "set-cookie" => self.learn_pair(value.split(';').next().unwrap_or_default()),
                "authorization" | "proxy-authorization" => {
                    let secret = value
                        .split_once(' ')
                        .map_or(value.as_str(), |(_, rest)| rest);
                    self.learn(secret);
                    self.learn_basic(secret);
                }
                name if is_telling(name) || self.signed.iter().any(|one| one == name) => {
                    self.learn(value);
                }
                _ => {}
            }
        }
    }

    /// Learns the password of HTTP Basic, raw and without the form encoding of OAuth 2 (RFC 6749, section 2.3.1).
    fn learn_basic(&mut self, credentials: &str) {
        let bytes = Encoding::Base64.decode(credentials.as_bytes());
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some((_, password)) = text.as_deref().and_then(|text| text.split_once(':')) {
            self.learn(password);
            self.learn(&form_decoded(password));
        }
    }

    /// Learns a cookie, whatever its name.
    fn learn_pair(&mut self, pair: &str) {
        if let Some((_, value)) = pair.split_once('=') {
            self.learn(value.trim_matches('"'));
        }
    }

    fn learn_body(&mut self, body: &[u8]) {
        let Ok(text) = std::str::from_utf8(body) else {
            return;
        };
        match serde_json::from_str::<Value>(text) {
            Ok(value) => self.learn_json(&value, DEPTH),
            Err(_) if text.len() < 1 << 16 => self.learn_form(text),
            Err(_) => {}
        }
    }

    fn learn_form(&mut self, text: &str) {
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            if name.len() < 100 && is_telling(name) {
                self.learn(&form_decoded(value));
                self.learn(value);
            }
        }
    }

    fn learn_json(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(fields) if depth > 0 => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if is_telling(name) => self.learn(text),
                        other => self.learn_json(other, depth - 1),
                    }
                }
            }
            Value::Array(items) if depth > 0 => {
                items
                    .iter()
                    .for_each(|item| self.learn_json(item, depth - 1));
            }
            _ => {}
        }
    }

    fn mask_headers(&self, headers: &mut [(String, String)]) {
        for (name, value) in headers {
            let short = is_telling(name) && value.len() < LEAST;
            *value = match short {
                true => MASK.to_owned(),
                false => self.masked(value),
            };
        }
    }
}

fn form_encoded(byte: u8) -> String {
    match byte {
        b' ' => "+".to_owned(),
        b if b.is_ascii_alphanumeric() || b"-._~*".contains(&b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    }
}

fn form_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, decoded) {
            (b'+', _) => bytes.push(b' '),
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_wherever_it_turns_up() {
        let mut secrets = Secrets::default();
        let request = secrets.request(Request {
            method: "POST".to_owned(),
            target: "/login?api_key=k-12345".to_owned(),
            headers: vec![
                ("Authorization".to_owned(), "Bearer abc.def".to_owned()),
                // `ada:p%26ssword`
                (
                    "Proxy-Authorization".to_owned(),
                    "Basic YWRhOnAlMjZzc3dvcmQ=".to_owned(),
                ),
                ("Cookie".to_owned(), "sid=s3cr3t; theme=dark".to_owned()),
                ("X-Api-Key".to_owned(), "xyz".to_owned()),
            ],
            body: b"user=ada&password=horse+battery%21".to_vec(),
        });
        assert_eq!(request.target, format!("/login?api_key={MASK}"));
        assert_eq!(request.headers[0].1, format!("Bearer {MASK}"));
        assert_eq!(request.headers[1].1, format!("Basic {MASK}"));
        assert_eq!(request.headers[2].1, format!("sid={MASK}; theme={MASK}"));
        assert_eq!(request.headers[3].1, MASK);
        assert_eq!(
            secrets.masked("p&ssword, p%26ssword"),
            format!("{MASK}, {MASK}")
        );
        assert_eq!(
            request.body,
            format!("user=ada&password={MASK}").into_bytes()
        );
        let response = secrets.response(Response {
            body: br#"{"token": "t-\"quoted\"", "you": "horse battery!"}"#.to_vec(),
            ..Response::default()
        });
        let body = String::from_utf8(response.body).unwrap();
        assert_eq!(body, format!(r#"{{"token": "{MASK}", "you": "{MASK}"}}"#));
        assert_eq!(
            secrets.masked("/x?t=t-%22quoted%22"),
            format!("/x?t={MASK}")
        );
    }

    #[test]
    fn who_asks_for_secrets_gets_them() {
        let mut secrets = Secrets::shown();
        let request = Request {
            headers: vec![("Authorization".to_owned(), "Bearer abcdef".to_owned())],
            ..Request::default()
        };
        assert_eq!(secrets.request(request.clone()), request);
    }
}
