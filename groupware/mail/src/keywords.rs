//! Keywords: what the owner of a message has marked it with besides what every message can be marked with, such as
//! `$Junk` or `work`.
//!
//! They lie beside the entry, in a record of their own, since versions before this one write entries anew without what
//! they don't know. Whatever changes them writes the entry, too: its revision says when the message changed last, and
//! who removes it at the same moment decides again. Versions that know nothing of keywords leave those of a message
//! that they remove: they are nobody's, and go with the mailbox.

use std::collections::BTreeMap;
use std::sync::Arc;

use groupware_store::{Batch, Snapshot};
use groupware_text::{KEYWORDS, is_keyword, keywords as in_order, shortened};

use crate::{MailError, Unid, keys};

/// Version of the stored form. A reader refuses what it doesn't know.
const FORMAT: u8 = 1;

/// The keywords of a message, in the order of the alphabet.
///
/// # Errors
/// The store's.
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

/// The keywords of these messages, for those that have any. No others are read: in the order of names, messages of
/// all folders lie between two.
///
/// # Errors
/// The store's.
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

/// Reads keywords as clients write them: with blanks between them.
///
/// # Errors
/// A refusal of what is no keyword, and of too many.
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

/// Has a batch give a message these keywords in place of those that it has; whether they are others.
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

/// The stored form; `None` of no keywords.
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
