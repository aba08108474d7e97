//! What is heard and said on a connection between requests, of a protocol whose servers say something unasked.

use std::task::{Context, Poll};

use super::Dialogue;
use super::client::{DialogueClient, Link, READ_BYTES};
use crate::time::Time;

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Hears what a server says between requests, as much as fits, and says what must be said to that; false where
    /// the connection is of no more use.
    pub(super) fn attend(&self, link: &mut Link<D::Line>, cx: &mut Context<'_>) -> bool {
        loop {
            let Some(is_all) = self.hear_unasked(link, cx) else {
                return false;
            };
            let mut heard = &link.rest[..];
            let line = &mut link.line;
            let goes_on = self.dialogue.overhear(line, &mut heard, &mut link.owed);
            let left = heard.len();
            link.rest.drain(..link.rest.len() - left);
            if !goes_on {
                return false;
            }
            if is_all || left >= READ_BYTES {
                return say_owed(link, cx);
            }
        }
    }

    /// Keeps what came. Whether that is all there is by now; `None` where the server has ended the connection.
    fn hear_unasked(&self, link: &mut Link<D::Line>, cx: &mut Context<'_>) -> Option<bool> {
        let space = &mut *self.read.borrow_mut();
        while link.rest.len() < READ_BYTES {
            match link.connection.poll_read(cx, space) {
                Poll::Ready(Ok(count @ 1..)) => link.rest.extend_from_slice(&space[..count]),
                Poll::Ready(_) => return None,
                Poll::Pending => return Some(true),
            }
        }
        Some(false)
    }
}

/// Says as much of what is owed as the system takes; false where the connection is broken.
fn say_owed<L>(link: &mut Link<L>, cx: &mut Context<'_>) -> bool {
    while !link.owed.is_empty() {
        let mut written = 0;
        let wrote = link
            .connection
            .poll_write_turn(cx, &link.owed, &mut written);
        link.owed.drain(..written);
        match wrote {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return false,
            Poll::Pending => break,
        }
    }
    true
}
