//! Requests of users with HTTP/2: the choice of the connection, repetition, and the outcome of responses.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use http::{HeaderMap, StatusCode};

use super::super::call::{Answer, Call, keeps, timeout_text, unanswered};
use super::super::client::{HttpClient, Outcome};
use super::super::cookie::Jar;
use super::super::head::Fault;
use super::super::response::{Complete, StoredBody};
use super::super::session::{HttpSession, Shares};
use super::error::{Lost, sort};
use super::message;
use super::stream::{ResponsePart, StreamExchange};
use crate::connection::Connection;
use crate::exchange::{ErrorClass, Phase};
use crate::streams::{HeldConnection, Link, StreamSlot};
use crate::time::{Nanos, Time, Timer, or_late, within};
use lab_units::BaseUrl;
use lab_units::{Offer, Version};

/// The part of a response received so far.
#[derive(Default)]
struct Coming {
    status: Option<u16>,
    head_at: Nanos,
    bytes: u64,
    kept: Vec<u8>,
    keep: usize,
}

impl<T: Time> HttpClient<T> {
    /// Sends a rendered message on a connection of either version, and reads the response; at most twice, by the rules
    /// of [`super`] and of [`crate::http`].
    pub(in super::super) async fn converse_as_offered(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Outcome {
        self.drop_unusable(session, other.as_deref(), call.sent)
            .await;
        self.let_go_of_unusable(session, other.as_deref(), call.sent)
            .await;
        call.deadline.set(call.ends);
        let mut first = true;
        loop {
            let reused = session.connection.is_some() || session.two.is_some();
            if !reused && let Err((class, why)) = Box::pin(self.reach(session, call, other)).await {
                return self.failed(class, || why);
            }
            let lost = match self.attempt(session, call).await {
                Ok(Answer::Whole { at, sizes, result }) => {
                    session.used(call.reusable, at);
                    return (at, sizes, result);
                }
                Ok(Answer::Nothing(error)) => {
                    Lost::Nothing(unanswered(&error, reused, call.prepared.idempotent))
                }
                Ok(Answer::Failed(class, why)) => Lost::Failed(class, why),
                Err(lost) => lost,
            };
            self.let_go(session, &lost, call.sent).await;
            let (class, why) = match lost {
                Lost::Unsent(_) if first => {
                    first = false;
                    continue;
                }
                Lost::Unprocessed(_) if first => {
                    first = false;
                    self.count(|counts| counts.stale_retries += 1);
                    continue;
                }
                Lost::Nothing(_) if first && reused && call.prepared.idempotent => {
                    first = false;
                    self.count(|counts| counts.stale_retries += 1);
                    continue;
                }
                Lost::Unsent(why) | Lost::Unprocessed(why) | Lost::Nothing(why) => {
                    (ErrorClass::Reset, why)
                }
                Lost::Failed(class, why) => (class, why),
            };
            return self.failed(class, || why);
        }
    }

    /// Sends the message once, on the current connection.
    async fn attempt(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<Answer, Lost> {
        match (&mut session.two, &mut session.connection) {
            (Some(held), _) => self.once_in_stream(held, &session.jar, call).await,
            (None, Some(connection)) => Ok(self.once(connection, &session.jar, call).await),
            (None, None) => Err(Lost::Unsent("there is no connection".to_owned())),
        }
    }

    /// Drops a hold on a connection that this request can't use: to another server, idle for too long, or ended.
    async fn let_go_of_unusable(
        &self,
        session: &mut HttpSession,
        other: Option<&BaseUrl>,
        now: Nanos,
    ) {
        let shares = session.shares_streams();
        let Some(held) = &mut session.two else {
            return;
        };
        let own = !shares || held.other.is_some();
        let idle = held.idle_since.map_or(0, |since| now.saturating_sub(since));
        let wrong = held.other.as_deref() != other;
        if matches!(session.shares, Shares::Own(_)) && held.other.is_none() {
            // Other sessions of the user may have used the connection since.
            let idle = now.saturating_sub(held.link.heard());
            if held.idle_since.is_some() && idle > self.idle_limit {
                held.link.retire();
            }
        }
        if wrong || (own && idle > self.idle_limit) || held.is_unusable().await {
            session.two = None;
        }
    }

    /// Drops connections that the next request should not use.
    async fn let_go(&self, session: &mut HttpSession, lost: &Lost, sent: Nanos) {
        session.connection = None;
        let shares = session.shares_streams();
        let Some(held) = &mut session.two else {
            return;
        };
        let late = matches!(lost, Lost::Failed(ErrorClass::Timeout, _));
        let own = !shares || held.other.is_some();
        if late && !own && held.link.heard() < sent {
            // Nothing was received on the connection since: it may be dead. Requests that wait on it continue to wait.
            held.link.retire();
        }
        if (late && own) || held.is_unusable().await {
            session.two = None;
        }
    }

    /// Provides the session with a connection: a shared one, or one of its own.
    async fn reach(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Result<(), (ErrorClass, String)> {
        let refused = |why| (ErrorClass::Connect, why);
        let shared = match (&session.shares, &self.sharing) {
            (Shares::Dealt(place), Some(sharing)) => Some((sharing, *place)),
            (Shares::Own(own), _) => Some((&**own, 0)),
            _ => None,
        };
        if let Some((sharing, place)) = shared.filter(|_| other.is_none()) {
            let (time, deadline) = (&self.time, call.deadline);
            let mut single = None;
            let open = async {
                let connection = self.open(call, &None).await?;
                if self.chose_one(&connection, other) {
                    single = Some(Box::new(connection));
                    return Ok(None);
                }
                Ok::<_, String>(Some(self.begin(connection, call).await?.0))
            };
            let (blocked, joined) = sharing.join(place, (time, deadline), open).await;
            if let Some(blocked) = blocked {
                call.phases.add(Phase::Blocked, blocked);
            }
            session.two = joined?.map(Box::new);
            session.connection = single;
            if session.two.is_some() || session.connection.is_some() {
                return Ok(());
            }
        }
        let connection = self.open(call, other).await.map_err(refused)?;
        if self.chose_one(&connection, other) {
            session.connection = Some(Box::new(connection));
            return Ok(());
        }
        let (link, other) = self.begin(connection, call).await.map_err(refused)?;
        session.two = Some(Box::new(link.held(other)));
        Ok(())
    }

    /// Returns true if the server has chosen HTTP/1.1 for a connection where it had the choice. The choice of the base
    /// server is remembered.
    fn chose_one(&self, connection: &Connection, other: &Option<Box<BaseUrl>>) -> bool {
        if self.offer != Offer::Auto {
            return false;
        }
        let version = match connection.chose_two() {
            true => Version::Two,
            false => Version::One,
        };
        if other.is_none() {
            self.chosen.set(Some(version));
            self.choices.notify_waiters();
        }
        version == Version::One
    }

    /// Starts HTTP/2 on a newly opened connection.
    async fn begin(
        &self,
        connection: Connection,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<(Rc<Link>, Option<Box<BaseUrl>>), String> {
        if connection.is_secure() && !connection.chose_two() {
            return Err(
                "the server doesn't speak HTTP/2 (it chose nothing by ALPN): say `http: auto`, or \
                 `http: 1`"
                    .to_owned(),
            );
        }
        let begun = within(call.deadline, Link::begin(&self.builder, connection)).await;
        match begun {
            Some(Ok(begun)) => {
                self.count(|counts| counts.http2_connects += 1);
                Ok(begun)
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err("no connection within the request timeout".to_owned()),
        }
    }

    /// Sends the message once, in a stream of its own, and reads the response.
    async fn once_in_stream(
        &self,
        held: &mut HeldConnection,
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<Answer, Lost> {
        let place = match held.link.try_place() {
            Some(place) => place,
            None => self.await_place(&held.link, call).await?,
        };
        let server = held.other.as_deref().unwrap_or(&self.base);
        let (request, body) = message::request(call.message, server)
            .map_err(|why| Lost::Failed(ErrorClass::Check, why))?;
        call.began = self.time.now();
        if let Some(tap) = &self.tap {
            let message = call.message.whole();
            tap.sent(server, Version::Two, call.began, &message);
        }
        let (answer, stream) = match held.sender().send_request(request, body.is_empty()) {
            Ok(sent) => sent,
            Err(error) if error.is_io() || error.is_go_away() => {
                return Err(Lost::Unsent(error.to_string()));
            }
            Err(error) => return Err(Lost::Failed(ErrorClass::Check, error.to_string())),
        };
        held.last = None;
        let mut talk = StreamExchange::new(answer, stream, body);
        let mut coming = Coming::default();
        let come = poll_fn(|cx| {
            let come = self.poll_stream(cx, &mut talk, &mut coming, jar, call);
            or_late(call.deadline, cx, come)
        });
        let come = come.await;
        drop(place);
        let link = &held.link;
        match come {
            None if link.allowed() == 0 => Err(unplaced(link)),
            None => Err(Lost::Failed(ErrorClass::Timeout, timeout_text(call))),
            Some(Err(Ended::Fault(fault))) => {
                Err(Lost::Failed(ErrorClass::Check, fault.to_string()))
            }
            Some(Err(Ended::Events(why))) => Err(Lost::Failed(ErrorClass::Check, why)),
            Some(Err(Ended::Stream(error))) => {
                Err(sort(&error, coming.status.is_some(), link.is_greeted()))
            }
            Some(Ok(())) => {
                let complete = Complete {
                    status: coming.status.unwrap_or_default(),
                    body_bytes: coming.bytes,
                    reusable: true,
                    body: StoredBody::Kept,
                };
                let answer = self.judge(&complete, &coming.kept, call);
                if let Answer::Whole { at, .. } = &answer {
                    link.hear(*at);
                }
                held.last = talk.into_rest().filter(|_| !held.is_shared);
                Ok(answer)
            }
        }
    }

    /// Waits until the server allows one more request on the connection.
    async fn await_place(
        &self,
        link: &Rc<Link>,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<StreamSlot, Lost> {
        let asked = self.time.now();
        let got = within(call.deadline, link.place()).await;
        call.phases.add(Phase::Blocked, self.time.now() - asked);
        match got {
            Some(Some(place)) => Ok(place),
            Some(None) => Err(Lost::Unsent(
                "the shared connection ended before the request could be sent".to_owned(),
            )),
            None => Err(unplaced(link)),
        }
    }

    /// Reads on.
    fn poll_stream(
        &self,
        cx: &mut Context<'_>,
        talk: &mut StreamExchange,
        coming: &mut Coming,
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
    ) -> Poll<Result<(), Ended>> {
        loop {
            match talk.poll(cx) {
                Poll::Pending => {
                    if coming.status.is_some() && call.first.is_none() {
                        call.first = Some(coming.head_at);
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Ended::Stream(error))),
                Poll::Ready(Ok(ResponsePart::End)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(ResponsePart::Head(status, headers))) => {
                    self.take_head(status, &headers, coming, jar, call);
                }
                Poll::Ready(Ok(ResponsePart::Data(data))) => {
                    if let Some(tap) = &self.tap {
                        tap.received(self.time.now(), &data);
                    }
                    coming.bytes += data.len() as u64;
                    if coming.bytes > self.limits.max_response_bytes {
                        return Poll::Ready(Err(Ended::Fault(Fault::BodyTooLarge)));
                    }
                    let expected = coming.status.is_some_and(|s| call.prepared.expects(s));
                    if let Some(listening) = call.listening.as_deref_mut().filter(|_| expected) {
                        match listening.take(&data, self.time.now()) {
                            Ok(true) => return Poll::Ready(Ok(())),
                            Ok(false) => continue,
                            Err(why) => return Poll::Ready(Err(Ended::Events(why))),
                        }
                    }
                    let space = coming.keep.saturating_sub(coming.kept.len());
                    coming
                        .kept
                        .extend_from_slice(&data[..data.len().min(space)]);
                }
            }
        }
    }

    fn take_head(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        coming: &mut Coming,
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
    ) {
        coming.head_at = self.time.now();
        if let Some(tap) = &self.tap {
            tap.received(coming.head_at, &message::head_in_words(status, headers));
        }
        let status = status.as_u16();
        coming.status = Some(status);
        let codings = Cell::new(call.codings);
        for (name, value) in headers {
            self.take_header((name.as_str(), value.as_bytes()), &codings, jar, call);
        }
        call.codings = codings.get();
        coming.keep = keeps(call.prepared, status, call.codings);
    }
}

/// The error for a request that waited too long for a free stream.
fn unplaced(link: &Link) -> Lost {
    let why = format!(
        "not sent in time: the server allows {} requests at once on the connection",
        link.allowed()
    );
    Lost::Failed(ErrorClass::Timeout, why)
}

/// Why the response is not whole.
enum Ended {
    Stream(::h2::Error),
    Fault(Fault),
    Events(String),
}
