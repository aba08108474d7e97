//! Deliveries of which the store could not tell whether they took effect. Senders repeat such a message: it is stored
//! under the names that it had the first time, or found there.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_mail::{Ids, Unid};

/// What a client sent: its retry sends the same.
pub type Fingerprint = [u8; 32];

/// Deliveries that are remembered; beyond, the oldest is forgotten.
const MOST: usize = 1024;
/// How long a doubt is kept: mail servers try again within minutes. A user who writes the same again later means another message.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The fingerprint of the parts of what a client sent.
pub fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// A delivery that may have taken effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The moment and the names that it had.
    pub(crate) now_us: i64,
    pub(crate) ids: Ids,
    /// The records of its messages. If it took effect, they are there, but for those whose owners removed them since.
    pub(crate) records: BTreeSet<(Arc<str>, Vec<u8>)>,
    /// The message in the sender's mailbox.
    pub(crate) made: Option<Unid>,
}

/// The deliveries that are in doubt, by the mailbox that they come from and what was sent.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<HashMap<(String, Fingerprint), (Duration, Doubt)>>);

impl Doubts {
    /// The delivery that this one repeats, if there is one. What was sent is looked at only where some are in doubt.
    pub(crate) fn find(
        &self,
        mailbox: &str,
        sent: impl FnOnce() -> Fingerprint,
        now: Duration,
    ) -> Option<Doubt> {
        if self.lock().is_empty() {
            return None;
        }
        let key = (mailbox.to_owned(), sent());
        let doubts = self.lock();
        let (since, doubt) = doubts.get(&key)?;
        (now < *since + KEPT_FOR).then(|| doubt.clone())
    }

    pub(crate) fn note(&self, mailbox: &str, sent: Fingerprint, now: Duration, doubt: Doubt) {
        let mut doubts = self.lock();
        doubts.retain(|_, (since, _)| now < *since + KEPT_FOR);
        if doubts.len() >= MOST {
            let oldest = doubts.iter().min_by_key(|(_, (since, _))| *since);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                doubts.remove(&key);
            }
        }
        doubts.insert((mailbox.to_owned(), sent), (now, doubt));
    }

    pub(crate) fn settle(&self, mailbox: &str, sent: Fingerprint) {
        self.lock().remove(&(mailbox.to_owned(), sent));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Fingerprint), (Duration, Doubt)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(now_us: i64) -> Doubt {
        Doubt {
            now_us,
            ids: Ids::from_random(1),
            records: [("ada".into(), b"m/b/x".to_vec())].into(),
            made: None,
        }
    }

    #[test]
    fn parts_of_what_was_sent_dont_run_together() {
        let of = |parts: &[&str]| fingerprint(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["ab", ""]), of(&["a", "b"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }

    #[test]
    fn doubts_are_bounded_in_number_and_time() {
        let doubts = Doubts::default();
        let sent = |number: usize| fingerprint([&number.to_le_bytes()[..]]);
        let at = |second: usize| Duration::from_secs(second as u64);
        doubts.note("ada", sent(0), at(0), doubt(0));
        let found = |mailbox, number, now| doubts.find(mailbox, || sent(number), now);
        assert_eq!(found("ada", 0, at(3599)), Some(doubt(0)));
        assert_eq!(found("ada", 0, at(3600)), None);
        assert_eq!(found("ben", 0, at(1)), None);
        assert_eq!(found("ada", 1, at(1)), None);
        for number in 1..=MOST {
            doubts.note("ada", sent(number), at(1 + number / 1000), doubt(1));
        }
        assert_eq!(doubts.lock().len(), MOST);
        assert_eq!(found("ada", 0, at(3)), None);
        assert_eq!(found("ada", MOST, at(3)), Some(doubt(1)));
        doubts.settle("ada", sent(MOST));
        assert_eq!(found("ada", MOST, at(3)), None);
    }
}
