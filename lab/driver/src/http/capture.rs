//! Keeps values of an answer for later requests of its user.

use lab_workload::UserScope;
use lab_workload::{Capture, CaptureSource};
use serde_json::Value;

use super::request::path_of;

/// What of an answer's headers the captures of its request want, found while the head is read.
#[derive(Debug, Default)]
pub(crate) struct HeaderFinds(Vec<(usize, Box<str>)>);

impl HeaderFinds {
    /// A header of the answer; the first of its name counts.
    pub(crate) fn header(&mut self, captures: &[Capture], name: &str, value: &[u8]) {
        for (index, capture) in captures.iter().enumerate() {
            if let CaptureSource::Header(wanted) = &capture.source
                && name.eq_ignore_ascii_case(wanted)
            {
                self.add(index, String::from_utf8_lossy(value).trim());
            }
        }
    }

    /// A cookie that the answer sets.
    pub(crate) fn cookie(&mut self, captures: &[Capture], name: &str, value: &str) {
        for (index, capture) in captures.iter().enumerate() {
            if matches!(&capture.source, CaptureSource::Cookie(wanted) if wanted == name) {
                self.add(index, value);
            }
        }
    }

    fn add(&mut self, index: usize, value: &str) {
        if self.get(index).is_none() {
            self.0.push((index, value.into()));
        }
    }

    fn get(&self, index: usize) -> Option<&str> {
        self.0
            .iter()
            .find(|(i, _)| *i == index)
            .map(|(_, value)| &**value)
    }
}

/// Sets the variables that `captures` name.
///
/// # Errors
/// In words, when the answer lacks what a capture needs.
pub(crate) fn capture(
    captures: &[Capture],
    body: &[u8],
    finds: &HeaderFinds,
    message: &str,
    scope: &mut UserScope,
) -> Result<(), String> {
    let mut json = None;
    for (index, capture) in captures.iter().enumerate() {
        match &capture.source {
            CaptureSource::JsonPath(path) => {
                let values = query(parse(&mut json, body)?, path);
                scope.set_list(capture.slot, &values);
            }
            CaptureSource::JsonPathTemplate(template) => {
                let mut text = String::new();
                template
                    .render(scope, &mut text)
                    .map_err(|error| error.to_string())?;
                let path = serde_json_path::JsonPath::parse(&text)
                    .map_err(|error| format!("capture `{}`: {error}", capture.variable))?;
                let values = query(parse(&mut json, body)?, &path);
                scope.set_list(capture.slot, &values);
            }
            CaptureSource::Header(name) => {
                let value = finds
                    .get(index)
                    .ok_or_else(|| format!("no header `{name}`"))?;
                scope.set_text(capture.slot, value);
            }
            CaptureSource::Cookie(name) => {
                let value = finds
                    .get(index)
                    .ok_or_else(|| format!("no cookie `{name}`"))?;
                scope.set_text(capture.slot, value);
            }
            CaptureSource::Regex(regex) => {
                let text = String::from_utf8_lossy(body);
                let found = regex
                    .captures(&text)
                    .and_then(|c| c.get(1).or_else(|| c.get(0)));
                let found = found.ok_or_else(|| format!("no match of `{}`", regex.as_str()))?;
                scope.set_text(capture.slot, found.as_str());
            }
            CaptureSource::RequestPath => scope.set_text(capture.slot, path_of(message)),
        }
    }
    Ok(())
}

/// The body as JSON, parsed once; an empty body is null.
fn parse<'a>(parsed: &'a mut Option<Value>, body: &[u8]) -> Result<&'a Value, String> {
    if parsed.is_none() {
        let value = if body.trim_ascii().is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}"))?
        };
        *parsed = Some(value);
    }
    Ok(parsed.as_ref().unwrap_or(&Value::Null))
}

fn query(value: &Value, path: &serde_json_path::JsonPath) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    path.query(value).iter().map(|found| text(found)).collect()
}
