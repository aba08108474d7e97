//! Problems of a hand-written file: where, what, and the nearest valid text.
//!
//! A problem contains the text of its file, so that it can be rendered alone; it knows no terminal.

use std::fmt;

use lab_filters::Secrets;
use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::source::{Excerpt, Span, clean};
use crate::text_error::TextError;

/// Most reported problems; users reload after fixing these.
const MAX_PROBLEMS: usize = 20;

/// A file that can't be used, with all its problems.
#[derive(Debug)]
pub struct LoadError {
    problems: Vec<Problem>,
    left_out: usize,
}

/// One problem.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The problem, as a sentence without a full stop.
    pub message: String,
    /// The fix, if known.
    pub help: Option<String>,
    /// A label at the place itself.
    pub label: String,
    /// The name of the file (or flag).
    pub file: String,
    /// The place; `None` for the whole file.
    pub place: Option<Box<Location>>,
}

/// The place of a problem.
#[derive(Debug, Clone)]
pub struct Location {
    span: Span,
    /// Line, column, and excerpt are only computed for displayed problems: a file may have thousands, and each search
    /// starts at the file's beginning.
    found: Option<((usize, usize), Excerpt)>,
}

impl LoadError {
    /// `problems` holds at least one.
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        let start = |p: &Problem| p.place.as_ref().map(|place| place.span.range.start);
        problems.sort_by(|a, b| a.file.cmp(&b.file).then(start(a).cmp(&start(b))));
        let left_out = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        problems.iter_mut().for_each(Problem::locate);
        Self { problems, left_out }
    }

    /// Masks the values of secrets: more people read logs of errors than the file.
    #[must_use]
    pub fn without(mut self, secrets: &Secrets) -> Self {
        for problem in &mut self.problems {
            problem.message = secrets.masked(&problem.message);
            problem.label = secrets.masked(&problem.label);
            problem.help = problem.help.take().map(|help| secrets.masked(&help));
            let found = problem
                .place
                .as_mut()
                .and_then(|place| place.found.as_mut());
            if let Some((_, excerpt)) = found {
                excerpt.hide(secrets);
            }
        }
        self
    }

    /// All problems, in the order of the file; at most twenty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The only problem, if it is the only one.
    fn single(&self) -> Option<&Problem> {
        match self.problems.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(problem) = self.single() {
            return fmt::Display::fmt(problem, f);
        }
        let mut files: Vec<&str> = self.problems.iter().map(|p| p.file.as_str()).collect();
        files.dedup();
        let count = self.problems.len() + self.left_out;
        write!(f, "{count} problems in {}", files.join(" and "))?;
        match self.left_out {
            0 => Ok(()),
            _ => write!(f, ", of which these are the first {MAX_PROBLEMS}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl Diagnostic for LoadError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.single()?.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single()?.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        match self.single() {
            Some(_) => None,
            None => Some(Box::new(self.problems.iter().map(|p| p as &dyn Diagnostic))),
        }
    }
}

impl Problem {
    /// A problem of a whole file.
    #[must_use]
    pub fn without_place(file: &str, message: String) -> Self {
        Self {
            message: clean(&message),
            help: None,
            label: String::new(),
            file: file.to_owned(),
            place: None,
        }
    }

    /// Adds a fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A problem at one place.
    pub(crate) fn at(span: &Span, message: &str, label: &str) -> Self {
        Self {
            message: clean(message),
            help: None,
            label: clean(label),
            file: span.file.name.to_string(),
            place: Some(Box::new(Location {
                span: span.clone(),
                found: None,
            })),
        }
    }

    /// Line and column, both from 1, if the place is known.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        self.found().map(|(position, _)| *position)
    }

    fn found(&self) -> Option<&((usize, usize), Excerpt)> {
        self.place.as_ref()?.found.as_ref()
    }

    fn locate(&mut self) {
        if let Some(place) = &mut self.place {
            place.found = Some((place.span.position(), Excerpt::new(&place.span)));
        }
    }
}

impl Span {
    /// A problem at this place.
    pub fn problem(&self, message: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem::at(self, &message.into(), &label.into())
    }

    /// The problem of a value at this place; `value` is that text as parsed from YAML.
    #[must_use]
    pub fn text_problem(&self, what: &str, value: &str, error: &TextError) -> Problem {
        let place = self.part(value, &error.at);
        let label = if error.help.is_some() {
            "here"
        } else {
            "this value"
        };
        Problem {
            help: error.help.as_deref().map(clean),
            ..place.problem(format!("{what}: {}", error.message), label)
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.found().map(|(_, excerpt)| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.found()?.1.span();
        let label = (!self.label.is_empty()).then(|| self.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            label, span,
        ))))
    }
}

/// Collects problems while a file is decoded.
#[derive(Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Records a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Returns true if no problem was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value, or all problems.
    ///
    /// # Errors
    /// All recorded problems.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, LoadError> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(LoadError::new(self.0)),
        }
    }
}

impl From<Problem> for LoadError {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem])
    }
}
