//! `parallel`: requests of a step that are sent concurrently, and the names under which they are counted.

use lab_workload::{ForEach, Parallel, Request, Step};

use super::request::Compiler;
use super::variable;
use crate::error::Problems;
use crate::file::{EachFile, ParallelFile, RequestFile, RequestItem, StepFile};
use crate::source::Span;
use crate::units;
use lab_units::parts::{At, Scalar};

/// Maximum concurrent requests of a user.
const MAX_AT_ONCE: u64 = 100;
/// Maximum parallel requests, apart from those of a list.
const MAX_REQUESTS: usize = 100;
/// Maximum entries of a list.
const MAX_ENTRIES: u64 = 1_000;

/// Creates a step without requests that names some requests of another step.
pub(super) fn name_of(step: &Step, name: &At<Scalar>) -> Step {
    Step {
        tags: step.tags.clone(),
        repeat: step.repeat,
        chance: step.chance,
        ..Step::of(name.text().trim(), Vec::new())
    }
}

/// Reports the name of a request that is not parallel.
pub(super) fn refuse_name(request: &RequestFile, problems: &mut Problems) -> bool {
    let Some(name) = &request.name else {
        return true;
    };
    let place = name.span.first_line();
    let problem = place.problem("a request has no name of its own here", "this name");
    let help = "reports tell steps by `step`; requests within `parallel` may have a `name`";
    problems.push(problem.help(help));
    false
}

impl Compiler<'_> {
    /// Adds the parallel requests of a step to those sent before; `which` names the step in errors. The inner `None` if
    /// there are none.
    pub(super) fn parallel(
        &mut self,
        file: &StepFile,
        which: &str,
        requests: &mut Vec<Request>,
    ) -> Option<Option<Box<Parallel>>> {
        let Some(at) = &file.parallel else {
            return Some(None);
        };
        let place = at.span.first_line();
        self.refuse_speech(&at.value, &place)?;
        let full = at.value.full();
        let at_once = full.and_then(|full| full.at_once.as_ref());
        let at_once = at_once.map_or(Some(None), |at| {
            let at_once = |text: &str| units::whole_number(text, 1..=MAX_AT_ONCE);
            self.setting("at_once", at, at_once).map(|n| Some(n as u32))
        });
        let stops = full.and_then(|full| full.on_failure.as_ref());
        let stops = stops.map_or(Some(false), |at| {
            const NAMES: [(&str, bool); 2] = [("wait", false), ("stop", true)];
            self.setting("on_failure", at, |text| {
                units::one_named("reaction", text, &NAMES)
            })
        });
        if let Some(item) = at.value.requests().get(MAX_REQUESTS) {
            let message = format!("a step has at most {MAX_REQUESTS} requests at the same time");
            let help = "list several steps, or use `each` for the entries of a list";
            return self.refuse_parallel(&span_of(item), &message, help);
        }
        self.refuse_named_measures(&at.value)?;
        let first = requests.len();
        let (made, each) = self.listed(&file.only, |compiler| {
            let items = at.value.requests().iter();
            let made: Vec<Option<Request>> = items
                .map(|item| request_item(item, which, compiler))
                .collect();
            (made, at.value.each().map(|each| compiler.each(each)))
        })?;
        requests.extend(made.into_iter().collect::<Option<Vec<_>>>()?);
        let each = match each {
            None => None,
            Some(made) => {
                let (each, request) = made?;
                requests.push(request);
                Some(each)
            }
        };
        if requests.len() == first {
            let help = "list them: `parallel: [GET /app.js, GET /logo.png]`";
            return self.refuse_parallel(&place, "`parallel` has no request", help);
        }
        let parallel = Parallel {
            first,
            at_once: at_once?,
            stops: stops?,
            counts_as: self.counts_as(file, &at.value),
            each,
        };
        self.refuse_captures_of_others((&at.value, &place), &requests[first..])?;
        Some(Some(Box::new(parallel)))
    }

    /// Reports protocols with sequential requests, and calls that stay open.
    fn refuse_speech(&mut self, parallel: &ParallelFile, place: &Span) -> Option<()> {
        if !self.speech.is_http() && !self.speech.is_over_http2() {
            let message = "`parallel` belongs to requests of HTTP and calls of gRPC";
            let help = "other protocols send one request after the other";
            return self.refuse_parallel(place, message, help);
        }
        let mut open = parallel
            .all()
            .filter_map(|(_, request)| request.call.stays_open.as_ref());
        let Some(open) = open.next() else {
            return Some(());
        };
        let message = "a call within `parallel` doesn't stay open";
        let help = "no request after it could go on with it: leave out `stays_open`";
        self.refuse_parallel(&open.span, message, help)
    }

    /// Returns the index of the step that counts each request.
    fn counts_as(&self, file: &StepFile, parallel: &ParallelFile) -> Vec<usize> {
        let names = file.names_within();
        let named = |request: &RequestFile| {
            let name = request.name.as_ref()?;
            let place = names.iter().position(|other| other.text() == name.text());
            place.map(|place| place + 1)
        };
        let items = parallel.requests().iter().map(|item| match item {
            RequestItem::Line(_) => 0,
            RequestItem::Full(request) => named(&request.value).unwrap_or_default(),
        });
        let each = parallel.each();
        let each = each.map(|each| named(&each.value.only).unwrap_or_default());
        items.chain(each).collect()
    }

    /// Compiles the request for each entry of a list.
    fn each(&mut self, each: &At<EachFile>) -> Option<(ForEach, Request)> {
        let EachFile {
            list,
            entry,
            at_most,
            only,
        } = &each.value;
        let of_list = variable::slot(self.variables, &list.value);
        if of_list.is_none() {
            let message = format!("there is no variable `{}`", list.value);
            let help =
                "capture the list by a request before: `capture: { images: \"html(img)@src\" }`";
            self.refuse_parallel::<()>(&list.span, &message, help);
        }
        let at_most = self.setting("at_most", at_most, |text| {
            units::whole_number(text, 1..=MAX_ENTRIES)
        });
        let request = match &only.request {
            Some(line) => self.request(line, only),
            None => {
                let help = "say it: `each: { in: images, as: image, at_most: 30, request: \"GET {{ image }}\" }`";
                self.refuse_parallel(
                    &each.span.first_line(),
                    "`each` needs the key `request`",
                    help,
                )
            }
        };
        let each = ForEach {
            list: of_list?,
            entry: variable::slot(self.variables, &entry.value)?,
            at_most: at_most? as u32,
        };
        Some((each, request?))
    }

    /// Reports numbers in a request with its own name: they belong to its step.
    fn refuse_named_measures(&mut self, parallel: &ParallelFile) -> Option<()> {
        let named = parallel.all().filter(|(_, request)| request.name.is_some());
        let mut measures = named.flat_map(|(_, request)| request.measure.iter());
        let Some((measure, _)) = measures.next() else {
            return Some(());
        };
        let message =
            "a request with a `name` measures nothing: its numbers would be those of its step";
        let help = "leave out `name`, or `measure`";
        self.refuse_parallel(&measure.span.first_line(), message, help)
    }

    /// Reports a request that uses a capture of another parallel request.
    fn refuse_captures_of_others(
        &mut self,
        (file, place): (&ParallelFile, &Span),
        requests: &[Request],
    ) -> Option<()> {
        let span = |at: usize| match file.requests().get(at) {
            Some(item) => span_of(item),
            None => file
                .each()
                .map_or(place.clone(), |each| each.span.first_line()),
        };
        let listed = &requests[..file.requests().len().min(requests.len())];
        let entry = file.each().map(|each| &each.value.entry.value);
        for (at, request) in listed.iter().enumerate() {
            if let Some(entry) = entry.filter(|entry| request.names(entry)) {
                let message = format!("`{entry}` has an entry for the request of `each` alone");
                let help = "give this variable another name";
                return self.refuse_parallel(&span(at), &message, help);
            }
        }
        for (at, request) in requests.iter().enumerate() {
            let others = requests
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at);
            for (other, capture) in others
                .flat_map(|(other, one)| one.captures.iter().map(move |capture| (other, capture)))
            {
                if request.names(&capture.variable) {
                    let (line, _) = span(other).position();
                    let message = format!(
                        "this request uses `{}`, which the request of line {line} captures at the same time",
                        capture.variable
                    );
                    let help = "what goes out at the same time doesn't see each other's captures: send one of them before";
                    return self.refuse_parallel(&span(at), &message, help);
                }
            }
        }
        Some(())
    }

    fn refuse_parallel<T>(&mut self, place: &Span, message: &str, help: &str) -> Option<T> {
        self.problems
            .push(place.problem(message, "here").help(help));
        None
    }
}

/// Compiles a request of a list.
pub(super) fn request_item(
    item: &RequestItem,
    which: &str,
    compiler: &mut Compiler,
) -> Option<Request> {
    match item {
        RequestItem::Line(line) => compiler.request(line, &RequestFile::default()),
        RequestItem::Full(file) => match &file.value.request {
            Some(line) => compiler.request(line, &file.value),
            None if file.value.has_no_line() || compiler.has_messages_without_line(&file.value) => {
                compiler.lineless(&file.value)?
            }
            None => {
                let message = format!("a request of {which} needs the key `request`");
                let problem = file.span.first_line().problem(message, "this request");
                compiler.problems.push(problem);
                None
            }
        },
    }
}

fn span_of(item: &RequestItem) -> Span {
    match item {
        RequestItem::Line(line) => line.span.first_line(),
        RequestItem::Full(request) => request.span.first_line(),
    }
}
