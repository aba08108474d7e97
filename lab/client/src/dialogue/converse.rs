//! The exchange on a connection: sends, reads, and passes bytes to the dialogue. It opens no connection.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use super::client::{Call, DialogueClient, READ_BYTES};
use super::session::{Ended, OpenedConnection, Stopped};
use super::{Dialogue, End, Out, Turn};
use crate::tap::Side;
use crate::time::{Nanos, Time, Timer, nanos, or_late};

/// The silence that ends a response.
struct Quiet<T> {
    timer: T,
    span: Nanos,
    /// The length of the response when the timer was set.
    heard: usize,
}

impl<T: Timer> Quiet<T> {
    /// Returns true if nothing was added to the response for the whole span. A response begins with its first byte.
    fn has_come(&mut self, cx: &Context<'_>, length: usize, now: Nanos) -> bool {
        if length > self.heard {
            self.heard = length;
            self.timer.set(now.saturating_add(self.span));
        }
        self.heard > 0 && self.timer.poll_fired(cx).is_ready()
    }
}

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Continues an exchange to its end, or until TLS is due.
    pub(super) async fn converse(
        &self,
        link: &mut OpenedConnection<D::Line>,
        (talk, out): (&mut D::ExchangeState, &mut Out),
        call: &mut Call<'_, T::Timer>,
    ) -> Result<Ended, Stopped> {
        let turn = self.dialogue.turn(&mut link.line, talk, &mut &[][..], out);
        let mut turn = turn.map_err(Stopped::Fault)?;
        call.has_heard(out.messages, self.time.now());
        let mut quiet = self.dialogue.quiet_after(talk).map(|span| Quiet {
            timer: self.time.timer(),
            span: nanos(span),
            heard: 0,
        });
        loop {
            self.tell(out);
            if !out.say.is_empty() {
                self.say(link, &out.say, call).await?;
                out.say.clear();
                call.anew = true;
                if out.messages == 0 {
                    call.first = None;
                }
            }
            match turn {
                Turn::Done(reply) => return Ok(Ended::Done(reply)),
                Turn::Secure => return Ok(Ended::Secure),
                Turn::Listen => {}
            }
            let listened = poll_fn(|cx| {
                let mut heard = self.poll_turn(cx, link, (talk, out), call);
                if let (Poll::Pending, Some(quiet)) = (&heard, &mut quiet)
                    && quiet.has_come(cx, out.body.len(), self.time.now())
                {
                    let reply = self.dialogue.ended(talk, out, End::Silence);
                    heard = reply.map_or(Poll::Pending, |reply| Poll::Ready(Ok(Turn::Done(reply))));
                }
                or_late(call.deadline, cx, heard)
            });
            turn = listened.await.unwrap_or(Err(Stopped::Late))?;
        }
    }

    /// Sends all bytes. Keeps bytes received meanwhile: a server may stop reading until the client reads.
    async fn say(
        &self,
        link: &mut OpenedConnection<D::Line>,
        bytes: &[u8],
        call: &mut Call<'_, T::Timer>,
    ) -> Result<(), Stopped> {
        self.spell(Side::User, bytes);
        let mut written = 0;
        while written < bytes.len() {
            let turn = poll_fn(|cx| {
                let wrote = link.connection.poll_write_turn(cx, bytes, &mut written);
                let can_read = !link.connection.has_datagrams() && link.rest.len() < READ_BYTES;
                if wrote.is_pending() && can_read {
                    let space = &mut *self.read.borrow_mut();
                    if let Poll::Ready(Ok(count @ 1..)) = link.connection.poll_read(cx, space) {
                        link.rest.extend_from_slice(&space[..count]);
                        link.silence.hear(self.time.now());
                        call.came += count as u64;
                        cx.waker().wake_by_ref();
                    }
                }
                or_late(call.deadline, cx, wrote)
            });
            match turn.await {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(Stopped::Broken(error)),
                None => {
                    link.owed.extend_from_slice(&bytes[written..]);
                    return Err(Stopped::Late);
                }
            }
            if written < bytes.len() {
                // Let other users, their timers, and their responses run first.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Reports these bytes to the tap, as readable text.
    pub(super) fn spell(&self, side: Side, bytes: &[u8]) {
        let Some(tap) = self.tap.as_ref().filter(|_| !bytes.is_empty()) else {
            return;
        };
        let text = self.dialogue.spell(side, bytes);
        if !text.is_empty() {
            tap.spoke(self.time.now(), side, &text);
        }
    }

    /// Reads until there is something to do.
    fn poll_turn(
        &self,
        cx: &mut Context<'_>,
        link: &mut OpenedConnection<D::Line>,
        (talk, out): (&mut D::ExchangeState, &mut Out),
        call: &mut Call<'_, T::Timer>,
    ) -> Poll<Result<Turn, Stopped>> {
        let space = &mut *self.read.borrow_mut();
        loop {
            let anew = std::mem::take(&mut call.anew);
            let fresh = match link.rest.is_empty() || !anew {
                true => match ready!(link.connection.poll_read(cx, space)) {
                    Ok(0) if !link.connection.has_datagrams() => {
                        let end = io::ErrorKind::UnexpectedEof.into();
                        let reply = self.dialogue.ended(talk, out, End::Connection);
                        return Poll::Ready(reply.map(Turn::Done).ok_or(Stopped::Broken(end)));
                    }
                    Ok(count) => &space[..count],
                    Err(error) => return Poll::Ready(Err(Stopped::Broken(error))),
                },
                // The bytes arrived during a send, or after the previous response.
                false => &[][..],
            };
            let now = self.time.now();
            if !fresh.is_empty() {
                link.silence.hear(now);
            }
            call.first.get_or_insert(now);
            call.came += fresh.len() as u64;
            if call.came > self.limits.max_response_bytes {
                let most = self.limits.max_response_bytes;
                let what = format!("the answer has more than {most} bytes");
                return Poll::Ready(Err(Stopped::Fault(what)));
            }
            let fed = self.feed(link, (talk, out), fresh);
            call.has_heard(out.messages, now);
            match fed {
                Ok(Turn::Listen) if out.say.is_empty() => {}
                Ok(turn) => return Poll::Ready(Ok(turn)),
                Err(what) => return Poll::Ready(Err(Stopped::Fault(what))),
            }
        }
    }

    /// Runs one turn with the received bytes, and keeps the bytes that it doesn't consume.
    fn feed(
        &self,
        link: &mut OpenedConnection<D::Line>,
        (talk, out): (&mut D::ExchangeState, &mut Out),
        fresh: &[u8],
    ) -> Result<Turn, String> {
        let OpenedConnection { line, rest, .. } = link;
        let is_kept = !rest.is_empty();
        if is_kept {
            rest.extend_from_slice(fresh);
        }
        let all = if is_kept { &rest[..] } else { fresh };
        let mut heard = all;
        let turn = self.dialogue.turn(line, talk, &mut heard, out);
        let taken = all.len() - heard.len();
        self.spell(Side::Server, &all[..taken]);
        if is_kept {
            rest.drain(..taken);
        } else {
            rest.extend_from_slice(&fresh[taken..]);
        }
        turn
    }
}
