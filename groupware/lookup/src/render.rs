//! Responses of the simple lookup service.

use serde_json::{Map, Value, json};

use crate::registration::Registration;
use crate::{LookupError, Reason};

/// The simple lookup service's error codes of a bulk renewal.
const EXPIRED: u16 = 21;
const NOT_FOUND: u16 = 22;

/// Returns a found record.
pub(crate) fn record(found: &Registration) -> Vec<u8> {
    let mut out = Vec::new();
    write_record(found, None, &mut out);
    out
}

/// Returns a deleted record.
pub(crate) fn deleted(found: &Registration) -> Vec<u8> {
    let mut out = Vec::new();
    write_record(found, Some("deleted"), &mut out);
    out
}

/// Appends a record, with the keys that the service sets.
pub(crate) fn write_record(found: &Registration, state: Option<&str>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (key, values) in &found.content.record.fields {
        text(key, out);
        out.extend(b":[");
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            text(value, out);
        }
        out.extend(b"],");
    }
    let lease = found.head.lease;
    let state = state.unwrap_or(found.head.state.text());
    let own = [
        ("uri", found.uri()),
        ("state", state.to_owned()),
        ("expires", lease.expires_text()),
    ];
    for (key, value) in own {
        text(key, out);
        out.push(b':');
        text(&value, out);
        out.push(b',');
    }
    out.extend(b"\"ttl\":[");
    text(&lease.ttl_text(), out);
    out.extend(b"]}");
}

/// Most texts need no escaping; a registration has thousands of them.
fn text(text: &str, out: &mut Vec<u8>) {
    let needs_escape = |byte: &u8| matches!(byte, 0..=0x1F | b'"' | b'\\');
    if text.as_bytes().iter().any(needs_escape) {
        return serde_json::to_writer(out, text).expect("a text is written to memory");
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Returns one key of a record.
pub(crate) fn key(found: &Registration, key: &str) -> Option<Vec<u8>> {
    let lease = found.head.lease;
    let value = match key {
        "uri" => json!(found.uri()),
        "state" => json!(found.head.state.text()),
        "expires" => json!(lease.expires_text()),
        "ttl" => json!([lease.ttl_text()]),
        key => match found.content.record.values(key) {
            [] => return None,
            values => json!(values),
        },
    };
    let object: Map<String, Value> = [(key.to_owned(), value)].into_iter().collect();
    Some(Value::Object(object).to_string().into_bytes())
}

/// Returns the results of a bulk registration: each record's URI, or by its index the error.
pub(crate) fn bulk_registered(outcomes: &[Result<String, LookupError>]) -> Vec<u8> {
    let registered: Vec<&String> = outcomes.iter().flatten().collect();
    let failed: Map<String, Value> = outcomes
        .iter()
        .enumerate()
        .filter_map(|(place, outcome)| Some((place, outcome.as_ref().err()?)))
        .map(|(place, error)| {
            let value = json!({ "error-code": error.status(), "error-message": error.to_string() });
            (place.to_string(), value)
        })
        .collect();
    let answer = json!({
        "total": outcomes.len(),
        "registered": registered.len(),
        "failure": failed.len(),
        "registered-uris": registered,
        "failed-records": failed,
    });
    answer.to_string().into_bytes()
}

/// Returns the results of a bulk renewal.
pub(crate) fn bulk_renewed(outcomes: &[(&str, Result<(), LookupError>)]) -> Vec<u8> {
    let (mut renewed, mut failed) = (Vec::new(), Map::new());
    for (uri, outcome) in outcomes {
        match outcome {
            Ok(()) => renewed.push(uri),
            Err(error) => {
                let (code, message) = match error.reason() {
                    Some(Reason::Lease) => (EXPIRED, "expired".to_owned()),
                    Some(Reason::NotFound) => (NOT_FOUND, "notfound".to_owned()),
                    _ => (error.status(), error.to_string()),
                };
                let value = json!({ "error-code": code, "error-message": message });
                failed.insert((*uri).to_owned(), value);
            }
        }
    }
    let answer = json!({
        "total": outcomes.len(),
        "renewed": renewed.len(),
        "failure": failed.len(),
        "renewed-uris": renewed,
        "failed-uris": failed,
    });
    answer.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_text_is_what_json_makes_of_it(text in any::<String>()) {
            let mut out = Vec::new();
            super::text(&text, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }
}
