//! Checks of request headers and cookie names.

/// Returns what is wrong with a request's header, and how to fix it.
#[must_use]
pub fn header_problem(name: &str, value: &str) -> Option<(String, &'static str)> {
    let lower = name.to_ascii_lowercase();
    let is_known = ["close", "keep-alive"].contains(&&*value.to_ascii_lowercase());
    let (why, help) = match lower.as_str() {
        "content-length" | "transfer-encoding" => ("is the driver's own header", "leave it out"),
        "connection" if !is_known => ("is `close` or `keep-alive`", "write one of these"),
        "expect" => ("is not supported: bodies are sent at once", "leave it out"),
        "upgrade" => (
            "is of another protocol",
            "say `protocol: websocket`, or `http: 2`",
        ),
        _ if http::HeaderName::from_bytes(lower.as_bytes()).is_ok() => return None,
        _ => (
            "is not a header's name",
            "write letters, digits, and hyphens",
        ),
    };
    Some((format!("`{name}` {why}"), help))
}

pub(super) fn is_cookie_name(name: &str) -> bool {
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && !"=;".contains(c);
    !name.is_empty() && name.chars().all(fits)
}

#[cfg(test)]
mod tests;
