//! Cookie jars of scripts, by number: 0 is the user's own (`http.cookieJar()`), others are made by
//! `new http.CookieJar()` and hold what the script sets, but send nothing.

use rquickjs::{Ctx, Exception, Object, Result};
use url::Url;

use crate::shared::Shared;
use crate::turn::Cookie;

use super::cookies;
use super::state::OWN_JAR;
use super::values;

fn address(ctx: &Ctx<'_>, url: &str) -> Result<Url> {
    values::refused(ctx, super::address::parse(url, None))
}

/// The cookies that a jar sends to an address: an object of names and arrays of values.
pub(super) fn cookies_for<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    id: u32,
    url: &str,
) -> Result<Object<'js>> {
    let url = address(ctx, url)?;
    let now = shared.now_ms();
    let found = shared.api.read(shared.user.get(), |user| {
        let jar = user.jars.get(&id)?;
        let pairs = jar
            .of(&url, now)
            .into_iter()
            .map(|cookie| (cookie.name.clone(), cookie.value.clone()));
        Some(pairs.collect::<Vec<_>>())
    });
    values::grouped(ctx, found.flatten().unwrap_or_default())
}

/// Sets a cookie for an address.
pub(super) fn set<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    id: u32,
    (url, name, value): (&str, &str, &str),
    options: Option<&Object<'js>>,
) -> Result<()> {
    let url = address(ctx, url)?;
    let mut cookie = cookies::cookie_for(&url, name, value);
    "/".clone_into(&mut cookie.path);
    if let Some(options) = options {
        if let Some(domain) = values::member(options, "domain")? {
            cookie.domain = values::text(ctx, &domain)?
                .trim_start_matches('.')
                .to_ascii_lowercase();
        }
        if let Some(path) = values::member(options, "path")? {
            cookie.path = values::text(ctx, &path)?;
        }
        if let Some(expires) = values::member(options, "expires")? {
            let text = values::text(ctx, &expires)?;
            let read = cookies::date(&text);
            cookie.expires_ms = Some(read.ok_or_else(|| {
                Exception::throw_type(
                    ctx,
                    &format!(
                        "'{text}' is not a valid cookie date, such as 'Wed, 21 Oct 2026 07:28:00 GMT'"
                    ),
                )
            })?);
        }
        if let Some(age) = values::member(options, "max_age")? {
            cookie.max_age = age.as_number().map(|seconds| seconds as i64);
        }
        cookie.secure = options.get::<_, Option<bool>>("secure")?.unwrap_or(false);
        cookie.http_only = options
            .get::<_, Option<bool>>("http_only")?
            .unwrap_or(false);
    }
    change(shared, id, cookie);
    Ok(())
}

fn change(shared: &Shared, id: u32, cookie: Cookie) {
    let now = shared.now_ms();
    shared.api.with(shared.user.get(), |user| {
        if id == OWN_JAR {
            user.changes.push(cookie.clone());
        }
        user.jars.entry(id).or_default().put(cookie, now);
    });
}

/// Removes all cookies for an address, or the one of a name.
pub(super) fn remove<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    id: u32,
    url: &str,
    name: Option<&str>,
) -> Result<()> {
    let url = address(ctx, url)?;
    shared.api.with(shared.user.get(), |user| {
        let gone = user.jars.entry(id).or_default().remove(&url, name);
        if id == OWN_JAR {
            user.changes.extend(gone.into_iter().map(|cookie| Cookie {
                value: String::new(),
                max_age: Some(0),
                expires_ms: Some(0.0),
                ..cookie
            }));
        }
    });
    Ok(())
}
