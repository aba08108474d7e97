//! What the API keeps: settings of the script, and of each user its tags, its cookies, and what it expects.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use lab_modules::Mentions;
use serde_json::Value;

use crate::turn::{Expected, Request, ResponseKind};

use super::cookies::Jar;

/// The state of the API in one runtime.
#[derive(Default)]
pub(crate) struct State {
    users: RefCell<HashMap<u32, User>>,
    /// What `setResponseCallback` set while modules ran: the default of all users.
    pub(super) expected: RefCell<Option<Expected>>,
    last_jar: Cell<u32>,
    /// Jars that initialisers made: they live as long as their user, others as long as the iteration.
    lasting_jars: RefCell<HashSet<u32>>,
}

/// What is kept of a user, once there is something to keep.
#[derive(Default)]
pub(super) struct User {
    pub(super) tags: Vec<(String, String)>,
    pub(super) expected: Option<Expected>,
    /// What is known of the user's own jar and of those that it made.
    pub(super) jars: HashMap<u32, Jar>,
    /// Changes of the user's own jar that the lab doesn't know yet.
    pub(super) changes: Vec<crate::turn::Cookie>,
    /// The requests of the turn that ended last, in order.
    pub(super) pending: Vec<Pending>,
}

/// The number of the user's own jar.
pub(super) const OWN_JAR: u32 = 0;

/// What a response needs to know of its request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    pub(super) kind: ResponseKind,
    /// The request, as `Response.request` shows it.
    pub(super) sent: Option<Box<Request>>,
}

/// Settings of all requests, from the script's options and from what it mentions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(super) response: ResponseKind,
    pub(super) redirects: Option<u32>,
    pub(super) agent: Option<String>,
    pub(super) throw: bool,
    /// Whether the script reads cookies of a jar, so that they must be known here.
    pub(super) reads_jars: bool,
    /// Whether the script reads `Response.request`.
    pub(super) reads_sent: bool,
    /// Whether the script says what it reads of bodies.
    pub(super) sets_kinds: bool,
}

impl Settings {
    /// Returns true if requests must be remembered until their responses.
    pub(super) fn remembers(&self) -> bool {
        self.reads_jars || self.reads_sent || self.sets_kinds
    }

    pub(crate) fn of(options: &Value, mentions: Mentions) -> Self {
        let discard = options
            .get("discardResponseBodies")
            .and_then(serde_json::Value::as_bool);
        let redirects = options
            .get("maxRedirects")
            .and_then(serde_json::Value::as_u64);
        Settings {
            response: if discard == Some(true) {
                ResponseKind::None
            } else {
                ResponseKind::Text
            },
            redirects: redirects.and_then(|most| u32::try_from(most).ok()),
            agent: options
                .get("userAgent")
                .and_then(serde_json::Value::as_str)
                .map(str::to_owned),
            throw: options.get("throw").and_then(serde_json::Value::as_bool) == Some(true),
            reads_jars: mentions.cookie_jars,
            reads_sent: mentions.sent_requests,
            sets_kinds: mentions.response_types,
        }
    }
}

impl State {
    /// Changes what is kept of a user.
    pub(super) fn with<T>(&self, user: u32, change: impl FnOnce(&mut User) -> T) -> T {
        change(self.users.borrow_mut().entry(user).or_default())
    }

    /// Reads what is kept of a user, if there is something.
    pub(super) fn read<T>(&self, user: u32, read: impl FnOnce(&User) -> T) -> Option<T> {
        self.users.borrow().get(&user).map(read)
    }

    /// Makes a jar, and returns its number. `lasts` is true for one of an initialiser.
    pub(super) fn new_jar(&self, lasts: bool) -> u32 {
        let id = self.last_jar.get() + 1;
        self.last_jar.set(id);
        if lasts {
            self.lasting_jars.borrow_mut().insert(id);
        }
        id
    }

    /// Begins an iteration of a user: without its own cookies, and without the jars that its last iteration made.
    pub(crate) fn begin(&self, user: u32) {
        if let Some(user) = self.users.borrow_mut().get_mut(&user) {
            let lasting = self.lasting_jars.borrow();
            user.jars.retain(|jar, _| lasting.contains(jar));
            user.changes.clear();
            user.pending.clear();
        }
    }
}
