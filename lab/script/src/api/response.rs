//! Responses: a handle of the script to an [`Answer`], whose parts become values when the script reads them.

use std::cell::OnceCell;

use rquickjs::{Class, Ctx, Exception, IntoJs, JsLifetime, Object, Result, Value, class::Trace};
use url::Url;

use crate::shared::{Held, Shared};
use crate::turn::{Answer, Request, ResponseKind, Timings};

use super::address;
use super::cookies;
use super::json_path::{self, Found};
use super::state::{OWN_JAR, Pending, User};
use super::values;

/// The bytes of an entry of headers besides its texts.
const ENTRY: usize = size_of::<(String, String)>();

/// An answer, as a script holds it.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct Response {
    #[qjs(skip_trace)]
    answer: Answer,
    #[qjs(skip_trace)]
    kind: ResponseKind,
    #[qjs(skip_trace)]
    sent: Option<Box<Request>>,
    #[qjs(skip_trace)]
    text: OnceCell<String>,
    #[qjs(skip_trace)]
    _held: Held,
}

#[rquickjs::methods]
impl Response {
    #[qjs(get, enumerable)]
    fn status(&self) -> u16 {
        self.answer.status
    }
}

/// Makes the responses that a script gets of the answers to all requests of a turn.
pub(crate) fn responses<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    answers: Vec<Answer>,
) -> Result<Vec<Value<'js>>> {
    let settings = shared.program.settings();
    let mut pending = Vec::new();
    if settings.remembers() {
        let own = |user: &mut User| std::mem::take(&mut user.pending);
        pending = shared.api.with(shared.user.get(), own);
    }
    pending.resize_with(answers.len(), || Pending {
        kind: settings.response,
        ..Pending::default()
    });
    let pairs = answers.into_iter().zip(pending);
    pairs
        .map(|(answer, pending)| response(ctx, shared, answer, pending))
        .collect()
}

fn response<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    answer: Answer,
    pending: Pending,
) -> Result<Value<'js>> {
    let settings = shared.program.settings();
    if settings.reads_jars {
        learn(shared, &answer);
    }
    if settings.throw
        && let Some(failure) = &answer.error
    {
        return Err(Exception::throw_message(ctx, &failure.message));
    }
    let Pending { kind, sent, .. } = pending;
    let sent_body = sent.as_ref().map_or(0, |sent| sent.body.len());
    let _held = shared.hold(ctx, size(&answer) + sent_body)?;
    let response = Response {
        answer,
        kind,
        sent,
        text: OnceCell::new(),
        _held,
    };
    Class::instance(ctx.clone(), response)?.into_js(ctx)
}

/// About the bytes of an answer.
fn size(answer: &Answer) -> usize {
    let headers = answer.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.len() + value.len() + ENTRY)
        .sum();
    answer.body.len() + answer.url.len() + headers + size_of::<Response>()
}

/// Puts the cookies that an answer sets into the user's own jar.
fn learn(shared: &Shared, answer: &Answer) {
    let url = Url::parse(&answer.url).ok();
    let set = answer
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let set = set.filter_map(|(_, value)| cookies::read(value, url.as_ref()));
    let now = shared.now_ms();
    shared.api.with(shared.user.get(), |user| {
        let jar = user.jars.entry(OWN_JAR).or_default();
        for cookie in set {
            jar.put(cookie, now);
        }
    });
}

impl Response {
    /// The body as text; bytes that are no UTF-8 become U+FFFD.
    fn text(&self) -> &str {
        match std::str::from_utf8(&self.answer.body) {
            Ok(text) => text,
            Err(_) => self
                .text
                .get_or_init(|| String::from_utf8_lossy(&self.answer.body).into_owned()),
        }
    }

    /// The body as HTML; `None` if there is no body.
    pub(super) fn page_text(&self) -> Option<&str> {
        let has_body = self.answer.error.is_none() && self.kind != ResponseKind::None;
        has_body.then(|| self.text())
    }
}

/// Reads a part of a response by the name that scripts use.
pub(super) fn read<'js>(
    ctx: &Ctx<'js>,
    response: &Class<'js, Response>,
    part: &str,
) -> Result<Value<'js>> {
    let response = response.borrow();
    let answer = &response.answer;
    match part {
        "body" => body(ctx, &response),
        "headers" => headers(ctx, answer)?.into_js(ctx),
        "cookies" => set_cookies(ctx, answer)?.into_js(ctx),
        "timings" => timings(ctx, &answer.timings)?.into_js(ctx),
        "url" => answer.url.as_str().into_js(ctx),
        "error" => answer
            .error
            .as_ref()
            .map_or("", |failure| failure.message.as_str())
            .into_js(ctx),
        "error_code" => error_code(answer).into_js(ctx),
        "proto" => protocol(&answer.protocol).into_js(ctx),
        // The lab doesn't know them.
        "status_text" | "remote_ip" | "tls_version" | "tls_cipher_suite" => "".into_js(ctx),
        "remote_port" => 0.into_js(ctx),
        "request" => request(ctx, &response)?.into_js(ctx),
        other => Err(Exception::throw_type(
            ctx,
            &format!("a response has no part '{other}'"),
        )),
    }
}

fn body<'js>(ctx: &Ctx<'js>, response: &Response) -> Result<Value<'js>> {
    match response.kind {
        _ if response.answer.error.is_some() => Ok(Value::new_null(ctx.clone())),
        ResponseKind::None => Ok(Value::new_null(ctx.clone())),
        ResponseKind::Binary => values::buffer(ctx, response.answer.body.to_vec()),
        ResponseKind::Text => response.text().into_js(ctx),
    }
}

/// Header fields by their names in canonical form, such as `Content-Type`; several of one name in one text.
fn headers<'js>(ctx: &Ctx<'js>, answer: &Answer) -> Result<Object<'js>> {
    let mut joined: Vec<(String, String)> = Vec::with_capacity(answer.headers.len());
    for (name, value) in &answer.headers {
        let name = canonical(name);
        match joined.iter_mut().find(|(old, _)| *old == name) {
            Some((_, old)) => {
                old.push_str(", ");
                old.push_str(value);
            }
            None => joined.push((name, value.clone())),
        }
    }
    let object = Object::new(ctx.clone())?;
    for (name, value) in joined {
        values::define(&object, &name, value)?;
    }
    Ok(object)
}

fn canonical(name: &str) -> String {
    let mut upper = true;
    name.chars()
        .map(|c| {
            let c = if upper {
                c.to_ascii_uppercase()
            } else {
                c.to_ascii_lowercase()
            };
            upper = c == '-';
            c
        })
        .collect()
}

fn set_cookies<'js>(ctx: &Ctx<'js>, answer: &Answer) -> Result<Object<'js>> {
    let url = Url::parse(&answer.url).ok();
    let mut all = Vec::new();
    for (name, value) in &answer.headers {
        if !name.eq_ignore_ascii_case("set-cookie") {
            continue;
        }
        let Some(cookie) = cookies::read(value, url.as_ref()) else {
            continue;
        };
        let one = Object::new(ctx.clone())?;
        one.set("name", cookie.name.as_str())?;
        one.set("value", cookie.value.as_str())?;
        one.set("domain", cookie.domain.as_str())?;
        one.set("path", cookie.path.as_str())?;
        one.set("http_only", cookie.http_only)?;
        one.set("httpOnly", cookie.http_only)?;
        one.set("secure", cookie.secure)?;
        one.set("max_age", cookie.max_age.unwrap_or(0))?;
        one.set("maxAge", cookie.max_age.unwrap_or(0))?;
        one.set("expires", cookie.expires_ms.unwrap_or(0.0))?;
        all.push((cookie.name, one));
    }
    values::grouped(ctx, all)
}

fn timings<'js>(ctx: &Ctx<'js>, timings: &Timings) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let ms = |micros: u64| micros as f64 / 1000.0;
    object.set("blocked", ms(timings.blocked))?;
    object.set("looking_up", ms(timings.looking_up))?;
    object.set("connecting", ms(timings.connecting))?;
    object.set("tls_handshaking", ms(timings.tls_handshaking))?;
    object.set("sending", ms(timings.sending))?;
    object.set("waiting", ms(timings.waiting))?;
    object.set("receiving", ms(timings.receiving))?;
    object.set("duration", ms(timings.duration()))?;
    Ok(object)
}

/// The code of an error: that of the failure, or 1000 more than a status of 400 and above.
fn error_code(answer: &Answer) -> u32 {
    match &answer.error {
        Some(failure) => failure.code,
        None if (400..600).contains(&answer.status) => 1000 + u32::from(answer.status),
        None => 0,
    }
}

fn protocol(name: &str) -> &str {
    match name {
        "HTTP/2" | "h2" => "HTTP/2.0",
        "HTTP/3" | "h3" => "HTTP/3.0",
        other => other,
    }
}

fn request<'js>(ctx: &Ctx<'js>, response: &Response) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let Some(sent) = &response.sent else {
        return Ok(object);
    };
    object.set("method", sent.method.as_str())?;
    object.set("url", sent.url.as_str())?;
    object.set("body", String::from_utf8_lossy(&sent.body).as_ref())?;
    let headers = sent.headers.iter();
    let headers = headers.map(|(name, value)| (canonical(name), value.as_str()));
    object.set("headers", values::grouped(ctx, headers.collect())?)?;
    let mut cookies = Vec::new();
    for (name, value, replace) in &sent.jar.own {
        let one = Object::new(ctx.clone())?;
        one.set("name", name.as_str())?;
        one.set("value", value.as_str())?;
        one.set("replace", *replace)?;
        cookies.push((name.clone(), one));
    }
    object.set("cookies", values::grouped(ctx, cookies)?)?;
    Ok(object)
}

/// The body as JSON.
pub(super) fn json<'js>(ctx: &Ctx<'js>, response: &Class<'js, Response>) -> Result<Value<'js>> {
    let response = response.borrow();
    let text = readable(ctx, &response)?;
    let parsed = ctx.json_parse(text);
    if parsed.is_err() {
        ctx.catch();
        let reason = json_path::check(text).err();
        let reason = reason.unwrap_or_else(|| "the engine refuses it".to_owned());
        return Err(Exception::throw_message(
            ctx,
            &no_json(&response, text, &reason),
        ));
    }
    parsed
}

/// The field of the body at a path; undefined if there is none.
pub(super) fn field<'js>(
    ctx: &Ctx<'js>,
    response: &Class<'js, Response>,
    path: &str,
) -> Result<Value<'js>> {
    let response = response.borrow();
    let text = readable(ctx, &response)?;
    match json_path::find(text, path) {
        Ok(Some(Found::Text(raw))) => value_of(ctx, raw),
        Ok(Some(Found::Made(value))) => ctx.json_parse(value.to_string()),
        Ok(None) => Ok(Value::new_undefined(ctx.clone())),
        Err(reason) => Err(Exception::throw_message(
            ctx,
            &no_json(&response, text, &reason),
        )),
    }
}

fn readable<'r>(ctx: &Ctx<'_>, response: &'r Response) -> Result<&'r str> {
    if response.answer.error.is_none()
        && response.kind != ResponseKind::None
        && !response.answer.body.is_empty()
    {
        return Ok(response.text());
    }
    Err(Exception::throw_message(
        ctx,
        &format!(
            "the response of {} has no body that could be JSON (status {})",
            address::shown(&response.answer.url),
            response.answer.status
        ),
    ))
}

/// Says why a body isn't JSON, without what it contains: messages go into reports.
fn no_json(response: &Response, text: &str, reason: &str) -> String {
    let start = text.chars().next().unwrap_or_default();
    format!(
        "the response of {} can't be read as JSON: {reason} (it has {} bytes and begins with {start:?})",
        address::shown(&response.answer.url),
        text.len()
    )
}

/// A value of its JSON text; numbers and short texts without the engine's parser.
fn value_of<'js>(ctx: &Ctx<'js>, raw: &str) -> Result<Value<'js>> {
    match raw.as_bytes().first() {
        Some(b'"') if !raw.contains('\\') => raw[1..raw.len() - 1].into_js(ctx),
        Some(b't') => Ok(Value::new_bool(ctx.clone(), true)),
        Some(b'f') => Ok(Value::new_bool(ctx.clone(), false)),
        Some(b'n') => Ok(Value::new_null(ctx.clone())),
        _ => match raw.parse::<i32>() {
            Ok(number) if raw != "-0" => Ok(Value::new_int(ctx.clone(), number)),
            _ => ctx.json_parse(raw),
        },
    }
}
