//! WebSockets of scripts: orders that `k6/ws` and `k6/websockets` make, and the events that they get.

use bytes::Bytes;
use rquickjs::{Ctx, Exception, IntoJs, Object, Result, Value};

use crate::shared::Shared;
use crate::turn::{Message, SocketEvent, SocketOrder};

use super::values;

/// Reads an order: `{ order: 'open', request }`, `{ order: 'send', kind, data }`, `{ order: 'next', micros }`,
/// `{ order: 'close', code, reason }`.
pub(crate) fn socket<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    payload: Value<'js>,
    site: u32,
) -> Result<SocketOrder> {
    let Some(order) = payload.into_object() else {
        return Err(Exception::throw_type(
            ctx,
            "an order to a socket is an object",
        ));
    };
    let name: String = order.get("order")?;
    match name.as_str() {
        "open" => {
            let request = super::request(ctx, shared, order.get("request")?, site)?;
            Ok(SocketOrder::Open(Box::new(request)))
        }
        "send" => {
            let data = values::bytes(ctx, &order.get("data")?)?;
            let kind: String = order.get("kind")?;
            Ok(SocketOrder::Send(match kind.as_str() {
                "binary" => Message::Binary(Bytes::from(data)),
                "ping" => Message::Ping(Bytes::from(data)),
                "pong" => Message::Pong(Bytes::from(data)),
                _ => Message::Text(String::from_utf8_lossy(&data).into_owned()),
            }))
        }
        "next" => {
            let micros: Option<f64> = order.get("micros")?;
            Ok(SocketOrder::Next {
                micros: micros.map(|micros| micros.max(0.0) as u64),
            })
        }
        "close" => Ok(SocketOrder::Close {
            code: order.get::<_, Option<u16>>("code")?.unwrap_or(1000),
            reason: order
                .get::<_, Option<String>>("reason")?
                .unwrap_or_default(),
        }),
        other => Err(Exception::throw_type(
            ctx,
            &format!("a socket has no order '{other}'"),
        )),
    }
}

/// Makes the object that the modules get of an event: `{ event, response | kind, data | code, reason | message }`.
pub(crate) fn socket_event<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    event: SocketEvent,
) -> Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    let name = match event {
        SocketEvent::Opened(answer) => {
            object.set("response", super::response(ctx, shared, *answer)?)?;
            "opened"
        }
        SocketEvent::Received(message) => {
            let (kind, data) = match message {
                Message::Text(text) => ("text", text.into_js(ctx)?),
                Message::Binary(data) => ("binary", values::buffer(ctx, data.to_vec())?),
                Message::Ping(data) => ("ping", values::buffer(ctx, data.to_vec())?),
                Message::Pong(data) => ("pong", values::buffer(ctx, data.to_vec())?),
            };
            object.set("kind", kind)?;
            object.set("data", data)?;
            "received"
        }
        SocketEvent::Sent => "sent",
        SocketEvent::Elapsed => "elapsed",
        SocketEvent::Closed { code, reason } => {
            object.set("code", code)?;
            object.set("reason", reason)?;
            "closed"
        }
        SocketEvent::Failed(failure) => {
            object.set("message", failure.message)?;
            object.set("code", failure.code)?;
            "failed"
        }
    };
    object.set("event", name)?;
    object.into_js(ctx)
}
