//! Requests of a script as parts for a client, and responses as the script sees them.

use lab_client::{ErrorClass, Parts, Phase, Phases, WholeAnswer};
use lab_script::{Answer, Auth, Cookie, Expected, Failure, Request, ResponseKind, Timings};

/// The most redirects that a request follows unless the script sets another number, as in k6.
const USUAL_REDIRECTS: u32 = 10;

/// Returns the parts of a request.
///
/// # Errors
/// A sentence on what can't be sent.
pub(super) fn parts(request: &Request) -> Result<Parts, Box<str>> {
    if !request.compression.is_empty() {
        return Err("`compression` is not supported: compress the body before sending it".into());
    }
    if request.auth == Auth::Digest {
        return Err("scripts can't answer Digest challenges here: use `auth` of a workload".into());
    }
    Ok(Parts {
        method: request.method.clone(),
        target: request.url.clone(),
        headers: request.headers.clone(),
        cookies: request.jar.own.clone(),
        body: request.body.clone(),
        timeout: request.timeout,
        follow: request.redirects.unwrap_or(USUAL_REDIRECTS),
        expect: match &request.expected {
            Expected::Usual => Vec::new(),
            Expected::Any => vec![100..=999],
            Expected::Ranges(ranges) => ranges.iter().map(|(low, high)| *low..=*high).collect(),
        },
        keeps_body: request.response != ResponseKind::None,
    })
}

/// Returns a response as the script sees it.
pub(super) fn answer(
    whole: Option<Box<WholeAnswer>>,
    (class, phases): (Option<ErrorClass>, Phases),
    url: &str,
) -> Answer {
    let whole = *whole.unwrap_or_default();
    let is_answered = whole.status > 0 && class.is_none_or(|class| class == ErrorClass::Status);
    if !is_answered {
        return Answer {
            url: url.to_owned(),
            error: Some(failure(class.unwrap_or(ErrorClass::Check))),
            timings: timings(phases),
            ..Answer::default()
        };
    }
    let headers = whole.headers.into_iter();
    let headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Answer {
        status: whole.status,
        headers,
        body: whole.body,
        timings: timings(phases),
        url: whole.url,
        protocol: match whole.is_http2 {
            true => "HTTP/2.0".to_owned(),
            false => "HTTP/1.1".to_owned(),
        },
        ..Answer::default()
    }
}

/// Returns the response to a request that was not sent.
pub(super) fn unsent(why: &str, url: &str) -> Answer {
    Answer {
        url: url.to_owned(),
        error: Some(Failure {
            code: 1000,
            message: why.to_owned(),
        }),
        ..Answer::default()
    }
}

/// The codes are those of k6's documentation.
fn failure(class: ErrorClass) -> Failure {
    let (code, message) = match class {
        ErrorClass::Timeout => (1050, "request timeout"),
        ErrorClass::Connect => (1212, "no connection"),
        ErrorClass::Reset => (1220, "connection reset"),
        ErrorClass::Status | ErrorClass::Check | ErrorClass::Script => (1000, "unusable response"),
    };
    Failure {
        code,
        message: message.to_owned(),
    }
}

fn timings(phases: Phases) -> Timings {
    let micros = |phase: Phase| phases.0[phase as usize].unwrap_or_default() / 1_000;
    Timings {
        blocked: micros(Phase::Blocked),
        looking_up: micros(Phase::Dns),
        connecting: micros(Phase::Connect),
        tls_handshaking: micros(Phase::Tls),
        sending: 0,
        waiting: micros(Phase::Wait),
        receiving: micros(Phase::Receive),
    }
}

/// Returns a cookie that a script sets or deletes as the value of `Set-Cookie`.
pub(super) fn as_set_cookie(cookie: &Cookie, now_ms: f64) -> String {
    let mut text = format!("{}={}", cookie.name, cookie.value);
    let path = match cookie.path.as_str() {
        "" => "/",
        path => path,
    };
    text.push_str(&format!("; Path={path}"));
    if !cookie.domain.is_empty() {
        let domain = cookie.domain.trim_matches(['[', ']']);
        text.push_str(&format!("; Domain={domain}"));
    }
    let left = cookie.expires_ms.map(|end| (end - now_ms) / 1_000.0);
    let age = cookie.max_age.map(|age| age as f64).or(left);
    if let Some(age) = age {
        text.push_str(&format!("; Max-Age={:.0}", age.ceil().max(0.0)));
    }
    if cookie.secure {
        text.push_str("; Secure");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_keep_their_domain_and_the_end_of_their_life() {
        let cookie = |max_age, expires_ms| Cookie {
            name: "a".to_owned(),
            value: "b".to_owned(),
            domain: "shop.test".to_owned(),
            max_age,
            expires_ms,
            ..Cookie::default()
        };
        for (max_age, expires_ms, expected) in [
            (None, None, ""),
            (Some(60), None, "; Max-Age=60"),
            (Some(60), Some(0.0), "; Max-Age=60"),
            (None, Some(12_500.0), "; Max-Age=3"),
            (None, Some(9_000.0), "; Max-Age=0"),
            // A deleted cookie.
            (Some(0), Some(0.0), "; Max-Age=0"),
        ] {
            let text = as_set_cookie(&cookie(max_age, expires_ms), 10_000.0);
            assert_eq!(text, format!("a=b; Path=/; Domain=shop.test{expected}"));
        }
    }
}
