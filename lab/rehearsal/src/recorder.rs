//! The witness: combines the events of the client and the data on the wire.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use lab_client::{BaseUrl, Exchange, Nanos, Phases, RequestId, Side, Tap, Version};
use lab_driver::Witness;
use lab_workload::{
    Body, CaptureSource, Expectation, GRPC_STATUSES, JsonState, Piece, ProtocolRequest,
    Request as Asked, Step, TOKEN_STEP, Template, UserScope, Workload,
};

use crate::mask::{MASK, Secrets, is_telling};
use crate::message;
use crate::model::Totals;
use crate::model::{Captured, Ended, Exchanged, Line, Message, Moment, NotDone, Phase, Timing};

/// Most bytes stored of one message.
const KEPT: usize = 8 << 20;
/// Most characters of a captured value.
const VALUE: usize = 200;

/// The witness of a dry run.
pub struct Recorder {
    requests: Vec<Known>,
    /// The steps with requests, by index, each with whether a draw decides about it.
    steps: Vec<(usize, String, bool)>,
    state: RefCell<State>,
}

/// A request of the workload, and its place.
struct Known {
    phase: Phase,
    step: usize,
    name: String,
    repeats: bool,
    place: (usize, usize),
    asked: Asked,
}

struct State {
    listener: Box<dyn FnMut(Moment)>,
    secrets: Secrets,
    wire: Vec<Wire>,
    lines: Vec<Line>,
    connected: Option<(Nanos, Nanos)>,
    done: BTreeSet<usize>,
    /// Steps skipped by a condition.
    left_out: BTreeSet<usize>,
    totals: Totals,
}

/// One message and its response, as on the wire.
struct Wire {
    server: String,
    version: Version,
    connected: Option<(Nanos, Nanos)>,
    at: Nanos,
    sent: Vec<u8>,
    received: Vec<u8>,
    bytes: u64,
    first: Option<Nanos>,
    last: Option<Nanos>,
}

impl Recorder {
    /// A witness that sends each moment to `listener`; with `show_secrets` nothing is masked.
    #[must_use]
    pub fn new(workload: &Workload, show_secrets: bool, listener: Box<dyn FnMut(Moment)>) -> Self {
        let looped = workload.session.groups.iter();
        let looped = looped.filter(|group| group.control.until.is_some());
        let looped: BTreeSet<usize> = looped.flat_map(|group| group.steps.clone()).collect();
        let of = |phase: Phase, steps: &[Step]| -> Vec<Known> {
            let known = |(at, step): (usize, &Step)| {
                let of = step.requests.len();
                let known = |(n, asked): (usize, &Asked)| Known {
                    phase,
                    step: at,
                    name: counted_as(steps, at, n),
                    repeats: step.repeat > 1
                        || phase == Phase::Session && looped.contains(&at)
                        || is_loop(step),
                    place: (n, of),
                    asked: asked.clone(),
                };
                step.requests
                    .iter()
                    .enumerate()
                    .map(known)
                    .collect::<Vec<_>>()
            };
            steps.iter().enumerate().flat_map(known).collect()
        };
        let mut requests = of(Phase::Setup, &workload.setup);
        requests.extend(of(Phase::Session, &workload.session.steps));
        requests.extend(further(workload));
        let steps = workload.session.steps.iter();
        let mut secrets = match show_secrets {
            true => Secrets::shown(),
            false => Secrets::default(),
        };
        for sign in requests.iter().filter_map(|one| one.asked.sign.as_ref()) {
            secrets.signed_by(sign.secret_headers(Template::names));
        }
        Self {
            requests,
            steps: steps
                .enumerate()
                .filter(|(_, step)| !step.is_name())
                .map(|(at, step)| (at, step.name.clone(), step.chance.is_some()))
                .collect(),
            state: RefCell::new(State {
                listener,
                secrets,
                wire: Vec::new(),
                lines: Vec::new(),
                connected: None,
                done: BTreeSet::new(),
                left_out: BTreeSet::new(),
                totals: Totals::default(),
            }),
        }
    }

    /// Masks these values from the start, such as passwords from provisioning.
    pub fn learn<'a>(&self, secrets: impl Iterator<Item = &'a str>) {
        let mut state = self.state.borrow_mut();
        secrets.for_each(|secret| state.secrets.learn(secret));
    }

    /// Ends the session, and reports its skipped steps.
    pub fn finish(&self) -> Totals {
        let state = &mut *self.state.borrow_mut();
        for (at, step, by_chance) in &self.steps {
            if !state.done.contains(at) {
                let why = match state.left_out.contains(at) {
                    true => NotDone::Condition,
                    false if *by_chance => NotDone::Chance,
                    false => NotDone::Other,
                };
                (state.listener)(Moment::NotDone {
                    step: step.clone(),
                    why,
                });
            }
        }
        state.totals
    }

    /// The totals so far.
    pub fn totals(&self) -> Totals {
        self.state.borrow().totals
    }
}

/// The requests after those of the steps: the probe, which a dry run doesn't send, and the token requests.
fn further(workload: &Workload) -> impl Iterator<Item = Known> {
    let step = workload.session.steps.len().saturating_sub(1);
    let tokens = workload.tokens.iter();
    let asked = workload.probe.iter().map(|probe| &probe.request);
    let asked = asked.chain(tokens.flat_map(|tokens| [&tokens.obtain, &tokens.refresh]));
    asked.map(move |asked| Known {
        phase: Phase::Session,
        step,
        name: TOKEN_STEP.to_owned(),
        repeats: false,
        place: (0, 1),
        asked: asked.clone(),
    })
}

/// The name of the step that counts a request of a step.
fn counted_as(steps: &[Step], at: usize, request: usize) -> String {
    let parallel = steps[at].parallel.as_ref();
    let counted = at + parallel.map_or(0, |parallel| parallel.counts_as(request));
    steps.get(counted).unwrap_or(&steps[at]).name.clone()
}

/// Returns true if a step repeats until its condition holds.
fn is_loop(step: &Step) -> bool {
    let control = step.control.as_ref();
    control.is_some_and(|control| control.until.is_some())
}

impl Tap for Recorder {
    fn connected(&self, _: &BaseUrl, began: Nanos, at: Nanos) {
        self.state.borrow_mut().connected = Some((began, at));
    }

    fn sent(&self, server: &BaseUrl, version: Version, at: Nanos, message: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        state.wire.push(Wire {
            server: server.to_string(),
            version,
            connected: state.connected.take(),
            at,
            sent: message[..message.len().min(KEPT)].to_vec(),
            received: Vec::new(),
            bytes: 0,
            first: None,
            last: None,
        });
    }

    fn received(&self, at: Nanos, bytes: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        let Some(wire) = state.wire.last_mut() else {
            return;
        };
        let room = KEPT - wire.received.len();
        wire.received.extend(&bytes[..bytes.len().min(room)]);
        wire.bytes += bytes.len() as u64;
        wire.first.get_or_insert(at);
        wire.last = Some(at);
    }

    fn spoke(&self, _: Nanos, side: Side, text: &str) {
        let state = &mut *self.state.borrow_mut();
        let end = text.floor_char_boundary(KEPT);
        let text = state.secrets.masked(&text[..end]);
        state.lines.push(Line { side, text });
    }
}

impl Witness for Recorder {
    fn left_out(&self, request: RequestId) {
        if let Some(known) = self.requests.get(request as usize) {
            self.state.borrow_mut().left_out.insert(known.step);
        }
    }

    fn logged(&self, line: &str) {
        (self.state.borrow_mut().listener)(Moment::Logged(line.to_owned()));
    }

    fn exchanged(&self, request: RequestId, scope: &UserScope, exchange: &Exchange) {
        let Some(known) = self.requests.get(request as usize) else {
            return;
        };
        let state = &mut *self.state.borrow_mut();
        let wire = std::mem::take(&mut state.wire);
        let lines = std::mem::take(&mut state.lines);
        state.connected = None;
        let messages = wire
            .into_iter()
            .map(|wire| wire.message(&mut state.secrets));
        let messages: Vec<Message> = messages.collect();
        // A redirect captures nothing yet, and captures of a failed request are dropped.
        let is_answered = matches!(exchange, Exchange::Done { result: Ok(()), .. });
        let captured = match is_answered && !exchange.redirected() {
            true => captured(&known.asked, scope, &mut state.secrets),
            false => Vec::new(),
        };
        let ended = ended(known, scope, exchange, &state.secrets);
        match ended {
            Ended::Well => state.totals.well += 1,
            Ended::Failed { .. } | Ended::Unmade { .. } => state.totals.failed += 1,
            Ended::Skipped { .. } => state.totals.skipped += 1,
        }
        if known.phase == Phase::Session {
            state.done.insert(known.step);
        }
        let (took_ms, timing) = match exchange {
            Exchange::Done {
                sent,
                ended,
                phases,
                ..
            } => (ms(ended.saturating_sub(*sent)), timing(phases)),
            _ => (0.0, Timing::default()),
        };
        let line = known.asked.line();
        let exchanged = Exchanged {
            phase: known.phase,
            step: known.name.clone(),
            round: known.repeats.then(|| scope.round()),
            place: known.place,
            user: scope.index(),
            line: state.secrets.masked(&line),
            messages,
            lines,
            timing,
            ended,
            took_ms,
            expected: expected(&known.asked),
            captured,
        };
        (state.listener)(Moment::Exchanged(Box::new(exchanged)));
    }
}

impl Wire {
    fn message(self, secrets: &mut Secrets) -> Message {
        let request = message::request(&self.sent);
        let to_head = request.method == "HEAD";
        let response = message::response(&self.received, self.bytes, to_head);
        let began = self.connected.map_or(self.at, |(began, _)| began);
        Message {
            server: self.server,
            version: self.version,
            request: secrets.request(request),
            response: response.map(|response| secrets.response(response)),
            timing: Timing {
                began_ms: ms(began),
                connect_ms: self
                    .connected
                    .map(|(began, at)| ms(at.saturating_sub(began))),
                wait_ms: self.first.map(|first| ms(first.saturating_sub(self.at))),
                receive_ms: self
                    .first
                    .zip(self.last)
                    .map(|(first, last)| ms(last.saturating_sub(first))),
            },
        }
    }
}

/// The timing in protocols other than HTTP.
fn timing(phases: &Phases) -> Timing {
    use lab_client::Phase::{Connect, Receive, Tls, Wait};
    let of = |phase: lab_client::Phase| phases.0[phase as usize];
    let connect = of(Connect).map(|took| ms(took + of(Tls).unwrap_or_default()));
    Timing {
        began_ms: 0.0,
        connect_ms: connect,
        wait_ms: of(Wait).map(ms),
        receive_ms: of(Receive).map(ms),
    }
}

fn ms(nanos: Nanos) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e3
}

fn ended(known: &Known, scope: &UserScope, exchange: &Exchange, secrets: &Secrets) -> Ended {
    match exchange {
        Exchange::Done { result: Ok(()), .. } => Ended::Well,
        Exchange::Done {
            result: Err(failure),
            ..
        } => Ended::Failed {
            class: failure.class,
            detail: secrets.masked(&failure.detail),
        },
        Exchange::Skipped => Ended::Skipped {
            empty: empty(&known.asked, scope),
        },
        Exchange::Unmade { detail } => Ended::Unmade {
            detail: secrets.masked(detail),
        },
    }
}

/// The variables of a request without a value.
fn empty(asked: &Asked, scope: &UserScope) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut add = |template: &Template| texts.push(template.source().to_owned());
    add(&asked.target);
    let said = asked.said.iter().flat_map(|said| said.templates());
    said.for_each(&mut add);
    asked.headers.iter().for_each(|(_, value)| add(value));
    if let Some((user, password)) = &asked.basic_auth {
        add(user);
        add(password);
    }
    match &asked.body {
        Body::Empty => {}
        Body::Json(template) | Body::Text(template) => add(template),
        Body::Form(fields) => fields.iter().for_each(|(_, value)| add(value)),
        Body::Pieces(pieces) => pieces.iter().for_each(|piece| match piece {
            Piece::Text(text) => add(text),
            Piece::File(_) => {}
        }),
    }
    let mut empty: Vec<String> = texts
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|word| scope.slot(word).is_some_and(|slot| scope.count(slot) == 0))
        .map(str::to_owned)
        .collect();
    empty.sort();
    empty.dedup();
    empty
}

fn captured(asked: &Asked, scope: &UserScope, secrets: &mut Secrets) -> Vec<Captured> {
    let one = |capture: &lab_workload::Capture| {
        let count = scope.count(capture.slot);
        let first = scope.get(&capture.variable).unwrap_or_default();
        if is_telling(&capture.variable) {
            secrets.learn(&first);
        }
        let short = is_telling(&capture.variable) && !first.is_empty();
        let first = match secrets.masked(&first) {
            same if same == first && short && !secrets.are_shown() => MASK.to_owned(),
            masked => masked.chars().take(VALUE).collect(),
        };
        Captured {
            variable: capture.variable.clone(),
            count,
            first,
        }
    };
    asked.captures.iter().map(one).collect()
}

/// An expectation, in words.
fn wanted(one: &Expectation) -> String {
    match one {
        Expectation::Json { path, value } => format!("{} = {}", path.as_str(), value.source()),
        Expectation::Number {
            path,
            comparison,
            value,
        } => format!("{} {} {}", path.as_str(), comparison.sign(), value.source()),
        Expectation::Found { path, state } => format!(
            "{} {}",
            path.as_str(),
            match state {
                JsonState::Absent => "is absent",
                JsonState::Null => "is null",
                JsonState::Present => "is present",
            }
        ),
        Expectation::Graphql => "an answer of GraphQL without errors".to_owned(),
        Expectation::Schema(schema) => format!("a body as {} has it", schema.name()),
        Expectation::Contains(text) => format!("“{}” in the body", text.source()),
        Expectation::NotContains(text) => format!("no “{}” in the body", text.source()),
        Expectation::Time { below } => format!("a time below {below:?}"),
        Expectation::Size { low, high } => match high {
            &u64::MAX => format!("at least {low} bytes"),
            high => format!("{low} to {high} bytes"),
        },
        Expectation::Header { name, text } if text.source().is_empty() => format!("header {name}"),
        Expectation::Header { name, text } => format!("“{}” in header {name}", text.source()),
    }
}

/// The expectations of a response, in words.
fn expected(asked: &Asked) -> String {
    let status = |range: &std::ops::RangeInclusive<u16>| match (*range.start(), *range.end()) {
        (low, high) if low == high => low.to_string(),
        (low, high) if low % 100 == 0 && high == low + 99 => format!("{}xx", low / 100),
        (low, high) => format!("{low}..{high}"),
    };
    let statuses: Vec<String> = asked.expect.iter().map(status).collect();
    let called = |range: &std::ops::RangeInclusive<u16>| {
        let name = GRPC_STATUSES.get(usize::from(*range.start()));
        name.map_or_else(|| status(range), |name| (*name).to_owned())
    };
    let mut parts = vec![match asked.said.as_deref() {
        None => format!("status {}", statuses.join(", ")),
        Some(ProtocolRequest::Call(_)) => {
            let names: Vec<String> = asked.expect.iter().map(called).collect();
            names.join(", ")
        }
        Some(_) => "any answer that is not an error".to_owned(),
    }];
    parts.extend(asked.answer.iter().map(wanted));
    parts.extend(asked.captures.iter().map(|capture| {
        let place = match &capture.source {
            CaptureSource::JsonPath(path) => path.as_str().to_owned(),
            CaptureSource::JsonPathTemplate(path) => path.source().to_owned(),
            CaptureSource::Header(name) => format!("header {name}"),
            CaptureSource::Cookie(name) => format!("cookie {name}"),
            CaptureSource::Regex(pattern) => format!("/{}/", pattern.as_str()),
            CaptureSource::RegexAll(pattern) => format!("all of /{}/", pattern.as_str()),
            CaptureSource::Xml(path) => path.as_str().to_owned(),
            CaptureSource::Html(path) => format!("html{}", path.as_str()),
            CaptureSource::RequestPath => "its own path".to_owned(),
            CaptureSource::Body => "the body".to_owned(),
            CaptureSource::Status => "the status".to_owned(),
        };
        format!("{} from {place}", capture.variable)
    }));
    parts.join("; ")
}
