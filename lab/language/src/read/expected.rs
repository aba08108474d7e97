//! Expectations on a response apart from its status.

use std::time::Duration;

use lab_workload::template::Escape;
use lab_workload::{Comparison, Expectation, JsonPath, JsonState};

use super::capture;
use super::request::Compiler;
use crate::file::{ExpectFile, RequestFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, OneOrMany, Scalar};

/// The longest time limit of an expectation: the longest request timeout.
const MAX_TIME: Duration = Duration::from_secs(3600);

impl Compiler<'_> {
    /// Returns the expectations apart from the status.
    pub(super) fn answer(&mut self, file: &RequestFile) -> Option<Vec<Expectation>> {
        let Some(ExpectFile::Answer(answer)) = &file.expect else {
            return Some(Vec::new());
        };
        let mut all = Vec::new();
        for (path, value) in answer.json.iter() {
            all.push(self.json_value((&path.value, &path.span), value.as_ref()));
        }
        let states = [
            (&answer.present, JsonState::Present),
            (&answer.absent, JsonState::Absent),
        ];
        for (paths, state) in states {
            for path in paths.iter().flat_map(OneOrMany::as_slice) {
                let path = self.json_path((&path.text(), &path.span));
                all.push(path.map(|path| Expectation::Found { path, state }));
            }
        }
        if let Some(graphql) = &answer.graphql {
            let switch = self.setting("graphql", graphql, units::switch);
            match switch {
                Some(false) => {}
                switch => all.push(switch.map(|_| Expectation::Graphql)),
            }
        }
        if let Some(named) = &answer.schema {
            let name = named.text();
            let found = self.schemas.iter().find(|schema| schema.name() == name);
            all.push(found.cloned().map(Expectation::Schema));
        }
        let texts: [(_, fn(_) -> _); 2] = [
            (&answer.contains, Expectation::Contains),
            (&answer.not_contains, Expectation::NotContains),
        ];
        for (texts, expected) in texts {
            for text in texts.iter().flat_map(OneOrMany::as_slice) {
                let text = self.template("expect", text, Escape::None);
                all.push(text.map(expected));
            }
        }
        if let Some(time) = &answer.time {
            let below = self.setting("time", time, below);
            all.push(below.map(|below| Expectation::Time { below }));
        }
        if let Some(size) = &answer.size {
            let range = self.setting("size", size, units::sizes);
            let range = range.map(|range| (*range.start(), *range.end()));
            all.push(range.map(|(low, high)| Expectation::Size { low, high }));
        }
        for (name, text) in answer.header.iter() {
            let text = self.template("expect", text, Escape::None);
            let token = capture::header_name(&name.value);
            let found = self.note("expect", &name.span, &name.value, token);
            all.push(
                found
                    .zip(text)
                    .map(|(name, text)| Expectation::Header { name, text }),
            );
        }
        all.into_iter().collect()
    }

    fn json_path(&mut self, (text, span): (&str, &Span)) -> Option<Box<JsonPath>> {
        let compiled = self.note("expect", span, text, capture::literal_path(text));
        compiled.map(Box::new)
    }

    /// Returns the expected value at a path: none, a value, or a bound of a number.
    fn json_value(
        &mut self,
        path: (&str, &Span),
        value: Option<&At<Scalar>>,
    ) -> Option<Expectation> {
        let path = self.json_path(path);
        let Some(value) = value else {
            let state = JsonState::Null;
            return path.map(|path| Expectation::Found { path, state });
        };
        let text = value.written();
        let split = Comparison::split(&text);
        let other = split.map_or(&*text, |(_, other)| other);
        let other = At {
            value: Scalar::Text(other.to_owned()),
            span: value.span.clone(),
        };
        let (path, value) = path.zip(self.template("expect", &other, Escape::None))?;
        Some(match split {
            Some((comparison, _)) => Expectation::Number {
                path,
                comparison,
                value,
            },
            None => Expectation::Json { path, value },
        })
    }
}

/// Parses `< 1s` to the shortest time that fails.
fn below(text: &str) -> Result<Duration, TextError> {
    let rest = text
        .trim()
        .strip_prefix('<')
        .filter(|rest| !rest.starts_with('='));
    let Some(rest) = rest else {
        let message = format!("`{}` is not a limit of time", text.trim());
        return Err(TextError::new(message, units::whole(text)).help("write `< 1s`"));
    };
    match units::within(text, rest, units::duration(rest, MAX_TIME))? {
        Duration::ZERO => Err(TextError::new(
            "no answer takes less than that",
            units::whole(text),
        )),
        below => Ok(below),
    }
}
