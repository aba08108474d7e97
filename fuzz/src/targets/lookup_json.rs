//! Any bytes as the body or the query of a request to the lookup service: parsed, or rejected with a 4xx status.

use groupware_lookup::{BulkRenewal, LookupError, LookupQuery, NewRecord, parse_renewal};

fn judge<T>(outcome: Result<T, LookupError>) -> Option<T> {
    match outcome {
        Ok(read) => Some(read),
        Err(error) => {
            assert!((400..500).contains(&error.status()), "{error}");
            None
        }
    }
}

pub(crate) fn run(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    match choice % 5 {
        0 => {
            if let Some(new) = judge(NewRecord::parse(body)) {
                assert!(!new.record().kind().is_empty());
            }
        }
        1 => {
            for new in judge(NewRecord::parse_bulk(body)).into_iter().flatten() {
                judge(new);
            }
        }
        2 => drop(judge(BulkRenewal::parse(body))),
        3 => drop(judge(parse_renewal(body))),
        _ => {
            let text = String::from_utf8_lossy(body);
            let pairs = text
                .split('&')
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            judge(LookupQuery::parse(pairs));
        }
    }
}
