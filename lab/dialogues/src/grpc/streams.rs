//! Calls of users who share connections: each call has a stream on a shared connection. It does not know the other
//! users.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::SendRequest;
use lab_client::dialogue::{Out, Reply, StreamEnd, StreamSlot, Streams};

use super::line::{Broken, Stream};
use super::{Grpc, GrpcExchange, GrpcLine, OfStatus};

impl Streams<GrpcLine, GrpcExchange> for Grpc {
    fn goes_on(&self, line: &GrpcLine, talk: &GrpcExchange) -> bool {
        self.asked(talk).is_some_and(|asked| line.has_open(asked))
    }

    fn begin(
        &self,
        line: &mut GrpcLine,
        talk: &mut GrpcExchange,
        place: Option<(SendRequest<Bytes>, StreamSlot)>,
        out: &mut Out,
    ) -> Result<(), StreamEnd> {
        let nothing = || StreamEnd::Fault("there is nothing to call".to_owned());
        let asked = self.asked(talk).ok_or_else(nothing)?;
        if out.looked_at {
            self.tell(line, (talk, asked), out);
        }
        talk.is_new = place.is_some();
        let mut stream = match place {
            Some((to, place)) => {
                let head = talk.head.clone().ok_or_else(nothing)?;
                Stream::begin(to, place, head)?
            }
            None => line.take_open(asked).ok_or_else(nothing)?,
        };
        if !talk.is_new {
            // Bytes received earlier belong to other requests.
            stream.came = None;
        }
        // A clone, since it may have to be sent again.
        stream.say(&mut talk.said.clone(), !asked.call.stays_open);
        line.now = Some(stream);
        Ok(())
    }

    fn poll(
        &self,
        cx: &mut Context<'_>,
        line: &mut GrpcLine,
        talk: &mut GrpcExchange,
        out: &mut Out,
    ) -> Poll<Result<Reply, StreamEnd>> {
        let (Some(asked), Some(stream)) = (self.asked(talk), &mut line.now) else {
            return Poll::Ready(Err(StreamEnd::Fault("there is no call".to_owned())));
        };
        let reply = match ready!(asked.poll(cx, stream, talk, out)) {
            Ok(reply) => reply,
            Err(Broken::Ended(end)) => {
                let reply = Reply::status(end.status, false);
                if talk.is_new && end.did_nothing {
                    return Poll::Ready(Err(StreamEnd::Unprocessed(reply)));
                }
                reply
            }
            Err(Broken::Connection(why)) => return Poll::Ready(Err(StreamEnd::Broken(why))),
            Err(Broken::Fault(what)) => return Poll::Ready(Err(StreamEnd::Fault(what))),
        };
        self.close(line, asked, &reply, out);
        Poll::Ready(Ok(reply))
    }

    fn give_up(&self, line: &mut GrpcLine) {
        line.now = None;
    }
}
