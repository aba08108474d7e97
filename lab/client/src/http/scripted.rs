//! Requests that a program makes at run time: rendered from their parts instead of a template, with whole responses for
//! the program. It knows no program.

use std::rc::Rc;

use super::call::Call;
use super::client::HttpClient;
use super::cookie::{RenderedCookie, write_to_other};
use super::message::Message;
use super::redirect::{Hop, is_redirect};
use super::request::{OURS, Prepared, resolve, sound_value};
use super::session::{HttpSession, MadeOfParts};
use crate::exchange::{RequestId, Unmade};
use crate::parts::{Parts, WholeAnswer};
use crate::time::Time;
use bytes::Bytes;

/// Longer bodies are not copied behind their head.
const COPIED_BYTES: usize = 4 << 10;

impl<T: Time> HttpClient<T> {
    /// Renders a request from its parts. It counts as the workload's request of this index.
    pub(super) fn rendered_parts(
        &self,
        session: &HttpSession,
        request: RequestId,
        parts: &Parts,
    ) -> Result<MadeOfParts, Unmade> {
        let own = self.prepared_for(request, parts);
        let (other, path) = resolve(&parts.target, &self.base)?;
        let server = other.as_deref().unwrap_or(&self.base);
        let mut text = self.take_text();
        own.push_line(path, server, &mut text);
        let of_header = parts.headers.iter().filter(|(name, _)| is_cookie(name));
        let of_header = of_header.flat_map(|(_, value)| value.split(';'));
        let of_header = of_header.map(str::trim).filter(|pair| !pair.is_empty());
        let mut cookies: Vec<RenderedCookie> = parts.cookies.iter().map(rendered_cookie).collect();
        for pair in of_header {
            if !sound_value(pair) {
                let text = "the value of header `Cookie` holds a control character";
                return Err(Unmade::Failed(text.into()));
            }
            cookies.push(RenderedCookie {
                pair: pair.into(),
                is_default: false,
            });
        }
        match &other {
            None => session
                .jar
                .write(self.base.secure, path, &cookies, &mut text),
            Some(_) => write_to_other(&as_own(&cookies), &mut text),
        }
        push_headers(parts, &mut text)?;
        own.push_length(parts.body.len(), &mut text);
        text.push_str("\r\n");
        let mut message = Message::new(text);
        match std::str::from_utf8(&parts.body) {
            Ok(body) if body.len() <= COPIED_BYTES => message.text.push_str(body),
            _ => message.push_file(&parts.body),
        }
        message.cookies = cookies.into();
        let hop = Hop {
            message,
            other,
            left: parts.follow,
        };
        Ok(MadeOfParts {
            own,
            hop: Box::new((request, hop)),
        })
    }

    /// Returns the rules for the response to such a request: usually those of the last one of its place.
    fn prepared_for(&self, request: RequestId, parts: &Parts) -> Rc<Prepared> {
        let mut variants = self.variants.borrow_mut();
        let place = request as usize;
        if variants.len() <= place {
            variants.resize_with(place + 1, || None);
        }
        match &variants[place] {
            Some(last) if last.fits(parts) => Rc::clone(last),
            _ => {
                let new = Rc::new(Prepared::of_parts(&self.requests[place], parts));
                variants[place] = Some(Rc::clone(&new));
                new
            }
        }
    }
}

impl<T> Call<'_, T> {
    /// Keeps a whole response for the program. Returns true if the next request is that of its redirect.
    pub(super) fn keep_whole(&mut self, status: u16, body: &[u8]) -> bool {
        let Some(whole) = &mut self.whole else {
            return false;
        };
        whole.status = status;
        if self.left > 0
            && is_redirect(status)
            && let Some(location) = self.location.take()
        {
            self.redirect = Some((status, location));
            return true;
        }
        if self.prepared.keeps_body {
            whole.body = Bytes::copy_from_slice(body);
        }
        false
    }

    /// Keeps a header for the program.
    #[inline]
    pub(super) fn keep_header(&mut self, name: &str, value: &[u8]) {
        if let Some(whole) = &mut self.whole {
            let value = String::from_utf8_lossy(value);
            whole.headers.push((name.into(), value.trim().into()));
        }
    }
}

impl WholeAnswer {
    /// Sets the URL of the request: the server and the target of its message.
    pub(super) fn set_url(&mut self, server: &lab_units::BaseUrl, message: &str) {
        let target = message.split(' ').nth(1).unwrap_or("/");
        self.url = format!("{server}{target}");
    }
}

fn rendered_cookie((name, value, replaces): &(String, String, bool)) -> RenderedCookie {
    RenderedCookie {
        pair: format!("{name}={value}").into(),
        is_default: !replaces,
    }
}

/// Returns the cookies as those of one request: another server has set none.
fn as_own(cookies: &[RenderedCookie]) -> Vec<RenderedCookie> {
    let mut own = cookies.to_vec();
    own.iter_mut().for_each(|cookie| cookie.is_default = false);
    own
}

/// The cookies of such a header are sent with those of the jar: a request has one header of them (RFC 6265, 5.4).
fn is_cookie(name: &str) -> bool {
    name.eq_ignore_ascii_case("cookie")
}

fn push_headers(parts: &Parts, out: &mut String) -> Result<(), Unmade> {
    for (name, value) in &parts.headers {
        let is_ours = OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours));
        if is_ours || name.eq_ignore_ascii_case("host") {
            continue;
        }
        let is_token = |b: u8| b.is_ascii_graphic() && !b":()<>@,;\\\"/[]?={} ".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            let text = format!("`{}` is not a header's name", name.escape_debug());
            return Err(Unmade::Failed(text.into()));
        }
        if !sound_value(value) {
            let text = format!("the value of header `{name}` holds a control character");
            return Err(Unmade::Failed(text.into()));
        }
        out.push_str(name);
        out.push_str(": ");
        out.push_str(value.trim());
        out.push_str("\r\n");
    }
    Ok(())
}
