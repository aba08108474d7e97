//! What is heard and said on a connection between requests, of a protocol whose servers say something unasked.

use std::task::{Context, Poll};

use super::Dialogue;
use super::client::{DialogueClient, READ_BYTES};
use super::session::Link;
use crate::tap::Side;
use crate::time::Time;

/// How much was heard of what there is.
#[derive(PartialEq, Eq)]
enum Heard {
    All,
    /// As much as fits.
    Some,
    /// All, and the end of the connection.
    End,
}

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Hears what a server says between requests, as much as fits, and says what must be said to that; false where
    /// the connection is of no more use.
    pub(super) fn attend(&self, link: &mut Link<D::Line>, cx: &mut Context<'_>) -> bool {
        if link.ended {
            self.overhear(link);
        }
        while !link.ended {
            let is_broken = !say_owed(link, cx);
            if link.owed.len() >= READ_BYTES {
                // Who doesn't read isn't read.
                return true;
            }
            let heard = self.hear_unasked(link, cx);
            let goes_on = self.overhear(link);
            link.ended = is_broken || !goes_on || heard == Heard::End;
            if heard == Heard::All || link.rest.len() >= READ_BYTES {
                break;
            }
        }
        link.ended |= !say_owed(link, cx);
        !link.ended || self.dialogue.keeps(&link.line)
    }

    /// Keeps what came.
    fn hear_unasked(&self, link: &mut Link<D::Line>, cx: &mut Context<'_>) -> Heard {
        let space = &mut *self.read.borrow_mut();
        while link.rest.len() < READ_BYTES {
            match link.connection.poll_read(cx, space) {
                Poll::Ready(Ok(count @ 1..)) => {
                    link.rest.extend_from_slice(&space[..count]);
                    link.silence.hear(self.time.now());
                }
                Poll::Ready(_) => return Heard::End,
                Poll::Pending => return Heard::All,
            }
        }
        Heard::Some
    }

    /// Hands on what came; false where the connection is of no more use.
    fn overhear(&self, link: &mut Link<D::Line>) -> bool {
        let mut left = &link.rest[..];
        let line = &mut link.line;
        let goes_on = self.dialogue.overhear(line, &mut left, &mut link.owed);
        let taken = link.rest.len() - left.len();
        self.spell(Side::Server, &link.rest[..taken]);
        link.rest.drain(..taken);
        goes_on
    }
}

/// Says as much of what is owed as the system takes; false where nobody is there to hear it. What a layer between has
/// taken before is brought on its way, too.
fn say_owed<L>(link: &mut Link<L>, cx: &mut Context<'_>) -> bool {
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
