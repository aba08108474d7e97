//! What the API keeps: settings of the script, and of each user its tags, its cookies, and what it expects.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::program::Program;
use crate::turn::{Expected, ResponseKind};

use super::cookies::Jar;

/// The state of the API in one runtime.
#[derive(Default)]
pub(crate) struct State {
    users: RefCell<HashMap<u32, User>>,
    settings: OnceCell<Settings>,
    /// What `setResponseCallback` set while modules ran: the default of all users.
    pub(super) expected: RefCell<Option<Expected>>,
    next_jar: Cell<u32>,
}

/// What is kept of a user, once there is something to keep.
#[derive(Default)]
pub(super) struct User {
    pub(super) tags: Vec<(String, String)>,
    pub(super) expected: Option<Expected>,
    /// What is known of the user's own jar and of those that it made.
    pub(super) jars: HashMap<u32, Jar>,
    /// Changes of jars that the lab doesn't know yet.
    pub(super) changes: Vec<(u32, crate::turn::Cookie)>,
    /// Requests under way, in order.
    pub(super) pending: VecDeque<Pending>,
}

/// What a response needs to know of its request.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    pub(super) jar: u32,
    pub(super) kind: ResponseKind,
    pub(super) sent: Option<Sent>,
}

/// A request, as `Response.request` shows it.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) cookies: Vec<(String, String, bool)>,
}

/// Settings of all requests, from the script's options and its text.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
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
    pub(super) tags: Vec<(String, String)>,
}

impl Settings {
    /// Returns true if requests must be remembered until their responses.
    pub(super) fn remembers(&self) -> bool {
        self.reads_jars || self.reads_sent || self.sets_kinds
    }

    fn of(program: &Program) -> Self {
        let options = program.options();
        let mentions = |text: &str| {
            program.sources().iter().any(|source| {
                source
                    .text
                    .windows(text.len())
                    .any(|piece| piece == text.as_bytes())
            })
        };
        let discard = options
            .get("discardResponseBodies")
            .and_then(serde_json::Value::as_bool);
        let redirects = options
            .get("maxRedirects")
            .and_then(serde_json::Value::as_u64);
        let mut tags = Vec::new();
        if let Some(given) = options.get("tags").and_then(serde_json::Value::as_object) {
            for (name, value) in given {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                tags.push((name.clone(), value));
            }
        }
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
            reads_jars: mentions("ookieJar"),
            reads_sent: mentions(".request.")
                || mentions("request:")
                || mentions(".request)")
                || mentions(".request;"),
            sets_kinds: mentions("responseType"),
            tags,
        }
    }
}

impl State {
    /// The settings; the options must be known when they are read first.
    pub(super) fn settings(&self, program: &Program) -> &Settings {
        self.settings.get_or_init(|| Settings::of(program))
    }

    /// Changes what is kept of a user.
    pub(super) fn with<T>(&self, user: u32, change: impl FnOnce(&mut User) -> T) -> T {
        change(self.users.borrow_mut().entry(user).or_default())
    }

    /// Reads what is kept of a user, if there is something.
    pub(super) fn read<T>(&self, user: u32, read: impl FnOnce(&User) -> T) -> Option<T> {
        self.users.borrow().get(&user).map(read)
    }

    /// The number of a new jar.
    pub(super) fn new_jar(&self) -> u32 {
        self.next_jar.set(self.next_jar.get() + 1);
        self.next_jar.get()
    }

    /// Begins an iteration of a user: without cookies, and with no request under way.
    pub(crate) fn begin(&self, user: u32) {
        if let Some(user) = self.users.borrow_mut().get_mut(&user) {
            user.jars.remove(&0);
            user.changes.retain(|(jar, _)| *jar != 0);
            user.pending.clear();
        }
    }

    /// Forgets a user.
    pub(crate) fn forget(&self, user: u32) {
        self.users.borrow_mut().remove(&user);
    }
}
