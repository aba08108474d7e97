//! The validated workload, the driver's input.
//!
//! Every value here is validated. Templates are compiled; the same structure with templates as text is the wire form
//! (see [`crate::Message`]), which is why it is generic in them. It knows no files and lines, no time, and no sockets.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use lab_filters::JsonSchema;
use lab_filters::sign::Sign;
use serde::{Deserialize, Serialize};

use crate::attached::Attached;
use crate::capture::Capture;
use crate::control::{Control, Group, Retry, SESSION, Transaction, Visitor};
use crate::credentials::Credentials;
use crate::data::Data;
use crate::expectation::Expectation;
use crate::inputs::{InputName, Inputs};
use crate::level::Parameters;
use crate::measure::Measure;
use crate::parallel::Parallel;
use crate::scope::Slot;
use crate::scripted::Scripted;
use crate::shared::{Put, Queued, SharedState, Take};
use crate::speech::{ProtocolRequest, Speech};
use crate::template::{Template, Unseeded};
use crate::tokens::Tokens;
use crate::wait::{Chance, Wait, time_at_speed};
use lab_filters::Descriptors;

/// The behaviour of virtual users.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Workload<T = Template> {
    /// Short name.
    pub name: String,
    /// Description.
    pub about: String,
    /// Constants of its templates, with their values.
    pub parameters: Parameters,
    /// Variables of each user, evaluated once in this order with `index` (0-based) and `users`.
    pub user: Vec<(String, T)>,
    /// Steps before measuring. All users finish a step before the next starts; waits are zero.
    pub setup: Vec<Step<T>>,
    /// The repeated session.
    pub session: Session<T>,
    /// A single request measured besides the load.
    pub probe: Option<Probe<T>>,
    /// The data that a session transfers, if its rate is of interest.
    pub transfer: Option<Transfer>,
    /// Every variable of templates, by slot: `user:` variables, `password`, captures, and what `set:` sets.
    pub variables: Arc<[String]>,
    /// The fewest users that make sense; 0 for any number.
    #[serde(default)]
    pub least_users: u32,
    /// Values that its templates need of the environment.
    #[serde(default, rename = "given")]
    pub inputs: Arc<Inputs>,
    /// The rows assigned to its users or sessions.
    #[serde(default)]
    pub data: Option<Arc<Data>>,
    /// State that its users share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SharedState>,
    /// Files whose content its requests carry.
    #[serde(default)]
    pub files: Vec<Attached>,
    /// The part of its requests that start a trace, 0 to 1; `None` if unset.
    #[serde(default)]
    pub trace: Option<f64>,
    /// The longest body of a response; `None` is the driver's own limit.
    #[serde(default)]
    pub max_body: Option<u64>,
    /// The protocol of its users; HTTP by default.
    #[serde(default = "http")]
    pub speech: Speech<T>,
    /// How users obtain tokens. Token requests count as the session's last step, which is only a name.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Box<Tokens<Request<T>>>>,
    /// The program that plays the sessions. Its steps are then only names: for each request of the program a request
    /// that counts it, and last the step of the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripted: Option<Arc<Scripted>>,
}

/// The default for an older message.
fn http<T>() -> Speech<T> {
    Speech::Http
}

/// The repeated cycle of one user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session<T = Template> {
    /// Fixed cycle time; `None` starts the next cycle at once.
    pub pace: Option<Duration>,
    /// At least one.
    pub steps: Vec<Step<T>>,
    /// The steps that run together if a condition holds, or until one does; in order, not nested.
    #[serde(default = "Vec::new")]
    pub groups: Vec<Group<T>>,
    /// The steps that are timed together: outer before inner ones, the others in order.
    #[serde(default)]
    pub transactions: Vec<Transaction>,
    /// The user of each session.
    #[serde(default)]
    pub visitor: Visitor,
}

/// One step: a wait, then one or more requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step<T = Template> {
    /// The name in reports; unique in its session.
    pub name: String,
    /// Tags shared with other steps, of any workload.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Think time before the first request.
    pub wait: Wait,
    /// Rounds of the step in sequence (each with its wait); 1 by default.
    pub repeat: u32,
    /// In sequence, except those that are `parallel`. Empty for a step that is a name for requests of the step before
    /// it.
    pub requests: Vec<Request<T>>,
    /// Its parallel requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Box<Parallel>>,
    /// The chance to run in a session; `None` runs in all.
    pub chance: Option<Chance>,
    /// In a setup: only the first user runs it.
    pub once: bool,
    /// In a session: conditions and loops.
    #[serde(default = "nothing")]
    pub control: Option<Box<Control<T>>>,
    /// In a session: retries of a failed request.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// In a session: true if it ends after a failed request of this step, with its retries.
    #[serde(default)]
    pub ends_session: bool,
    /// In a session: numbers in its responses.
    #[serde(default = "Vec::new")]
    pub measures: Vec<Measure<T>>,
    /// In a session: entries taken from and added to shared queues.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub queued: Option<Box<Queued<T>>>,
}

/// The default for an older message.
fn nothing<T>() -> Option<T> {
    None
}

/// One request of a step; of HTTP by default.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request<T = Template> {
    /// A token of capital letters: `GET`, `PROPFIND`, and any other that a server supports, except `CONNECT`.
    pub method: String,
    /// Path and query, or an absolute `http(s)://` URL. Render it before headers and body: it
    /// also evaluates the step's `set:` variables.
    pub target: T,
    /// In file order, without `Content-Length` and `Cookie`.
    pub headers: Vec<(String, T)>,
    /// Cookies besides those that the server sets, with unique names.
    #[serde(default = "Vec::new")]
    pub cookies: Vec<OwnCookie<T>>,
    /// The body and, by its kind, its default content type.
    pub body: Body<T>,
    /// HTTP Basic credentials.
    pub basic_auth: Option<(T, T)>,
    /// Accepted statuses; never empty (200..=299 by default).
    pub expect: Vec<RangeInclusive<u16>>,
    /// Further requirements for a response; a violation is an error.
    #[serde(default = "Vec::new")]
    pub answer: Vec<Expectation<T>>,
    /// Values captured for later requests of this user.
    pub captures: Vec<Capture<T>>,
    /// True if it requests a compressed response, by a header with the accepted codings.
    #[serde(default)]
    pub compressed: bool,
    /// Most redirects to follow; 0 treats a redirect as the response.
    #[serde(default)]
    pub follow: u32,
    /// Timeout of the response; `None` is the load's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Set if its response is an event stream; selects the last event.
    #[serde(default = "no_events")]
    pub events: Option<Events<T>>,
    /// Its signature.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub sign: Option<Box<Sign<T>>>,
    /// Its credentials; other servers get none.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Box<Credentials<T>>>,
    /// True if its response holds secrets and is never shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_answer: bool,
    /// The request in another protocol than HTTP: then only `expect`, `answer`, and `captures` count besides. The empty
    /// `target` is still rendered first.
    #[serde(default = "nothing_said")]
    pub said: Option<Box<ProtocolRequest<T>>>,
}

/// A cookie that the workload sets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OwnCookie<T = Template> {
    /// The name; empty if the value is a list as in a `Cookie` header.
    pub name: String,
    /// The value.
    pub value: T,
    /// True for a cookie of the whole workload: it is only sent to the system, is replaced by a cookie of this name
    /// that the server sets, and is not sent while one of its variables has no value.
    pub is_default: bool,
}

fn nothing_said<T>() -> Option<Box<ProtocolRequest<T>>> {
    None
}

/// Server-sent events that a request reads: until one of these conditions holds, or to the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Events<T = Template> {
    /// The last event's data contains this.
    pub until: Option<T>,
    /// The last event has this type.
    pub named: Option<String>,
    /// The last event is the nth.
    pub count: Option<u32>,
    /// More events are an error.
    pub at_most: u32,
}

fn no_events<T>() -> Option<Events<T>> {
    None
}

impl<T> Events<T> {
    /// Returns true if only the server ends the stream.
    pub fn takes_all(&self) -> bool {
        self.until.is_none() && self.named.is_none() && self.count.is_none()
    }
}

/// A request body.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body<T = Template> {
    /// None.
    Empty,
    /// A JSON document whose strings are templates, compiled to one text template
    /// (values are escaped as JSON strings on substitution). `application/json`.
    Json(T),
    /// `application/x-www-form-urlencoded`: names are percent-encoded, values are rendered so.
    Form(Vec<(String, T)>),
    /// Unchanged; content type from `headers`, else `text/plain; charset=utf-8`.
    Text(T),
    /// A sequence of pieces: the parts of a form with files, or a file alone. Its content type is among the headers.
    Pieces(Vec<Piece<T>>),
}

/// A piece of a body.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece<T = Template> {
    /// Text.
    Text(T),
    /// The content of the file with this index in [`Workload::files`].
    File(usize),
}

/// A single request measured besides the load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Probe<T = Template> {
    /// Sent with user 0's variables, on its own connection.
    pub request: Request<T>,
    /// Interval of planned sends.
    pub every: Duration,
}

/// The data that a session transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Its source or destination.
    pub place: String,
    /// Its size, above zero.
    pub bytes: u64,
    /// The size of its chunks, except perhaps the last; above zero and at most `bytes`.
    pub chunk_bytes: u64,
}

impl Workload {
    /// The same workload with waits, pace, and probe interval divided by `speed`, a positive
    /// number.
    #[must_use]
    pub fn at_speed(&self, speed: f64) -> Self {
        let mut workload = self.clone();
        for step in workload.setup.iter_mut().chain(&mut workload.session.steps) {
            step.wait = step.wait.at_speed(speed);
            if let Some(retry) = &mut step.retry {
                retry.wait = retry.wait.at_speed(speed);
                retry.max_wait = retry.max_wait.map(|most| time_at_speed(most, speed));
            }
            if let Some(take) = step.queued.as_mut().and_then(|of| of.take.as_mut()) {
                take.within = time_at_speed(take.within, speed);
            }
        }
        if let Some(scripted) = &mut workload.scripted {
            Arc::make_mut(scripted).speed *= speed;
        }
        workload.session.pace = workload.session.pace.map(|pace| time_at_speed(pace, speed));
        if let Some(probe) = &mut workload.probe {
            probe.every = time_at_speed(probe.every, speed);
        }
        workload
    }

    /// Values that its templates need of the environment.
    #[must_use]
    pub fn requested_inputs(&self) -> Vec<InputName> {
        let mut asked = Vec::new();
        let noted = self.try_map(|template| {
            template.inputs(&mut asked);
            Ok::<(), std::convert::Infallible>(())
        });
        debug_assert!(noted.is_ok());
        asked
    }

    /// Names of the counters in its templates.
    #[must_use]
    pub fn counters(&self) -> Vec<String> {
        let mut counters = Vec::new();
        let noted = self.try_map(|template| {
            template.counters(&mut counters);
            Ok::<(), std::convert::Infallible>(())
        });
        debug_assert!(noted.is_ok());
        counters
    }

    /// Names of the session's steps whose requests the seed doesn't determine: they contain the time of day, a
    /// signature with a random part, a counter's number, or a variable that has any of these.
    #[must_use]
    pub fn unseeded_steps(&self) -> Vec<String> {
        let mut unseeded = Unseeded::new(&self.variables);
        for (name, template) in &self.user {
            let slot = self
                .slot(name)
                .filter(|_| template.is_unseeded(&mut unseeded));
            slot.into_iter().for_each(|slot| unseeded.hold(slot));
        }
        for (rows, _) in self.shared.iter().filter_map(SharedState::pool) {
            rows.columns
                .iter()
                .for_each(|(_, slot)| unseeded.hold(*slot));
        }
        let mut is_unseeded = |step: &Step| {
            let mut found = step.requests.iter().any(Request::has_signed_time);
            if let Some(take) = step.take() {
                unseeded.hold(take.slot);
                found = true;
            }
            // Measures are not sent.
            let mut sent = step.clone();
            sent.measures.clear();
            let looked = steps(std::slice::from_ref(&sent), &mut |template: &Template| {
                found |= template.is_unseeded(&mut unseeded);
                Ok::<(), std::convert::Infallible>(())
            });
            looked.is_ok() && found
        };
        let before = self.setup.iter().chain(&self.session.steps);
        // An earlier step may send in the next session what a step sets.
        let _held = before.filter(|step| is_unseeded(step)).count();
        let steps = self.session.steps.iter().filter(|step| is_unseeded(step));
        steps.map(|step| step.name.clone()).collect()
    }

    /// The slot of a variable.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.variables
            .iter()
            .position(|v| v == name)
            .map(|i| i as Slot)
    }
}

impl<T> Session<T> {
    /// Names of its transactions, as recorded: the whole session is first if it can have more than one request.
    pub fn transaction_names(&self) -> impl Iterator<Item = &str> {
        let session = self.is_transaction().then_some(SESSION);
        let named = self.transactions.iter().map(|one| one.name.as_str());
        session.into_iter().chain(named)
    }

    /// Returns true if the session is recorded as a transaction: for a session with one request, sent once, its
    /// response time is the same.
    #[must_use]
    pub fn is_transaction(&self) -> bool {
        match self.steps.as_slice() {
            [step] => {
                let is_named = !self.transactions.is_empty();
                let repeats = step.repeat > 1 || step.control.is_some() || step.retry.is_some();
                is_named || step.requests.len() > 1 || repeats
            }
            _ => true,
        }
    }

    /// Its steps in order: single ones, or those of a group with their common control.
    pub fn blocks(&self) -> impl Iterator<Item = (Range<usize>, Option<&Control<T>>)> {
        let mut groups = self.groups.iter().peekable();
        let mut next = 0;
        std::iter::from_fn(move || {
            let at = next;
            let group = groups.next_if(|group| group.steps.start <= at);
            next = group.map_or(at + 1, |group| group.steps.end.max(at + 1));
            let steps = at..next.min(self.steps.len());
            (!steps.is_empty()).then_some((steps, group.map(|group| &group.control)))
        })
    }
}

impl<T> Step<T> {
    /// The entry it takes from a queue before its first request.
    #[must_use]
    pub fn take(&self) -> Option<&Take> {
        self.queued.as_ref()?.take.as_ref()
    }

    /// The entry it adds to a queue when its requests met their `expect`.
    #[must_use]
    pub fn put(&self) -> Option<&Put<T>> {
        self.queued.as_ref()?.put.as_ref()
    }

    /// Planned rounds if the step runs: for a loop the first one, for a name none.
    #[must_use]
    pub fn planned_rounds(&self) -> u32 {
        if self.is_name() {
            return 0;
        }
        match self.control.as_ref().and_then(|c| c.until.as_ref()) {
            Some(_) => 1,
            None => self.repeat,
        }
    }
}

impl<T> Workload<T> {
    /// All its rows of files.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<Data>> {
        let pools = self.shared.iter().filter_map(SharedState::pool);
        self.data.iter().chain(pools.map(|(rows, _)| rows))
    }

    /// All its rows of files, mutable.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Arc<Data>> {
        let pools = self.shared.iter_mut().filter_map(SharedState::rows_mut);
        self.data.iter_mut().chain(pools)
    }

    /// All requests, in this order: those of the setup, of the session, the probe, and the token requests: for a user's
    /// first token, and for further ones.
    pub fn requests(&self) -> impl Iterator<Item = &Request<T>> {
        let steps = self.setup.iter().chain(&self.session.steps);
        let of_steps = steps.flat_map(|step| &step.requests);
        let tokens = self.tokens.iter();
        of_steps
            .chain(self.probe.as_ref().map(|probe| &probe.request))
            .chain(tokens.flat_map(|tokens| [&tokens.obtain, &tokens.refresh]))
    }

    /// The schemas of its expected responses, one for each request that names one.
    pub fn schemas(&self) -> impl Iterator<Item = &JsonSchema> {
        let answers = self.requests().flat_map(|request| &request.answer);
        answers.filter_map(|one| match one {
            Expectation::Schema(schema) => Some(schema),
            _ => None,
        })
    }

    /// Descriptors of the services that it calls.
    #[must_use]
    pub fn descriptors(&self) -> Option<&Descriptors> {
        match &self.speech {
            Speech::Grpc { descriptors, .. } => Some(descriptors),
            _ => None,
        }
    }

    /// Maps its templates.
    pub(crate) fn try_map<U, E>(
        &self,
        mut map: impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Workload<U>, E> {
        let map = &mut map;
        let probe = self.probe.as_ref().map(|probe| {
            Ok(Probe {
                request: probe.request.try_map(map)?,
                every: probe.every,
            })
        });
        Ok(Workload {
            name: self.name.clone(),
            about: self.about.clone(),
            parameters: self.parameters.clone(),
            probe: probe.transpose()?,
            user: named(&self.user, map)?,
            setup: steps(&self.setup, map)?,
            session: Session {
                pace: self.session.pace,
                steps: steps(&self.session.steps, map)?,
                groups: groups(&self.session.groups, map)?,
                transactions: self.session.transactions.clone(),
                visitor: self.session.visitor,
            },
            transfer: self.transfer.clone(),
            variables: Arc::clone(&self.variables),
            least_users: self.least_users,
            inputs: Arc::clone(&self.inputs),
            data: self.data.clone(),
            shared: self.shared.clone(),
            files: self.files.clone(),
            trace: self.trace,
            max_body: self.max_body,
            speech: self.speech.try_map(map)?,
            tokens: boxed(self.tokens.as_deref(), |tokens| {
                tokens.try_map(&mut |request: &Request<T>| request.try_map(map))
            })?,
            scripted: self.scripted.clone(),
        })
    }
}

impl<T> Request<T> {
    /// Returns true if it sends the user's bearer token.
    #[must_use]
    pub fn shows_token(&self) -> bool {
        matches!(self.credentials.as_deref(), Some(Credentials::Bearer(_)))
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Request<U>, E> {
        let basic_auth = match &self.basic_auth {
            Some((name, password)) => Some((map(name)?, map(password)?)),
            None => None,
        };
        let body = match &self.body {
            Body::Empty => Body::Empty,
            Body::Json(json) => Body::Json(map(json)?),
            Body::Form(fields) => Body::Form(named(fields, map)?),
            Body::Text(text) => Body::Text(map(text)?),
            Body::Pieces(pieces) => {
                let pieces = pieces.iter().map(|piece| piece.try_map(map));
                Body::Pieces(pieces.collect::<Result<_, E>>()?)
            }
        };
        let captures: Result<_, E> = self.captures.iter().map(|one| one.try_map(map)).collect();
        let events = self.events.as_ref().map(|events| {
            Ok(Events {
                until: events.until.as_ref().map(&mut *map).transpose()?,
                named: events.named.clone(),
                count: events.count,
                at_most: events.at_most,
            })
        });
        let answer: Result<_, E> = self.answer.iter().map(|one| one.try_map(map)).collect();
        let cookies = self.cookies.iter().map(|cookie| {
            Ok(OwnCookie {
                name: cookie.name.clone(),
                value: map(&cookie.value)?,
                is_default: cookie.is_default,
            })
        });
        let cookies: Result<_, E> = cookies.collect();
        Ok(Request {
            method: self.method.clone(),
            captures: captures?,
            answer: answer?,
            target: map(&self.target)?,
            headers: named(&self.headers, map)?,
            cookies: cookies?,
            body,
            basic_auth,
            expect: self.expect.clone(),
            compressed: self.compressed,
            follow: self.follow,
            timeout: self.timeout,
            events: events.transpose()?,
            sign: boxed(self.sign.as_deref(), |sign| sign.try_map(map))?,
            credentials: boxed(self.credentials.as_deref(), |one| one.try_map(map))?,
            hides_answer: self.hides_answer,
            said: boxed(self.said.as_deref(), |said| said.try_map(map))?,
        })
    }
}

impl Request {
    /// Returns true if its signature contains the time of day.
    fn has_signed_time(&self) -> bool {
        let sign = self.sign.as_ref();
        sign.is_some_and(|sign| sign.has_time(Template::names))
    }

    /// A readable line: `GET {{ path }}`.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.said {
            Some(said) => said.line(),
            None => format!("{} {}", self.method, self.target.source()),
        }
    }
}

impl<T> Piece<T> {
    fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Piece<U>, E> {
        Ok(match self {
            Self::Text(text) => Piece::Text(map(text)?),
            Self::File(place) => Piece::File(*place),
        })
    }
}

fn boxed<T, U, E>(
    one: Option<&T>,
    map: impl FnOnce(&T) -> Result<U, E>,
) -> Result<Option<Box<U>>, E> {
    one.map(|one| map(one).map(Box::new)).transpose()
}

fn named<T, U, E>(
    list: &[(String, T)],
    map: &mut impl FnMut(&T) -> Result<U, E>,
) -> Result<Vec<(String, U)>, E> {
    list.iter()
        .map(|(name, template)| Ok((name.clone(), map(template)?)))
        .collect()
}

fn steps<T, U, E>(
    steps: &[Step<T>],
    map: &mut impl FnMut(&T) -> Result<U, E>,
) -> Result<Vec<Step<U>>, E> {
    let step = |step: &Step<T>| {
        let requests = step.requests.iter().map(|request| request.try_map(map));
        let requests = requests.collect::<Result<_, E>>()?;
        let control = step.control.as_ref().map(|control| control.try_map(map));
        let queued = step.queued.as_ref().map(|queued| queued.try_map(map));
        let queued = queued.transpose()?.map(Box::new);
        let control = control.transpose()?.map(Box::new);
        let measures = step.measures.iter().map(|measure| measure.try_map(map));
        Ok(Step {
            measures: measures.collect::<Result<_, E>>()?,
            name: step.name.clone(),
            tags: step.tags.clone(),
            wait: step.wait,
            repeat: step.repeat,
            requests,
            parallel: step.parallel.clone(),
            chance: step.chance,
            once: step.once,
            control,
            retry: step.retry,
            queued,
            ends_session: step.ends_session,
        })
    };
    steps.iter().map(step).collect()
}

fn groups<T, U, E>(
    groups: &[Group<T>],
    map: &mut impl FnMut(&T) -> Result<U, E>,
) -> Result<Vec<Group<U>>, E> {
    let group = |group: &Group<T>| {
        Ok(Group {
            steps: group.steps.clone(),
            control: group.control.try_map(map)?,
        })
    };
    groups.iter().map(group).collect()
}
