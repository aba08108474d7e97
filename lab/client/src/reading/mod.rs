//! Checks and captures of a response besides its status: whether it meets the workload's expectations, and the values
//! kept for later requests of its user.

mod expected;

use lab_filters::reading::json::Json;
use lab_filters::reading::{html, xml};
use lab_workload::{Capture, CaptureSource, Expectation, JsonPath, UserScope};

pub(crate) use expected::Whole;
use expected::expect;

/// The maximum number of kept matches of a pattern.
const MAX_VALUES: usize = 100_000;

/// Returns true if anything reads the response's body.
pub(crate) fn looks_into(captures: &[Capture], answer: &[Expectation]) -> bool {
    use CaptureSource::{Body, Html, JsonPath, JsonPathTemplate, Regex, RegexAll, Xml};
    let from_body = |capture: &Capture| {
        matches!(
            capture.source,
            Body | JsonPath(_) | JsonPathTemplate(_) | Regex(_) | RegexAll(_) | Xml(_) | Html(_)
        )
    };
    captures.iter().any(from_body) || answer.iter().any(Expectation::reads_body)
}

/// The headers that the request needs, found while the head is read: captures by their index, then expectations.
#[derive(Debug, Default)]
pub(crate) struct HeaderFinds(Vec<(usize, Box<str>)>);

impl HeaderFinds {
    /// Takes a header of the response; the first of its name counts.
    pub(crate) fn header(&mut self, wanted: &Wanted<'_>, name: &str, value: &[u8]) {
        let captured = wanted.captures.iter();
        let captured = captured.map(|capture| match &capture.source {
            CaptureSource::Header(wanted) => Some(wanted),
            _ => None,
        });
        let expected = wanted.answer.iter().map(|expectation| match expectation {
            Expectation::Header { name, .. } => Some(name),
            _ => None,
        });
        for (index, wanted) in captured.chain(expected).enumerate() {
            if wanted.is_some_and(|wanted| name.eq_ignore_ascii_case(wanted)) {
                self.add(index, String::from_utf8_lossy(value).trim());
            }
        }
    }

    /// Takes a cookie that the response sets.
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

/// The captures and expectations of a request besides a status.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) captures: &'a [Capture],
    pub(crate) answer: &'a [Expectation],
}

/// Judges the response to a request by its expectations, and sets the variables that its captures name. `path` is the
/// path of the request.
///
/// # Errors
/// A message, if the response lacks what an expectation or a capture needs.
pub(crate) fn read_answer(
    wanted: &Wanted<'_>,
    answer: Whole<'_>,
    finds: &HeaderFinds,
    path: &str,
    scope: &mut UserScope,
) -> Result<(), String> {
    let Whole { status, body, .. } = answer;
    let mut json = Json::new(body, asked(wanted));
    for (index, expectation) in wanted.answer.iter().enumerate() {
        let found = finds.get(wanted.captures.len() + index);
        expect(expectation, answer, &mut json, found, scope)?;
    }
    let read = (status, body, &mut json);
    capture(wanted.captures, read, finds, path, scope)
}

/// Returns the JSON paths that expectations and captures read from the body.
fn asked<'a>(wanted: &Wanted<'a>) -> impl Iterator<Item = Option<&'a JsonPath>> {
    let expected = wanted
        .answer
        .iter()
        .filter_map(|one: &Expectation| match one {
            Expectation::Json { path, .. }
            | Expectation::Number { path, .. }
            | Expectation::Found { path, .. } => Some(Some(&**path)),
            Expectation::Schema(_) | Expectation::Graphql => Some(None),
            Expectation::Contains(_)
            | Expectation::NotContains(_)
            | Expectation::Size { .. }
            | Expectation::Time { .. }
            | Expectation::Header { .. } => None,
        });
    let captured = wanted
        .captures
        .iter()
        .filter_map(|one: &Capture| match &one.source {
            CaptureSource::JsonPath(path) => Some(Some(&**path)),
            CaptureSource::JsonPathTemplate(_) => Some(None),
            _ => None,
        });
    expected.chain(captured)
}

/// Sets the variables that `captures` name.
fn capture(
    captures: &[Capture],
    (status, body, json): (u16, &[u8], &mut Json<'_>),
    finds: &HeaderFinds,
    path: &str,
    scope: &mut UserScope,
) -> Result<(), String> {
    for (index, capture) in captures.iter().enumerate() {
        match &capture.source {
            CaptureSource::JsonPath(wanted) => {
                let values = json.present(wanted)?;
                scope.set_json(capture.slot, &values, wanted.is_singular());
            }
            CaptureSource::JsonPathTemplate(template) => {
                let mut text = String::new();
                template
                    .render(scope, &mut text)
                    .map_err(|error| error.to_string())?;
                let wanted = JsonPath::parse(&text)
                    .map_err(|error| format!("capture `{}`: {error}", capture.variable))?;
                let values = json.present(&wanted)?;
                scope.set_json(capture.slot, &values, false);
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
            CaptureSource::RegexAll(regex) => {
                let text = String::from_utf8_lossy(body);
                let found = regex.captures_iter(&text);
                let found = found.filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
                let values: Vec<String> = found.take(MAX_VALUES).collect();
                scope.set_list(capture.slot, &values);
            }
            CaptureSource::Xml(wanted) => {
                let values = xml::values(body, wanted)?;
                scope.set_list(capture.slot, &values);
            }
            CaptureSource::Html(wanted) => {
                let values = html::values(body, wanted)?;
                scope.set_list(capture.slot, &values);
            }
            CaptureSource::RequestPath => scope.set_text(capture.slot, path),
            CaptureSource::Body => scope.set_text(capture.slot, &String::from_utf8_lossy(body)),
            CaptureSource::Status => scope.set_text(capture.slot, &status.to_string()),
        }
    }
    Ok(())
}
