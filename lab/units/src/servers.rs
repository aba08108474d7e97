//! Servers in files: an address with a scheme and a port, the name in a certificate, or a bare address.

use std::net::IpAddr;

use crate::text_error::TextError;

/// Schemes of server URLs.
const SCHEMES: [&str; 19] = [
    "grpc",
    "grpcs",
    "ws",
    "wss",
    "http",
    "https",
    "tcp",
    "tls",
    "udp",
    "redis",
    "rediss",
    "mqtt",
    "mqtts",
    "smtp",
    "smtps",
    "imap",
    "imaps",
    "postgres",
    "postgresql",
];

/// Parses a server without a path; a trailing slash is removed.
///
/// # Errors
/// When the text is no address of a server, or has a path.
pub fn server(text: &str) -> Result<String, TextError> {
    let help =
        "write `http://host:port`, or the scheme of what users speak, such as `redis://host:port`";
    match parts(text, &SCHEMES) {
        Some((_, "" | "/")) => Ok(text.trim().trim_end_matches('/').to_owned()),
        Some((_, path)) => {
            let message = format!("`{path}` is a path; the workload has those");
            Err(TextError::new(message, 0..text.len()).help(help))
        }
        None => {
            let message = format!("`{}` is not a server's address", text.trim());
            Err(TextError::new(message, 0..text.len()).help(help))
        }
    }
}

/// Parses the address of an exporter, with its default path if there is none.
///
/// # Errors
/// When the text is no HTTP address.
pub fn exporter(text: &str) -> Result<String, TextError> {
    match parts(text, &["http", "https"]) {
        Some((server, "" | "/")) => Ok(format!("{server}/metrics")),
        Some(_) => Ok(text.trim().to_owned()),
        None => {
            let message = format!("`{}` is not the address of an exporter", text.trim());
            Err(TextError::new(message, 0..text.len()).help("write `http://host:9100/metrics`"))
        }
    }
}

/// Parses a name as in certificates, or an address.
///
/// # Errors
/// When the text is neither.
pub fn name(text: &str) -> Result<String, TextError> {
    let name = text.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(name.to_owned());
    }
    let error = TextError::new(
        format!("`{name}` is not the name of a server"),
        0..text.len(),
    );
    Err(error.help("write a name without a port, such as `staging.example.org`"))
}

/// Parses an address without a port.
///
/// # Errors
/// When the text is none.
pub fn ip_address(text: &str) -> Result<IpAddr, TextError> {
    text.trim().parse().map_err(|_| {
        let message = format!("`{}` is not an address", text.trim());
        TextError::new(message, 0..text.len()).help("write `10.0.0.7` or `fd00::7`, without a port")
    })
}

/// Splits scheme and server from the path; the scheme is one of `schemes`.
fn parts<'a>(text: &'a str, schemes: &[&str]) -> Option<(&'a str, &'a str)> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    schemes.contains(&scheme).then_some(())?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        // A colon in brackets belongs to the address.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:%".contains(c);
    let good_port = port.is_none_or(|p| p.parse::<u16>().is_ok_and(|p| p > 0));
    let good = !host.is_empty() && host.chars().all(plain) && good_port;
    let good_path = !path.contains(|c: char| c.is_whitespace() || c.is_control());
    let server = scheme.len() + "://".len() + end;
    (good && good_path).then_some((&text[..server], path))
}

#[cfg(test)]
mod tests;
