//! Moments as a HAR recording that browsers and other tools open (HTTP Archive 1.2).
//!
//! By the format's last draft: <https://w3c.github.io/web-performance/specs/HAR/Overview.html>.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use lab_client::Version;
use serde_json::{Value, json};

use crate::model::{Ended, Exchanged, Message, Moment, Response, header};

/// The recording of the moments since `began`.
#[must_use]
pub fn har(moments: &[Moment], began: Timestamp) -> Value {
    let exchanges = moments.iter().filter_map(|moment| match moment {
        Moment::Exchanged(exchanged) => Some(&**exchanged),
        Moment::Logged(_) | Moment::NotDone { .. } => None,
    });
    let (mut pages, mut entries) = (Vec::new(), Vec::new());
    for exchanged in exchanges.filter(|exchanged| !exchanged.messages.is_empty()) {
        if exchanged.place.0 == 0 {
            pages.push(page(exchanged, pages.len(), began));
        }
        let page = format!("step_{}", pages.len());
        let of_one = exchanged.messages.iter();
        entries.extend(of_one.map(|message| entry(message, exchanged, &page, began)));
    }
    json!({
        "log": {
            "version": "1.2",
            "creator": { "name": "plimsoll", "version": env!("CARGO_PKG_VERSION") },
            "pages": pages,
            "entries": entries,
        }
    })
}

fn page(exchanged: &Exchanged, before: usize, began: Timestamp) -> Value {
    let at = exchanged
        .messages
        .first()
        .map_or(0.0, |one| one.timing.began_ms);
    json!({
        "id": format!("step_{}", before + 1),
        "title": exchanged.step,
        "startedDateTime": moment(began, at),
        "pageTimings": { "onContentLoad": -1, "onLoad": -1 },
    })
}

fn moment(began: Timestamp, after_ms: f64) -> String {
    let after = Duration::from_secs_f64(after_ms.max(0.0) / 1e3);
    let at = began.checked_add(after).unwrap_or(began);
    format!("{at:.3}")
}

fn entry(message: &Message, exchanged: &Exchanged, page: &str, began: Timestamp) -> Value {
    let timing = &message.timing;
    let told = |ms: Option<f64>| ms.unwrap_or(-1.0);
    let time: f64 = [timing.connect_ms, timing.wait_ms, timing.receive_ms]
        .into_iter()
        .flatten()
        .sum();
    let comment = match &exchanged.ended {
        Ended::Failed { class, detail } => format!("{}: {detail}", class.name()),
        _ => String::new(),
    };
    json!({
        "pageref": page,
        "startedDateTime": moment(began, timing.began_ms),
        "time": time,
        "request": request(message),
        "response": match &message.response {
            Some(answer) => response(answer, message.version),
            None => response(&Response::default(), message.version),
        },
        "cache": {},
        "timings": {
            "blocked": -1,
            "dns": -1,
            "connect": told(timing.connect_ms),
            "ssl": -1,
            "send": 0,
            "wait": timing.wait_ms.unwrap_or(0.0),
            "receive": timing.receive_ms.unwrap_or(0.0),
        },
        "comment": comment,
    })
}

fn request(message: &Message) -> Value {
    let Message {
        request, server, ..
    } = message;
    let query = request
        .target
        .split_once('?')
        .map_or("", |(_, query)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        json!({ "name": name, "value": value })
    });
    let mut told = json!({
        "method": request.method,
        "url": format!("{server}{}", request.target),
        "httpVersion": message.version.to_string(),
        "cookies": cookies(header(&request.headers, "cookie").unwrap_or_default()),
        "headers": headers(&request.headers),
        "queryString": pairs.collect::<Vec<_>>(),
        "headersSize": -1,
        "bodySize": request.body.len(),
    });
    if !request.body.is_empty() {
        told["postData"] = json!({
            "mimeType": header(&request.headers, "content-type").unwrap_or_default(),
            "text": String::from_utf8_lossy(&request.body),
        });
    }
    told
}

fn response(response: &Response, version: Version) -> Value {
    let kind = header(&response.headers, "content-type");
    let mut content = json!({
        "size": response.body.len() as u64 + response.left_out_bytes,
        "mimeType": kind.unwrap_or("x-unknown"),
    });
    match std::str::from_utf8(&response.body) {
        // An undecoded body can't be masked.
        _ if response.coding().is_some() => content["comment"] = json!("not decoded: left out"),
        Ok(text) => content["text"] = json!(text),
        Err(_) => {
            content["text"] = json!(BASE64_STANDARD.encode(&response.body));
            content["encoding"] = json!("base64");
        }
    }
    let set = response.headers.iter();
    let set = set.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let set: Vec<Value> = set
        .flat_map(|(_, value)| cookies(value.split(';').next().unwrap_or_default()))
        .collect();
    json!({
        "status": response.status,
        "statusText": response.reason,
        "httpVersion": version.to_string(),
        "cookies": set,
        "headers": headers(&response.headers),
        "content": content,
        "redirectURL": header(&response.headers, "location").unwrap_or_default(),
        "headersSize": -1,
        "bodySize": response.body_bytes,
    })
}

fn headers(headers: &[(String, String)]) -> Vec<Value> {
    let one = |(name, value): &(String, String)| json!({ "name": name, "value": value });
    headers.iter().map(one).collect()
}

fn cookies(pairs: &str) -> Vec<Value> {
    let pairs = pairs
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}
