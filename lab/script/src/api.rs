//! A first part of the k6 modules.

use std::rc::Rc;

use bytes::Bytes;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};

use crate::event::{Event, Level};
use crate::shared::Shared;
use crate::turn::{Answer, Request, SocketEvent, SocketOrder};

/// The modules that scripts can import, and those that these import.
pub(crate) fn modules() -> &'static [(&'static str, &'static str)] {
    &[
        ("k6", include_str!("api/modules/k6.js")),
        ("k6/http", include_str!("api/modules/http.js")),
    ]
}

/// The module that an address of jslib or another specifier stands for.
pub(crate) fn resolve(specifier: &str) -> Option<&'static str> {
    modules()
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name == specifier)
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Rc<Shared>) -> Result<()> {
    let own = Rc::clone(shared);
    let check = move |ctx: Ctx<'js>, name: String, passed: bool| {
        let site = own.take_site(&ctx);
        own.record(Event::Check {
            site,
            name,
            passed,
            tags: Vec::new(),
        });
    };
    host.set("check", Function::new(ctx.clone(), check)?)?;
    let own = Rc::clone(shared);
    let log = move |ctx: Ctx<'js>, level: String, text: String| {
        let level = match level.as_str() {
            "debug" => Level::Debug,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => Level::Info,
        };
        own.record(Event::Log {
            level,
            text,
            site: own.take_site(&ctx),
        });
    };
    host.set("log", Function::new(ctx.clone(), log)?)
}

/// The request of what `k6/http` made.
pub(crate) fn request<'js>(
    ctx: &Ctx<'js>,
    _shared: &Shared,
    payload: Value<'js>,
    site: u32,
) -> Result<Request> {
    let parts: Array = payload
        .into_array()
        .ok_or_else(|| Exception::throw_type(ctx, "no request"))?;
    let body: Option<String> = parts.get(2)?;
    Ok(Request {
        site,
        method: parts.get(0)?,
        url: parts.get(1)?,
        body: body.map(Bytes::from).unwrap_or_default(),
        ..Request::default()
    })
}

/// The value of an answer.
pub(crate) fn response<'js>(
    ctx: &Ctx<'js>,
    _shared: &Shared,
    answer: Answer,
) -> Result<Value<'js>> {
    let status = answer.status;
    let read = move |ctx: Ctx<'js>, name: String| -> Result<Value<'js>> {
        match name.as_str() {
            "status" => Ok(Value::new_int(ctx, i32::from(answer.status))),
            _ => Ok(
                rquickjs::String::from_str(ctx, &String::from_utf8_lossy(&answer.body))?
                    .into_value(),
            ),
        }
    };
    let _ = status;
    Ok(Function::new(ctx.clone(), read)?.into_value())
}

pub(crate) fn socket<'js>(
    ctx: &Ctx<'js>,
    _shared: &Shared,
    _payload: Value<'js>,
    _site: u32,
) -> Result<SocketOrder> {
    Err(Exception::throw_type(ctx, "no sockets yet"))
}

pub(crate) fn socket_event<'js>(
    ctx: &Ctx<'js>,
    _shared: &Shared,
    _event: SocketEvent,
) -> Result<Value<'js>> {
    Err(Exception::throw_type(ctx, "no sockets yet"))
}
