//! Numbers in responses: each is captured into a variable that no template can name.

use lab_workload::template::{Escape, Symbols};
use lab_workload::{Capture, CaptureSource, MAX_MEASURES, Measure, Request, Template};

use super::capture;
use super::request::Compiler;
use super::variable::{is_word, slot};
use crate::error::Problems;
use crate::file::{MeasureFile, StepFile};
use lab_units::parts::{At, Table};

/// Longest unit, in characters.
const MAX_UNIT: usize = 20;

/// Returns the variable that keeps a number until it is recorded: its space makes it unreachable for templates.
pub(super) fn variable(name: &str) -> String {
    format!("measure {name}")
}

/// Returns the names of a step's measures; invalid ones are reported.
pub(super) fn names<'f>(
    file: &'f StepFile,
    problems: &mut Problems,
) -> impl Iterator<Item = &'f At<String>> {
    let measures = file.requests().flat_map(|request| request.measure.iter());
    let names: Vec<&At<String>> = measures.map(|(name, _)| name).collect();
    for name in names.iter().filter(|name| !is_word(&name.value)) {
        let message = format!("`{}` can't be the name of a measure", name.value);
        problems.push(
            name.span
                .problem(message, "this name")
                .help("use letters, digits, and underscores, such as `queue_length`"),
        );
    }
    names.into_iter()
}

/// Reports a measure where nothing is measured.
pub(super) fn refuse(table: &Table<MeasureFile>, of: &str, problems: &mut Problems) -> bool {
    let first = table.iter().next();
    if let Some((name, _)) = first {
        let message = format!("{of} measures nothing: its answers are in no figure of the hold");
        problems.push(
            name.span
                .problem(message, "this measure")
                .help("measure in a step of the session"),
        );
    }
    first.is_none()
}

impl Compiler<'_> {
    /// Reads the measures of a step, whose requests capture their inputs. `None` if a problem was reported.
    pub(super) fn measures(
        &mut self,
        file: &StepFile,
        compiled: &mut [Request],
    ) -> Option<Vec<Measure>> {
        let mut measures = Some(Vec::new());
        for (at, request) in file.placed_requests() {
            for (name, place) in request.measure.iter() {
                let measure = self.measure(name, place, at);
                match (&mut measures, measure, compiled.get_mut(at)) {
                    (Some(list), Some((measure, capture)), Some(request)) => {
                        request.captures.extend(capture);
                        list.push(measure);
                    }
                    (list, ..) => *list = None,
                }
            }
        }
        let measures = measures?;
        let mut all = file.requests().flat_map(|request| request.measure.iter());
        if let Some((name, _)) = all.nth(MAX_MEASURES) {
            let message = format!("a step has {MAX_MEASURES} measures at most");
            let problem = name.span.problem(message, "the first one too many");
            self.problems.push(problem);
            return None;
        }
        Some(measures)
    }

    fn measure(
        &mut self,
        name: &At<String>,
        place: &MeasureFile,
        request: usize,
    ) -> Option<(Measure, Option<Capture>)> {
        let text = place.from().text();
        let is_expression = text.contains("{{");
        // The value isn't sent, so the seed need not determine it.
        let symbols = Symbols {
            is_repeatable: self.is_repeatable && !is_expression,
            ..self.symbols()
        };
        let (mut value, mut source) = (None, None);
        if is_expression {
            let parsed = Template::parse_with(&text, symbols, Escape::None);
            value = Some(self.note("measure", &place.from().span, &text, parsed)?);
        } else {
            let found = capture::source(&text, symbols);
            source = Some(self.note("measure", &place.from().span, &text, found)?);
        }
        use CaptureSource::{Cookie, Header, RequestPath};
        if !self.speech.is_http() && matches!(source, Some(Cookie(_) | Header(_) | RequestPath)) {
            let message = "only answers of HTTP have that; here they have a `body`";
            let problem = place.from().span.first_line().problem(message, "here");
            self.problems.push(problem);
            return None;
        }
        let unit = match place.unit() {
            None => String::new(),
            Some(at) => {
                let unit = at.text().trim().to_owned();
                if unit.chars().count() > MAX_UNIT || unit.contains(char::is_control) {
                    let message = format!("a unit has {MAX_UNIT} characters at most");
                    let problem = at.span.first_line().problem(message, "this one");
                    self.problems.push(problem);
                    return None;
                }
                unit
            }
        };
        let variable = variable(&name.value);
        let slot = slot(self.variables, &variable)?;
        let measure = Measure {
            name: name.value.clone(),
            unit,
            request,
            slot,
            value,
        };
        let capture = source.map(|source| Capture {
            variable,
            slot,
            source,
        });
        Some((measure, capture))
    }
}
