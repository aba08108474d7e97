//! Sources of captures: `$.…`, `header.NAME`, `cookie.NAME`, `/regex/`, `/regex/g`, `xml(…)`, `html(…)`, `status`,
//! `request.path`.

use lab_workload::template::{Escape, Symbols};
use lab_workload::{CaptureSource, HtmlPath, JsonPath, Pattern, PatternError, Template, XmlPath};

use super::header::is_cookie_name;
use crate::text_error::TextError;

/// Reads the source of a capture.
pub(super) fn source(text: &str, symbols: Symbols<'_>) -> Result<CaptureSource, TextError> {
    let trimmed = text.trim();
    if trimmed.starts_with('$') {
        return json_path(text, trimmed, symbols);
    }
    if let Some(pattern) = trimmed.strip_prefix('/').and_then(|t| t.strip_suffix('/')) {
        return regex(text, pattern).map(CaptureSource::Regex);
    }
    if let Some(pattern) = trimmed.strip_prefix('/').and_then(|t| t.strip_suffix("/g")) {
        return regex(text, pattern).map(CaptureSource::RegexAll);
    }
    if let Some(path) = trimmed
        .strip_prefix("xml(")
        .and_then(|t| t.strip_suffix(')'))
    {
        return xml(text, path);
    }
    if let Some(path) = trimmed.strip_prefix("html") {
        return html(text, path);
    }
    match trimmed {
        "request.path" => return Ok(CaptureSource::RequestPath),
        "body" => return Ok(CaptureSource::Body),
        "status" => return Ok(CaptureSource::Status),
        _ => {}
    }
    match trimmed.split_once('.') {
        Some(("header", name)) if is_token(name) => {
            Ok(CaptureSource::Header(name.to_ascii_lowercase()))
        }
        Some(("cookie", name)) if is_cookie_name(name) => Ok(CaptureSource::Cookie(name.to_owned())),
        _ => Err(TextError::new(
            format!("`{trimmed}` is not a place to capture from"),
            0..text.len(),
        )
        .help(match crate::nearest(trimmed, &["request.path", "status", "body"]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write a JSON path `$.items[*].href`, `header.Location`, `cookie.NAME`, \
                         `/regex with (a group)/` (`/…/g` for all its matches), `xml(//response/href)`, \
                         `html(a.next)@href`,                          `body`, `status`, or `request.path`"
                .to_owned(),
        })),
    }
}

/// Returns true for a valid header name (RFC 9110, token).
pub(super) fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Parses the JSON path of an expectation, which names no variables.
pub(super) fn literal_path(text: &str) -> Result<JsonPath, TextError> {
    let trimmed = text.trim();
    if !trimmed.starts_with('$') {
        let message = format!("`{trimmed}` is not a JSON path");
        let help = format!("a path begins with `$`: `$.{trimmed}`");
        return Err(TextError::new(message, 0..text.len()).help(help));
    }
    JsonPath::parse(trimmed).map_err(|error| path_error(text, &error))
}

/// Returns the lower-case name of an expected header.
pub(super) fn header_name(text: &str) -> Result<String, TextError> {
    if is_token(text) {
        return Ok(text.to_ascii_lowercase());
    }
    let message = format!("`{text}` is not the name of a header");
    Err(TextError::new(message, 0..text.len()).help("write `Content-Type: json`"))
}

fn json_path(text: &str, path: &str, symbols: Symbols<'_>) -> Result<CaptureSource, TextError> {
    let template = Template::parse_with(path, symbols, Escape::None)?;
    let Some(literal) = template.as_literal() else {
        // The variables' values are known only per user; a plain word reveals most mistakes.
        check_template_path(text, path)?;
        return Ok(CaptureSource::JsonPathTemplate(template));
    };
    match JsonPath::parse(literal) {
        Ok(path) => Ok(CaptureSource::JsonPath(Box::new(path))),
        Err(error) => Err(path_error(text, &error)),
    }
}

/// Checks a path with `x` in place of every `{{ … }}`.
fn check_template_path(text: &str, path: &str) -> Result<(), TextError> {
    let mut sample = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once("{{") {
        sample.push_str(before);
        sample.push('x');
        rest = after.split_once("}}").map_or("", |(_, after)| after);
    }
    sample.push_str(rest);
    match serde_json_path::JsonPath::parse(&sample) {
        Ok(_) => Ok(()),
        Err(error) => Err(TextError::new(
            format!("not a JSON path: {}", error.message()),
            0..text.len(),
        )),
    }
}

fn path_error(text: &str, error: &serde_json_path::ParseError) -> TextError {
    let lead = text.len() - text.trim_start().len();
    let at = (lead + error.position()).min(text.len().saturating_sub(1));
    let end = text[at..]
        .chars()
        .next()
        .map_or(text.len(), |c| at + c.len_utf8());
    TextError::new(format!("not a JSON path: {}", error.message()), at..end)
}

fn xml(text: &str, path: &str) -> Result<CaptureSource, TextError> {
    match XmlPath::parse(path) {
        Ok(path) => Ok(CaptureSource::Xml(Box::new(path))),
        Err(error) => Err(TextError::new(error.to_string(), 0..text.len())
            .help("write `xml(//response/href)`, or `xml(//link@href)` for an attribute")),
    }
}

fn html(text: &str, path: &str) -> Result<CaptureSource, TextError> {
    match HtmlPath::parse(path) {
        Ok(path) => Ok(CaptureSource::Html(Box::new(path))),
        Err(error) => Err(TextError::new(error.to_string(), 0..text.len())
            .help("write `html(h1.title)`, or `html(input[name=csrf])@value` for an attribute")),
    }
}

fn regex(text: &str, pattern: &str) -> Result<Box<Pattern>, TextError> {
    match Pattern::parse(pattern) {
        Ok(pattern) => Ok(Box::new(pattern)),
        Err(PatternError::NoGroup) => Err(TextError::new(
            "the regular expression has no group to keep",
            0..text.len(),
        )
        .help("put what is to be kept in parentheses: `/id=([0-9]+)/`")),
        Err(PatternError::Unreadable(error)) => {
            let cause = error.to_string();
            let cause = cause
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            Err(TextError::new(
                format!("not a regular expression: {cause}"),
                0..text.len(),
            ))
        }
    }
}

#[cfg(test)]
mod tests;
