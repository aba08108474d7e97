//! The inputs of a decision besides the request, and its result.

use groupware_ids::Ids;
use groupware_store::{Batch, Snapshot};

use crate::layout::{Amount, Change, Keep};
use crate::limits::{REGISTERED_BYTES, REGISTRATIONS, USERS_BYTES, USERS_REGISTRATIONS};
use crate::registration::{Content, Head, Registration, State};
use crate::{Id, Layout, Lease, LookupError, Reason};

/// The principal of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registrant {
    /// An unauthenticated client, whose registrations any client may change.
    Anybody,
    /// A user, who alone may change the user's registrations.
    User(String),
    /// The operator of the service, who may change everything.
    Admin,
}

/// The inputs of a decision: one state of the store, the time, and random bits for new ids.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The storage layout of registrations.
    pub layout: Layout,
    /// The time, seconds since 1970.
    pub now: i64,
    /// Unguessable bits. A repeated decision may start from the same ones.
    pub random: u128,
    /// The principal.
    pub who: &'a Registrant,
}

/// The batch to commit, and the response after that.
#[derive(Debug)]
pub struct Decision<T> {
    /// To be committed atomically; empty if nothing changes.
    pub batch: Batch,
    /// The response after the commit.
    pub reply: T,
    /// The stored bytes of new registrations.
    pub bytes: u64,
}

impl Context<'_> {
    pub(crate) fn keep(&self) -> &'static dyn Keep {
        self.layout.keep()
    }

    /// The bits for the nth new id of a request.
    pub(crate) fn bits(&self, number: usize) -> u128 {
        Ids::from_random(self.random).nth(number)
    }

    /// Creates a registration.
    pub(crate) fn registration(
        &self,
        (id, version_bits): (Id, u128),
        content: Content,
        asked_ttl_s: Option<i64>,
    ) -> Registration {
        let head = Head {
            // The half of the bits that an id of the same bits shows last.
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

    /// Checks that the principal may change a registration.
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

    /// Returns the batch for these changes, if there is room for new registrations. Replaced ones
    /// are not subtracted.
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

    /// Checks that there is room for more, in all and for the principal.
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
