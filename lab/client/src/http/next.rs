//! The message that a session sends next: a rendered one, that of a redirect, or a failed one again. It sends nothing.

use lab_workload::UserScope;

use super::client::HttpClient;
use super::message::Message;
use super::redirect::{Hop, Sent, follow};
use super::request::Prepared;
use super::session::HttpSession;
use crate::exchange::{RequestId, Unmade};
use crate::time::Time;
use lab_units::BaseUrl;

impl<T: Time> HttpClient<T> {
    /// Keeps a failed message, if it may be sent again.
    pub(super) fn keep_failed(
        &self,
        session: &mut HttpSession,
        request: RequestId,
        (message, other, left): (Message, Option<Box<BaseUrl>>, u32),
    ) {
        if !self
            .retried
            .get(request as usize)
            .copied()
            .unwrap_or_default()
        {
            return self.give_back(message);
        }
        let hop = Hop {
            message,
            other,
            left,
        };
        session.failed = Some(Box::new((request, hop)));
    }

    /// Renders the message of a request, or returns why it can't be rendered.
    pub(super) fn rendered(
        &self,
        session: &HttpSession,
        request: RequestId,
        scope: &mut UserScope,
    ) -> Result<Hop, Unmade> {
        let prepared = &self.requests[request as usize];
        let mut message = Message::new(self.take_text());
        let tracing = self.tracing.as_ref().filter(|_| prepared.traces);
        message.trace = tracing.and_then(|tracing| scope.begin_trace(tracing, request));
        let rendered = {
            let scratch = &mut *self.scratch.borrow_mut();
            prepared.render(&self.base, scope, &session.jar, scratch, &mut message)
        };
        match rendered {
            Ok(other) => Ok(Hop {
                message,
                other,
                left: prepared.follow,
            }),
            Err(unmade) => {
                self.give_back(message);
                Err(unmade)
            }
        }
    }

    /// Returns the message to send next for a request, signed if the request has a signer.
    pub(super) fn next_message(
        &self,
        session: &mut HttpSession,
        (request, prepared): (RequestId, &Prepared),
        scope: &mut UserScope,
    ) -> Result<Hop, Unmade> {
        let hop = session.hop.take().filter(|hop| hop.0 == request);
        let mut hop = match hop {
            Some(hop) => hop.1,
            None => self.rendered(session, request, scope)?,
        };
        let is_ours = !hop.message.is_foreign && hop.other.is_none();
        if let Some(credentials) = prepared.credentials.as_ref().filter(|_| is_ours) {
            hop.message.authorize(credentials, scope, &session.jar)?;
        }
        let signer = prepared.signer.as_ref();
        if let Some(signer) = signer.filter(|_| !hop.message.is_foreign) {
            let server = hop.other.as_deref().unwrap_or(&self.base);
            hop.message.sign(signer, server.secure, scope)?;
        }
        Ok(hop)
    }

    /// Makes the request of a redirect the session's next one.
    pub(super) fn follow(
        &self,
        session: &mut HttpSession,
        (request, prepared): (RequestId, &Prepared),
        (message, other, left): (&Message, &Option<Box<BaseUrl>>, u32),
        (status, location): (u16, &str),
    ) -> Result<(), String> {
        let sent = Sent {
            message,
            server: other.as_deref().unwrap_or(&self.base),
            base: &self.base,
            host: prepared.host_at(&self.base),
        };
        let (message, other) = follow(&sent, status, location, &session.jar)?;
        let left = left.saturating_sub(1);
        let hop = Hop {
            message,
            other,
            left,
        };
        session.hop = Some(Box::new((request, hop)));
        Ok(())
    }
}
