//! A generated workload, and its YAML form.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::text::Text;
use lab_units::yaml::{comment, short_name, text as scalar};

/// A workload.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    /// Comment lines before it.
    pub(crate) head: Vec<String>,
    /// Constants with their values.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) compressed: bool,
    /// True if each session starts as that of a new visitor.
    pub(crate) is_new_visitor: bool,
    pub(crate) steps: Vec<Step>,
}

/// A step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) wait: Wait,
    /// Variables set before its requests, with their expressions.
    pub(crate) set: Vec<(String, String)>,
    pub(crate) requests: Vec<Request>,
}

/// The think time before a step.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) enum Wait {
    #[default]
    None,
    /// Uniform from half of this up to one and a half.
    About(Duration),
}

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: Text,
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) body: Body,
    pub(crate) basic_auth: Option<(Text, Text)>,
    /// The expected status, if it is no 2xx.
    pub(crate) expect: Option<u16>,
    /// Variables, and the places of their values in the response.
    pub(crate) captures: Vec<(String, String)>,
}

/// The body of a request.
#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    None,
    Form(Vec<(String, Text)>),
    Json(Json),
    Text(Text),
    /// So many arbitrary bytes.
    Bytes(u64),
}

/// A JSON value whose texts may contain expressions.
#[derive(Debug)]
pub(crate) enum Json {
    /// `null`, a number, or a boolean, in JSON form.
    Plain(String),
    Text(Text),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    /// Parses a list or an object, digit for digit; `None` if it is neither, or nested too deep.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let whole = text.trim_start().starts_with(['{', '[']);
        whole.then(|| Self::read(text, 0)).flatten()
    }

    fn read(text: &str, depth: usize) -> Option<Self> {
        if depth > MAX_DEPTH {
            return None;
        }
        match text.trim_start().as_bytes().first()? {
            b'"' => Some(Self::Text(Text::literal(
                &serde_json::from_str::<String>(text).ok()?,
            ))),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                let items = items.iter().map(|item| Self::read(item.get(), depth + 1));
                items.collect::<Option<_>>().map(Self::List)
            }
            b'{' => {
                let Members(members) = serde_json::from_str(text).ok()?;
                let members = members
                    .into_iter()
                    .map(|(key, value)| Some((key, Self::read(value.get(), depth + 1)?)));
                members.collect::<Option<_>>().map(Self::Map)
            }
            _ => {
                let _validated: serde_json::Value = serde_json::from_str(text).ok()?;
                Some(Self::Plain(text.trim().to_owned()))
            }
        }
    }

    /// Visits all its texts and plain values, each with its key.
    pub(crate) fn leaves(&mut self, key: &str, visit: &mut dyn FnMut(&str, &mut Self)) {
        match self {
            Self::List(items) => items.iter_mut().for_each(|item| item.leaves(key, visit)),
            Self::Map(entries) => {
                for (key, value) in entries {
                    value.leaves(key, visit);
                }
            }
            leaf => visit(key, leaf),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            // The JSON form is valid YAML.
            Self::Plain(text) => out.push_str(text),
            Self::Text(text) => out.push_str(&quoted(&text.template())),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Map(entries) => {
                out.push_str("{ ");
                for (at, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    let _ = write!(out, "{}: ", scalar(key));
                    value.write(out);
                }
                out.push_str(" }");
            }
        }
    }
}

/// Deepest JSON that is written as YAML, whose parser has a limit of its own.
const MAX_DEPTH: usize = 32;

/// The members of an object in their order; the last one of each name.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'t> serde::Deserialize<'t> for Members<'t> {
    fn deserialize<D: serde::Deserializer<'t>>(reader: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'t> serde::de::Visitor<'t> for Each {
            type Value = Members<'t>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'t>>(
                self,
                mut map: A,
            ) -> Result<Members<'t>, A::Error> {
                let mut members: Vec<(String, &'t RawValue)> = Vec::new();
                let mut places = std::collections::HashMap::new();
                while let Some((key, value)) = map.next_entry::<String, &'t RawValue>()? {
                    match places.get(&key) {
                        Some(place) => members[*place] = (key, value),
                        None => {
                            places.insert(key.clone(), members.len());
                            members.push((key, value));
                        }
                    }
                }
                Ok(Members(members))
            }
        }
        reader.deserialize_map(Each)
    }
}

/// Longest line of a comment.
const COLUMNS: usize = 96;

/// Wraps a text at [`COLUMNS`].
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let more = word.chars().count() + 1;
        if length > 0 && length + more > COLUMNS {
            out.push('\n');
            length = 0;
        } else if length > 0 {
            out.push(' ');
        }
        out.push_str(word);
        length += more;
    }
    out
}

/// A quoted text that YAML parses as a text only.
fn quoted(text: &str) -> String {
    let plain = scalar(text);
    match plain.starts_with('"') {
        true => plain,
        false => format!("\"{plain}\""),
    }
}

impl Draft {
    /// The workload file.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        for line in &self.head {
            out.push_str(&comment(0, &wrapped(line)));
        }
        let _ = writeln!(out, "workload: {}", short_name(&self.name, "imported"));
        if !self.parameters.is_empty() {
            out.push_str("parameters:\n");
            for (name, value) in &self.parameters {
                let _ = writeln!(out, "  {name}: {}", quoted(value));
            }
        }
        if self.compressed {
            out.push_str("compressed: true\n");
        }
        out.push_str("session:\n");
        if self.is_new_visitor {
            out.push_str("  visitor: new\n");
        }
        out.push_str("  steps:\n");
        for step in &self.steps {
            step.write(&mut out);
        }
        out
    }
}

impl Step {
    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "    - step: {}", scalar(&self.name));
        if let Wait::About(time) = self.wait {
            let (low, high) = (length(time / 2), length(time * 3 / 2));
            let _ = writeln!(out, "      wait: {low}..{high}");
        }
        if !self.set.is_empty() {
            out.push_str("      set:\n");
            for (name, code) in &self.set {
                let value = format!("{{{{ {code} }}}}");
                let _ = writeln!(out, "        {name}: {}", scalar(&value));
            }
        }
        match self.requests.as_slice() {
            [one] => one.write("      ", out),
            many => {
                out.push_str("      requests:\n");
                for request in many {
                    let mut lines = String::new();
                    request.write("          ", &mut lines);
                    out.push_str("        - ");
                    out.push_str(lines.trim_start());
                }
            }
        }
    }
}

impl Request {
    /// Its lines, each after `indent`.
    fn write(&self, indent: &str, out: &mut String) {
        let line = format!("{} {}", self.method, self.target.template());
        let _ = writeln!(out, "{indent}request: {}", scalar(&line));
        table(indent, "headers", &self.headers, out);
        if let Some((name, password)) = &self.basic_auth {
            let both = [("username", name), ("password", password)];
            let both = both.map(|(key, text)| format!("{key}: {}", scalar(&text.template())));
            let _ = writeln!(out, "{indent}basic_auth: {{ {} }}", both.join(", "));
        }
        match &self.body {
            Body::None => {}
            Body::Form(fields) if fields.is_empty() => {
                let _ = writeln!(out, "{indent}form: {{}}");
            }
            Body::Form(fields) => table(indent, "form", fields, out),
            Body::Json(json) => {
                let _ = write!(out, "{indent}json: ");
                json.write(out);
                out.push('\n');
            }
            Body::Text(text) => {
                let _ = writeln!(out, "{indent}text: {}", scalar(&text.template()));
            }
            Body::Bytes(count) => {
                let _ = writeln!(out, "{indent}bytes: {count}");
            }
        }
        if let Some(status) = self.expect {
            let _ = writeln!(out, "{indent}expect: {status}");
        }
        if !self.captures.is_empty() {
            let _ = writeln!(out, "{indent}capture:");
            for (name, source) in &self.captures {
                let _ = writeln!(out, "{indent}  {name}: {}", scalar(source));
            }
        }
    }
}

fn table(indent: &str, key: &str, entries: &[(String, Text)], out: &mut String) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "{indent}{key}:");
    for (name, value) in entries {
        let _ = writeln!(
            out,
            "{indent}  {}: {}",
            scalar(name),
            quoted(&value.template())
        );
    }
}

/// A duration as in files, rounded to natural steps.
fn length(time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match ms {
        0..1000 => format!("{}ms", (ms / 10 * 10).max(10)),
        1000..10_000 if !(ms / 100).is_multiple_of(10) => {
            format!("{}.{}s", ms / 1000, ms / 100 % 10)
        }
        _ => format!("{}s", ms / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_round() {
        for (ms, expected) in [
            (3, "10ms"),
            (347, "340ms"),
            (1000, "1s"),
            (1678, "1.6s"),
            (12_345, "12s"),
        ] {
            assert_eq!(length(Duration::from_millis(ms)), expected);
        }
    }
}
