//! Reads and writes on a connection between requests, for protocols whose servers send unrequested messages.

use std::task::{Context, Poll};

use super::Dialogue;
use super::client::{DialogueClient, READ_BYTES};
use super::session::OpenedConnection;
use crate::tap::Side;
use crate::time::Time;

/// How much of the available input was read.
#[derive(PartialEq, Eq)]
enum ReadAmount {
    All,
    /// As much as fits.
    Some,
    /// All, up to the end of the connection.
    End,
}

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Reads unrequested messages, as much as fits, and sends the required replies. Returns false if the connection is
    /// no longer usable.
    pub(super) fn attend(
        &self,
        link: &mut OpenedConnection<D::Line>,
        cx: &mut Context<'_>,
    ) -> bool {
        if link.ended {
            self.overhear(link);
        }
        while !link.ended {
            let is_broken = !say_owed(link, cx);
            if link.owed.len() >= READ_BYTES {
                // A server that doesn't read the replies isn't read from.
                return true;
            }
            let heard = self.hear_unasked(link, cx);
            let goes_on = self.overhear(link);
            link.ended = is_broken || !goes_on || heard == ReadAmount::End;
            if heard == ReadAmount::All || link.rest.len() >= READ_BYTES {
                break;
            }
        }
        link.ended |= !say_owed(link, cx);
        !link.ended || self.dialogue.keeps(&link.line)
    }

    /// Keeps the received bytes.
    fn hear_unasked(
        &self,
        link: &mut OpenedConnection<D::Line>,
        cx: &mut Context<'_>,
    ) -> ReadAmount {
        let space = &mut *self.read.borrow_mut();
        while link.rest.len() < READ_BYTES {
            match link.connection.poll_read(cx, space) {
                Poll::Ready(Ok(count @ 1..)) => {
                    link.rest.extend_from_slice(&space[..count]);
                    link.silence.hear(self.time.now());
                }
                Poll::Ready(_) => return ReadAmount::End,
                Poll::Pending => return ReadAmount::All,
            }
        }
        ReadAmount::Some
    }

    /// Passes the received bytes to the dialogue. Returns false if the connection is no longer usable.
    fn overhear(&self, link: &mut OpenedConnection<D::Line>) -> bool {
        let mut left = &link.rest[..];
        let line = &mut link.line;
        let goes_on = self.dialogue.overhear(line, &mut left, &mut link.owed);
        let taken = link.rest.len() - left.len();
        self.spell(Side::Server, &link.rest[..taken]);
        link.rest.drain(..taken);
        goes_on
    }
}

/// Writes as much of the pending bytes as the system takes, and flushes layers in between such as TLS. Returns false if
/// the connection is broken.
fn say_owed<L>(link: &mut OpenedConnection<L>, cx: &mut Context<'_>) -> bool {
    loop {
        let mut written = 0;
        let wrote = link
            .connection
            .poll_write_turn(cx, &link.owed, &mut written);
        link.owed.drain(..written);
        match wrote {
            Poll::Ready(Ok(())) if link.owed.is_empty() => return true,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => {
                link.owed.clear();
                return false;
            }
            Poll::Pending => return true,
        }
    }
}
