//! Requests of scripts: the payload that `k6/http` makes becomes a [`Request`].

use bytes::Bytes;
use rquickjs::{Array, Ctx, Exception, Object, Result, Value};
use url::Url;

use crate::shared::Shared;
use crate::turn::{Auth, Compression, Expected, Jar, Request, ResponseKind};

use super::state::Pending;
use super::values;

/// Makes a request of `[method, url, body, params, name, type of the body]`.
pub(crate) fn request<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    payload: Value<'js>,
    site: u32,
) -> Result<Request> {
    let Some(parts) = payload.into_array() else {
        return Err(Exception::throw_type(ctx, "a request has no parts"));
    };
    let user = shared.user.get();
    let settings = shared.program.settings();
    let body: Value<'js> = parts.get(2)?;
    let mut request = Request {
        site,
        method: parts.get(0)?,
        url: parts.get(1)?,
        body: if body.is_null() {
            Bytes::new()
        } else {
            values::bytes(ctx, &body)?.into()
        },
        name: parts.get::<Option<String>>(4)?,
        response: settings.response,
        redirects: settings.redirects,
        ..Request::default()
    };
    let of_user = shared.api.read(user, |user| {
        let name = user.tags.iter().find(|(tag, _)| tag == "name");
        (name.map(|(_, name)| name.clone()), user.expected.clone())
    });
    let (name, expected) = of_user.unwrap_or_default();
    request.name = name.or(request.name);
    if let Some(expected) = expected.or_else(|| shared.api.expected.borrow().clone()) {
        request.expected = expected;
    }
    let params: Value<'js> = parts.get(3)?;
    if let Some(params) = values::given(params) {
        let Some(params) = params.as_object() else {
            return Err(Exception::throw_type(
                ctx,
                "the params of a request are an object",
            ));
        };
        read_params(ctx, params, &mut request)?;
    }
    finish(ctx, shared, &parts, &mut request)?;
    Ok(request)
}

/// Adds what follows of all parts: headers, and the sign-in by the address.
fn finish<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    parts: &Array<'js>,
    request: &mut Request,
) -> Result<()> {
    if let Some(kind) = parts.get::<Option<String>>(5)? {
        default_header(request, "Content-Type", &kind);
    }
    if let Some(agent) = &shared.program.settings().agent {
        default_header(request, "User-Agent", agent);
    }
    if request.auth == Auth::None && has_user(&request.url) {
        sign_in(ctx, request)?;
    }
    Ok(())
}

/// Hands all requests of a turn over: the first one takes the changes of cookies along, and what their responses need
/// is remembered.
pub(crate) fn hand_over(shared: &Shared, requests: &mut [Request]) {
    let settings = shared.program.settings();
    if !settings.remembers() {
        return;
    }
    let pending = requests.iter().map(|request| Pending {
        kind: request.response,
        sent: settings.reads_sent.then(|| Box::new(request.clone())),
    });
    let pending = pending.collect();
    shared.api.with(shared.user.get(), |user| {
        user.pending = pending;
        if let Some(first) = requests.first_mut() {
            first.jar.changes = std::mem::take(&mut user.changes);
        }
    });
}

fn read_params<'js>(ctx: &Ctx<'js>, params: &Object<'js>, request: &mut Request) -> Result<()> {
    if let Some(headers) = values::member(params, "headers")? {
        request.headers = values::texts(ctx, &headers, "headers")?;
        if let Some((name, _)) = request
            .headers
            .iter()
            .find(|(name, value)| !is_header(name, value))
        {
            return Err(Exception::throw_type(
                ctx,
                &format!(
                    "'{name}' is not a valid HTTP header name, or its value contains a line break"
                ),
            ));
        }
    }
    if let Some(tags) = values::member(params, "tags")? {
        let Some(tags) = tags.as_object() else {
            return Err(Exception::throw_type(
                ctx,
                "tags are an object of names and values",
            ));
        };
        if let Some(name) = values::member(tags, "name")? {
            request.name = Some(values::text(ctx, &name)?);
        }
    }
    if let Some(timeout) = values::member(params, "timeout")? {
        request.timeout = Some(values::duration(ctx, &timeout)?);
    }
    if let Some(redirects) = values::member(params, "redirects")? {
        let most = redirects.as_number().filter(|most| *most >= 0.0);
        let most = most
            .ok_or_else(|| Exception::throw_type(ctx, "params.redirects is a number, 0 or more"))?;
        request.redirects = Some(most as u32);
    }
    if let Some(kind) = values::member(params, "responseType")? {
        request.response = match values::text(ctx, &kind)?.as_str() {
            "text" => ResponseKind::Text,
            "binary" => ResponseKind::Binary,
            "none" => ResponseKind::None,
            other => {
                return Err(Exception::throw_type(
                    ctx,
                    &format!("responseType is 'text', 'binary', or 'none', not '{other}'"),
                ));
            }
        };
    }
    let callback: Value<'js> = params.get("responseCallback")?;
    if callback.is_null() {
        request.expected = Expected::Any;
    } else if let Some(callback) = callback.as_object() {
        request.expected = ranges(ctx, &callback.get("ranges")?)?;
    }
    if let Some(auth) = values::member(params, "auth")? {
        request.auth = sign_in_by(ctx, &values::text(ctx, &auth)?)?;
    }
    if let Some(codings) = values::member(params, "compression")? {
        request.compression = compression(ctx, &values::text(ctx, &codings)?)?;
    }
    request.jar = jar(ctx, params)?;
    Ok(())
}

/// How to sign in, by the name that scripts use; `basic` is what an address with a name does anyway.
fn sign_in_by(ctx: &Ctx<'_>, name: &str) -> Result<Auth> {
    let refused = match name {
        "basic" => return Ok(Auth::None),
        "digest" => return Ok(Auth::Digest),
        "ntlm" => "NTLM isn't supported: sign in by 'basic' or 'digest', or by a header".to_owned(),
        other => format!("params.auth is 'basic' or 'digest', not '{other}'"),
    };
    Err(Exception::throw_type(ctx, &refused))
}

fn jar<'js>(ctx: &Ctx<'js>, params: &Object<'js>) -> Result<Jar> {
    let mut jar = Jar::default();
    if let Some(cookies) = values::member(params, "cookies")? {
        let Some(cookies) = cookies.as_object() else {
            return Err(Exception::throw_type(
                ctx,
                "params.cookies are an object of names and values",
            ));
        };
        for entry in cookies.props::<String, Value<'js>>() {
            let (name, value) = entry?;
            match value.as_object().filter(|object| !object.is_array()) {
                Some(object) => {
                    let text = values::text(ctx, &object.get::<_, Value<'js>>("value")?)?;
                    let replace = object.get::<_, Option<bool>>("replace")?.unwrap_or(false);
                    jar.own.push((name, text, replace));
                }
                None => jar.own.push((name, values::text(ctx, &value)?, false)),
            }
        }
    }
    if let Some(other) = values::member(params, "jar")? {
        let id = match other.as_object() {
            Some(other) => other.get::<_, Option<u32>>("$id")?,
            None => None,
        };
        if id != Some(0) {
            return Err(Exception::throw_type(
                ctx,
                "params.jar is the user's own CookieJar, http.cookieJar(): requests with another jar aren't supported. Give \
                 their cookies by params.cookies",
            ));
        }
    }
    Ok(jar)
}

/// Ranges of statuses as `expectedStatuses` makes them; any status if the value is null.
pub(super) fn ranges<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Expected> {
    if value.is_null() {
        return Ok(Expected::Any);
    }
    let Some(all) = value.as_array() else {
        return Err(Exception::throw_type(
            ctx,
            "responseCallback is what http.expectedStatuses(…) returns",
        ));
    };
    let mut ranges = Vec::new();
    for range in all.iter::<Array<'js>>() {
        let range = range?;
        let status = |place: usize| -> Result<u16> {
            Ok(range.get::<f64>(place)?.clamp(0.0, 65535.0) as u16)
        };
        ranges.push((status(0)?, status(1)?));
    }
    Ok(Expected::Ranges(ranges))
}

fn compression(ctx: &Ctx<'_>, text: &str) -> Result<Vec<Compression>> {
    text.split(',')
        .map(str::trim)
        .filter(|coding| !coding.is_empty())
        .map(|coding| {
            Ok(match coding {
                "gzip" => Compression::Gzip,
                "deflate" => Compression::Deflate,
                "br" => Compression::Brotli,
                "zstd" => Compression::Zstd,
                other => {
                    return Err(Exception::throw_type(
                        ctx,
                        &format!("params.compression is gzip, deflate, br, or zstd, not '{other}'"),
                    ));
                }
            })
        })
        .collect()
}

fn default_header(request: &mut Request, name: &str, value: &str) {
    if !request
        .headers
        .iter()
        .any(|(given, _)| given.eq_ignore_ascii_case(name))
    {
        request.headers.push((name.to_owned(), value.to_owned()));
    }
}

fn is_header(name: &str, value: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token) && !value.contains(['\r', '\n', '\0'])
}

/// Returns true if the address names a user before its host.
fn has_user(url: &str) -> bool {
    let after = url.find("://").map_or(0, |place| place + 3);
    let host = url[after..]
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    host.contains('@')
}

/// Moves the name and password of the address into a header (RFC 7617).
fn sign_in(ctx: &Ctx<'_>, request: &mut Request) -> Result<()> {
    let Ok(mut url) = Url::parse(&request.url) else {
        return Ok(());
    };
    let decoded = |text: &str| {
        let pair = format!("x={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(pair.as_bytes())
            .next()
            .map_or_else(String::new, |(_, value)| value.into_owned())
    };
    let pair = format!(
        "{}:{}",
        decoded(url.username()),
        decoded(url.password().unwrap_or_default())
    );
    let encoded = values::refused(ctx, super::encoding::to_base64(pair.as_bytes(), "std"))?;
    default_header(request, "Authorization", &format!("Basic {encoded}"));
    if url.set_username("").is_ok() && url.set_password(None).is_ok() {
        request.url = url.to_string();
    }
    Ok(())
}
