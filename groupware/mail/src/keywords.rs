//! Keywords that the owner of a message has set besides the system flags, such as `$Junk` or
//! `work`.
//!
//! They are stored beside the entry in a record of their own, since earlier versions drop unknown members
//! when they rewrite an entry. Each change of keywords writes the entry, too: its revision records the last
//! change of the message, and a concurrent removal decides again. Earlier versions leave the keywords of a
//! message that they remove; these are orphaned, and removed with the account.

use std::collections::BTreeMap;
use std::sync::Arc;

use groupware_store::{Batch, Snapshot};
use groupware_text::{KEYWORDS, is_keyword, keywords as in_order, shortened};

use crate::{MailError, Unid, keys};

/// The version of the stored form. A reader rejects unknown versions.
const FORMAT: u8 = 1;

/// Returns the keywords of a message in alphabetical order.
///
/// # Errors
/// Errors of the store.
pub fn keywords(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    unid: Unid,
) -> Result<Vec<String>, MailError> {
    let key = keys::keywords(unid);
    match snapshot.get(mailbox, &key)? {
        Some(record) => decode(&key, &record.value),
        None => Ok(Vec::new()),
    }
}

/// Returns the keywords of those of these messages that have any. Each record is read by itself:
/// messages of all folders lie between two in the order of ids.
///
/// # Errors
/// Errors of the store.
pub fn keywords_of(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    unids: &[Unid],
) -> Result<BTreeMap<Unid, Vec<String>>, MailError> {
    let places: Vec<Vec<u8>> = unids.iter().map(|unid| keys::keywords(*unid)).collect();
    let wanted: Vec<(&str, &[u8])> = places.iter().map(|key| (mailbox, &key[..])).collect();
    let records = snapshot.get_many(&wanted)?;
    let mut found = BTreeMap::new();
    for ((unid, key), record) in unids.iter().zip(&places).zip(records) {
        if let Some(record) = record {
            found.insert(*unid, decode(key, &record.value)?);
        }
    }
    Ok(found)
}

/// Parses keywords from a client: separated by blanks.
///
/// # Errors
/// A refusal of an invalid keyword, and of too many.
pub fn parse_keywords(text: &str) -> Result<Vec<String>, MailError> {
    let words = || text.split(' ').filter(|word| !word.is_empty());
    if let Some(bad) = words().find(|word| !is_keyword(word)) {
        let bad = shortened(bad).escape_debug().to_string();
        let message = format!("{bad} is no keyword: it has letters, digits, and signs of ASCII.");
        return Err(MailError::bad_request(message));
    }
    if words().count() > KEYWORDS {
        let message = format!("A message has at most {KEYWORDS} keywords.");
        return Err(MailError::bad_request(message));
    }
    Ok(in_order(words()))
}

/// Makes a batch replace a message's keywords; returns whether they differ.
pub(crate) fn replace(
    snapshot: &dyn Snapshot,
    (batch, mailbox): (&mut Batch, &Arc<str>),
    unid: Unid,
    words: &[String],
) -> Result<bool, MailError> {
    let key = keys::keywords(unid);
    let (before, after) = (snapshot.get(mailbox, &key)?, encode(words));
    let is_same = before.map(|record| record.value.to_vec()) == after;
    match after {
        _ if is_same => {}
        Some(after) => {
            batch.put(Arc::clone(mailbox), key, after);
        }
        None => {
            batch.delete(Arc::clone(mailbox), key);
        }
    }
    Ok(!is_same)
}

/// The stored form; `None` for no keywords.
fn encode(words: &[String]) -> Option<Vec<u8>> {
    let words = in_order(words.iter().map(String::as_str));
    let text = words.join(" ");
    (!text.is_empty()).then(|| [&[FORMAT][..], text.as_bytes()].concat())
}

fn decode(key: &[u8], value: &[u8]) -> Result<Vec<String>, MailError> {
    let text = match value {
        [FORMAT, text @ ..] => std::str::from_utf8(text),
        _ => return Err(MailError::corrupt(key, "keywords of another form")),
    };
    let text = text.map_err(|error| MailError::corrupt(key, error))?;
    Ok(text.split(' ').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_come_back() {
        let words = parse_keywords(" work $Junk  WORK ").unwrap();
        assert_eq!(words, ["$Junk", "work"]);
        let stored = encode(&words).unwrap();
        assert_eq!(decode(b"k", &stored).unwrap(), words);
        assert_eq!(parse_keywords("").unwrap(), Vec::<String>::new());
        assert_eq!(encode(&[]), None);
        assert!(decode(b"k", b"\x02work").is_err() && decode(b"k", b"").is_err());
    }

    #[test]
    fn what_is_no_keyword_is_refused() {
        for bad in ["(", "a\tb", "\\Seen", "\u{fc}", &"x".repeat(100)] {
            assert!(parse_keywords(bad).is_err(), "{bad}");
        }
        let many: Vec<String> = (0..=KEYWORDS).map(|number| number.to_string()).collect();
        assert!(parse_keywords(&many.join(" ")).is_err());
    }
}
