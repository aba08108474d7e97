//! Reads and writes on a connection between requests, for protocols whose servers send unrequested messages.

use std::io;
use std::task::{Context, Poll};

use super::Dialogue;
use super::client::{DialogueClient, READ_BYTES};
use super::session::OpenedConnection;
use crate::tap::Side;
use crate::time::{Time, Timer as _, nanos};
use crate::tls::in_words;

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Reads unrequested messages, as much as fits, and sends the required replies. Returns false if the connection is
    /// no longer usable.
    pub(super) fn attend(
        &self,
        link: &mut OpenedConnection<D::Line>,
        cx: &mut Context<'_>,
    ) -> bool {
        self.keep_alive(link, cx);
        if link.ended.is_some() {
            let _known = self.overhear(link);
        }
        while link.ended.is_none() {
            let said = say_owed(link, cx);
            if link.owed.len() >= READ_BYTES {
                // A server that doesn't read the replies isn't read from.
                return true;
            }
            let heard = self.hear_unasked(link, cx);
            let overheard = self.overhear(link);
            let is_all = matches!(heard, Ok(true));
            let broken = said.err().or(heard.err());
            link.ended = overheard.err().or(broken.map(|error| in_words(&error)));
            if is_all || link.rest.len() >= READ_BYTES {
                break;
            }
        }
        if let Err(error) = say_owed(link, cx) {
            link.ended.get_or_insert_with(|| in_words(&error));
        }
        let dialogue = &self.dialogue;
        link.ended.is_none() || dialogue.reports_end() || dialogue.keeps(&link.line)
    }

    /// Adds what keeps the connection alive to the pending bytes, at half of the longest time without it.
    fn keep_alive(&self, link: &mut OpenedConnection<D::Line>, cx: &Context<'_>) {
        let Some((longest, ping)) = self.dialogue.keep_alive(&link.line) else {
            return;
        };
        let next = || self.time.now().saturating_add(nanos(longest) / 2);
        let timer = link.pulse.get_or_insert_with(|| {
            let timer = self.time.timer();
            timer.set(next());
            Box::new(timer)
        });
        while timer.poll_fired(cx).is_ready() {
            link.owed.extend_from_slice(ping);
            timer.set(next());
        }
    }

    /// Keeps the received bytes. Returns true if they are all of the available input, and not as much as fits.
    fn hear_unasked(
        &self,
        link: &mut OpenedConnection<D::Line>,
        cx: &mut Context<'_>,
    ) -> io::Result<bool> {
        let space = &mut *self.read.borrow_mut();
        while link.rest.len() < READ_BYTES {
            match link.connection.poll_read(cx, space) {
                Poll::Ready(Ok(count @ 1..)) => {
                    link.rest.extend_from_slice(&space[..count]);
                    link.silence.hear(self.time.now());
                }
                Poll::Ready(Ok(0)) if link.connection.has_datagrams() => {}
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Passes the received bytes to the dialogue. Returns the reason if the connection is no longer usable.
    fn overhear(&self, link: &mut OpenedConnection<D::Line>) -> Result<(), String> {
        let mut left = &link.rest[..];
        let line = &mut link.line;
        let goes_on = self.dialogue.overhear(line, &mut left, &mut link.owed);
        let taken = link.rest.len() - left.len();
        self.spell(Side::Server, &link.rest[..taken]);
        link.rest.drain(..taken);
        goes_on
    }
}

/// Writes as much of the pending bytes as the system takes, and flushes layers in between such as TLS.
fn say_owed<L>(link: &mut OpenedConnection<L>, cx: &mut Context<'_>) -> io::Result<()> {
    loop {
        let mut written = 0;
        let wrote = link
            .connection
            .poll_write_turn(cx, &link.owed, &mut written);
        link.owed.drain(..written);
        match wrote {
            Poll::Ready(Ok(())) if link.owed.is_empty() => return Ok(()),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                link.owed.clear();
                return Err(error);
            }
            Poll::Pending => return Ok(()),
        }
    }
}
