//! What a decision is given besides the request, and what it gives back.

use groupware_ids::Ids;
use groupware_store::{Batch, Snapshot};

use crate::layout::{Amount, Change, Keep};
use crate::limits::{REGISTERED_BYTES, REGISTRATIONS, USERS_BYTES, USERS_REGISTRATIONS};
use crate::registration::{Content, Head, Registration, State};
use crate::{Id, Layout, Lease, LookupError, Reason};

/// Who asks for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registrant {
    /// Somebody who didn't sign in. What they register, anybody may change.
    Anybody,
    /// A user, who alone may change what they register.
    User(String),
    /// Whoever runs the service, who may change everything.
    Admin,
}

/// What a decision reads: one state of the store, the moment, and random bits for new names.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// How registrations lie in it.
    pub layout: Layout,
    /// Seconds since 1970.
    pub now: i64,
    /// Bits that nobody can guess. Deciding again may start from the same.
    pub random: u128,
    /// Who asks.
    pub who: &'a Registrant,
}

/// What is to be committed, and the answer once it is.
#[derive(Debug)]
pub struct Decision<T> {
    /// To be committed as a whole; empty if nothing changes.
    pub batch: Batch,
    /// What to answer then.
    pub reply: T,
    /// Bytes of what was registered, as they are kept.
    pub bytes: u64,
}

impl Context<'_> {
    pub(crate) fn keep(&self) -> &'static dyn Keep {
        self.layout.keep()
    }

    /// The bits for the n-th new name of a request.
    pub(crate) fn bits(&self, number: usize) -> u128 {
        Ids::from_random(self.random).nth(number)
    }

    /// A new registration.
    pub(crate) fn registration(
        &self,
        (id, version_bits): (Id, u128),
        content: Content,
        asked_ttl_s: Option<i64>,
    ) -> Registration {
        let head = Head {
            // The half of the bits that a name of the same bits shows last.
            version: (version_bits >> 64) as u64 ^ version_bits as u64,
            lease: Lease::grant(asked_ttl_s, self.now),
            state: State::Registered,
            kind: content.record.kind().to_owned(),
            owner: match self.who {
                Registrant::User(name) => Some(name.clone()),
                Registrant::Anybody | Registrant::Admin => None,
            },
            fingerprint: content.xml.is_none().then(|| content.record.fingerprint()),
            bytes: u32::try_from(content.size()).expect("limits keep it far below 4 GB"),
        };
        Registration { id, head, content }
    }

    /// Whether whoever asks may change a registration.
    pub(crate) fn may_change(&self, head: &Head) -> Result<(), LookupError> {
        let may = match (&head.owner, self.who) {
            (None, _) | (_, Registrant::Admin) => true,
            (Some(owner), Registrant::User(name)) => owner == name,
            (Some(_), Registrant::Anybody) => false,
        };
        match may {
            true => Ok(()),
            false => Err(LookupError::refused(
                Reason::Foreign,
                "Not authorized to perform the request: the registration is somebody else's.",
            )),
        }
    }

    /// What to commit for these changes, if there is room for what comes by them. What is replaced is not
    /// taken off.
    pub(crate) fn decide<T>(
        &self,
        changes: &[Change],
        reply: T,
    ) -> Result<Decision<T>, LookupError> {
        let mut more = Amount::default();
        for change in changes {
            if let Change::Put(new) = change {
                more.add(1, i64::from(new.head.bytes));
            }
        }
        if more != Amount::default() {
            self.has_room(more)?;
        }
        let batch = self.keep().change(self.snapshot, changes)?;
        Ok(Decision {
            batch,
            reply,
            bytes: more.bytes.unsigned_abs(),
        })
    }

    /// Whether so much more is taken: from anybody, and from who asks.
    fn has_room(&self, more: Amount) -> Result<(), LookupError> {
        let holds = |owner, (registrations, bytes): (i64, i64), who: &str| {
            let held = self.keep().held(self.snapshot, owner)?;
            let is_room = held.registrations.saturating_add(more.registrations) <= registrations
                && held.bytes.saturating_add(more.bytes) <= bytes;
            match is_room {
                true => Ok(()),
                false => Err(LookupError::refused(
                    Reason::Full,
                    format!(
                        "{who} at most {registrations} registrations with {} MB.",
                        bytes >> 20
                    ),
                )),
            }
        };
        holds(None, (REGISTRATIONS, REGISTERED_BYTES), "The service holds")?;
        match self.who {
            Registrant::User(name) => {
                let most = (USERS_REGISTRATIONS, USERS_BYTES);
                holds(Some(name), most, "A user holds")
            }
            Registrant::Anybody | Registrant::Admin => Ok(()),
        }
    }
}
