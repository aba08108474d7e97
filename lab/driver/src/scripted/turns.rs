//! The turns of a session that a script plays: waits, requests, and the records of what happened between them.

use lab_client::time::Nanos;
use lab_client::{ErrorClass, Unmade};
use lab_script::{Answer, Event, Level, MetricKind, Outcome, Request, Thrown, Turn};
use lab_workload::{CHECK_MEASURE, MAX_MEASURED, MAX_TRANSACTION_LEVELS, MEASURE_SCALE};

use serde_json::Value;

use super::convert::{answer, as_set_cookie, parts, unsent};
use super::play::Playing;
use crate::client::Client;
use crate::session::DueRequest;
use crate::user::{Due, Life, Shared};
use lab_scripted::Player;

/// The measure of all checks together.
const ALL_CHECKS: usize = 0;

/// The end of a session: the value of the script's function, or its uncaught error.
pub(crate) type End = Result<Option<Value>, String>;

/// A session in progress.
pub(super) struct Session<'a> {
    pub(super) playing: &'a Playing,

    /// When the next request is due, once a wait has set it.
    due: Option<Due>,
    /// The open groups, outermost first, each with its transaction if it is recorded.
    groups: Vec<Option<usize>>,
}

impl<C: Client> Shared<C> {
    /// Plays one session: calls the script's function, and does what its turns end with. Returns the function's value,
    /// or its uncaught error.
    pub(crate) async fn play(&self, life: &mut Life<C>, playing: &Playing) -> End {
        self.begin_session(life);
        self.client.clear_cookies(&life.user.session);
        let user = life.user.place;
        self.transactions.begin(user, 0, 0);
        let player = Player {
            user: self.drive.first + life.user.index,
            session: life.user.scope.cycle(),
        };
        let mut session = Session {
            playing,
            due: None,
            groups: Vec::new(),
        };
        let mut turn = playing.begin(player, self.zero.get());
        let end = loop {
            self.take_events(life, &mut session);
            let outcome = match turn {
                Turn::Wait { micros } => {
                    let wait = playing.wait(micros);
                    self.rest(life, &mut session, wait)
                        .await
                        .then_some(Outcome::Waited)
                }
                Turn::Request(request) => {
                    let answered = self.answer(life, &mut session, &request).await;
                    answered.map(|answer| Outcome::Answers(vec![answer]))
                }
                Turn::Batch(requests) => {
                    let answered = self.answer_all(life, &mut session, requests).await;
                    answered.map(Outcome::Answers)
                }
                Turn::Done { value } => break Ok(value),
                Turn::Threw(thrown) => break Err(describe(&thrown)),
            };
            let Some(outcome) = outcome else {
                playing.end_early(player);
                break Ok(None);
            };
            turn = playing.resume(player, outcome);
        };
        if let Err(detail) = &end {
            self.threw(life, playing, detail);
        }
        self.end_groups(life, &mut session);
        end
    }

    /// Ends the open groups, and the session.
    fn end_groups(&self, life: &Life<C>, session: &mut Session<'_>) {
        while !session.groups.is_empty() {
            self.end_group(life, session);
        }
        self.end_transaction(life, 0);
    }

    /// Waits so long, and after failures as long as any user. Returns false if the user leaves.
    async fn rest(&self, life: &mut Life<C>, session: &mut Session<'_>, wait: Nanos) -> bool {
        let step = session.playing.own_step;
        // Two waits in a row are one: the plan is for the end of both.
        if let Some(planned) = session.due.take().and_then(|due| due.planned) {
            life.state.arrived = Some(planned);
        }
        let waiting = self.begin_wait_of(life, step, wait);
        if let Some(until) = Self::sleeps_until(life, &waiting) {
            life.sleep_until(&self.client, until).await;
        }
        session.due = self.end_wait_of(life, (step, wait > 0), &waiting);
        session.due.is_some()
    }

    /// Returns when the next request is due; `None` if the user leaves.
    pub(super) async fn next_due(
        &self,
        life: &mut Life<C>,
        session: &mut Session<'_>,
    ) -> Option<Due> {
        let is_paused = life.state.not_before > life.state.at;
        if session.due.is_none() || is_paused {
            self.rest(life, session, 0).await;
        }
        session.due.take().filter(|_| !life.state.leaves())
    }

    /// Sends a request, and returns its response; `None` if the user leaves.
    async fn answer(
        &self,
        life: &mut Life<C>,
        session: &mut Session<'_>,
        request: &Request,
    ) -> Option<Answer> {
        let due = self.next_due(life, session).await?;
        let playing = session.playing;
        let step = playing.step(request.name.as_deref(), request.site);
        let id = self.script.session[step].requests.start;
        self.set_cookies(life, request);
        let made = parts(request)
            .map_err(Unmade::Failed)
            .and_then(|parts| self.client.make_of(&life.user.session, id, &parts));
        match made {
            Ok(made) => self.client.take_up(&mut life.user.session, made),
            Err(unmade) => {
                let why = why_unmade(unmade);
                log_unsent(playing, request, &why);
                self.unmade(life, step, why.clone());
                return Some(unsent(&why, &request.url));
            }
        }
        life.user.scope.begin_request();
        let asked = DueRequest {
            request: id,
            step,
            due,
            blocked: 0,
            is_made: true,
            token: None,
        };
        let sent = Box::pin(self.request(life, step, asked)).await;
        let whole = self.client.take_answer(&mut life.user.session);
        Some(answer(whole, (sent.class, sent.phases), &request.url))
    }

    /// Applies the script's changes to the user's cookies.
    pub(super) fn set_cookies(&self, life: &Life<C>, request: &Request) {
        for cookie in &request.jar.changes {
            let now_ms = self.clock.unix_ms(self.clock.nanos());
            let text = as_set_cookie(cookie, now_ms);
            self.client.set_cookie(&life.user.session, &text, "/");
        }
    }

    /// Records what happened in the last turn.
    fn take_events(&self, life: &mut Life<C>, session: &mut Session<'_>) {
        let playing = session.playing;
        playing.each_event(|event| match event {
            Event::Check { name, passed, .. } => {
                let value = f64::from(u8::from(passed));
                self.number(life, playing, (ALL_CHECKS, value));
                match playing.check(&name) {
                    Some(place) => self.number(life, playing, (place, value)),
                    None => self.not_counted(&format!("{CHECK_MEASURE}{name}"), false),
                }
            }
            Event::Metric {
                name, kind, value, ..
            } => {
                let value = match kind {
                    MetricKind::Rate => f64::from(u8::from(value != 0.0)),
                    MetricKind::Counter | MetricKind::Gauge | MetricKind::Trend => value,
                };
                let fits = (0.0..=MAX_MEASURED).contains(&value);
                match playing.metric(&name) {
                    Some(place) if fits => self.number(life, playing, (place, value)),
                    known => self.not_counted(&name, known.is_some()),
                }
            }
            Event::Group { name, begins: true } => self.begin_group(life, session, &name),
            Event::Group { begins: false, .. } => self.end_group(life, session),
            // The script throws an error, too.
            Event::Interrupt { reason } => self.recorder.borrow_mut().test_aborted(&reason),
            Event::Fail { reason } => self.recorder.borrow_mut().test_failed(&reason),
            Event::Log { level, text, .. } => playing.log(level, &text),
        });
    }

    /// Records a value of a check or a metric in its place.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is kept lies between 0 and 10^15"
    )]
    fn number(&self, life: &Life<C>, playing: &Playing, (place, value): (usize, f64)) {
        let number = (value * MEASURE_SCALE).round() as u64;
        let (now, step) = (life.state.at, self.first_step + playing.own_step);
        let mut recorder = self.recorder.borrow_mut();
        recorder.number(now, step, (place, number));
    }

    /// Counts a value of a check or a metric that has no place, or doesn't fit.
    fn not_counted(&self, name: &str, is_measure: bool) {
        self.recorder.borrow_mut().not_counted(name, is_measure);
    }

    fn begin_group(&self, life: &Life<C>, session: &mut Session<'_>, name: &str) {
        let level = session.groups.len() + 1;
        let place = session.playing.group(name);
        let place = place.filter(|_| level <= MAX_TRANSACTION_LEVELS);
        if let Some(place) = place {
            self.transactions.begin(life.user.place, level, place);
        }
        session.groups.push(place);
    }

    fn end_group(&self, life: &Life<C>, session: &mut Session<'_>) {
        let level = session.groups.len();
        if session.groups.pop().flatten().is_some() {
            self.end_transaction(life, level);
        }
    }

    fn end_transaction(&self, life: &Life<C>, level: usize) {
        let (user, now, leaves) = (life.user.place, life.state.at, life.state.leaves());
        if let Some(ended) = self.transactions.end(user, level, now, leaves) {
            self.recorder.borrow_mut().transaction(now, ended);
        }
    }

    /// Records an uncaught error, which ends the session.
    fn threw(&self, life: &mut Life<C>, playing: &Playing, detail: &str) {
        life.state.well = false;
        let class = Some(ErrorClass::Script);
        self.transactions.ended(life.user.place, None, class);
        let (now, step) = (self.clock.nanos(), self.first_step + playing.own_step);
        let mut recorder = self.recorder.borrow_mut();
        recorder.threw(now, step, detail.into());
    }
}

/// Returns why a request can't be sent.
/// Logs a request that can't be sent.
pub(super) fn log_unsent(playing: &Playing, request: &Request, why: &str) {
    let text = format!("{} {} was not sent: {why}", request.method, request.url);
    playing.log(Level::Error, &text);
}

pub(super) fn why_unmade(unmade: Unmade) -> String {
    match unmade {
        Unmade::Empty => "a variable of the request has no value".to_owned(),
        Unmade::Failed(why) => why.into_string(),
    }
}

/// Describes an uncaught error: its place, its message, and the functions around it.
fn describe(thrown: &Thrown) -> String {
    let mut text = thrown.to_string();
    for frame in thrown.stack.iter().skip(1).take(5) {
        let function = match frame.function.as_str() {
            "" => "a function",
            name => name,
        };
        text.push_str(&format!(", in {function} at {}:{}", frame.file, frame.line));
    }
    text
}
