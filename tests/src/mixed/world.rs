//! A server under this load, the ledger of its things, and a writer's thread.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use crate::program;
use crate::server::{Answer, Client, ServerProcess};

/// The number of users.
pub(super) const USERS: usize = 4;

pub(super) fn name(user: usize) -> String {
    format!("user{user}")
}

/// A server with users that also receives mail over SMTP.
#[derive(Debug)]
pub struct World {
    pub(super) server: ServerProcess,
    pub(super) smtp: SocketAddr,
    pub(super) passwords: Vec<String>,
    /// Further arguments of every server of this world.
    arguments: Vec<String>,
}

impl World {
    /// Starts a server on this data, with its log and port in `beside`, and registers users.
    pub fn start(data: &Path, beside: &Path) -> Self {
        Self::start_with(data, beside, &[])
    }

    /// The same with further arguments.
    pub fn start_with(data: &Path, beside: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|text| (*text).to_owned()).collect();
        let mut world = Self::on(data, beside, Vec::new(), arguments);
        let users: Vec<_> = (0..USERS)
            .map(|user| json!({ "name": name(user) }))
            .collect();
        let body = json!({ "users": users, "app_passwords": true });
        let answer = Client::admin(world.server.address())
            .and_then(|mut admin| admin.request("POST", "/admin/users", &body))
            .expect("the server answers");
        assert_eq!(answer.status, 200, "{answer:?}");
        let users = answer.body["users"].as_array().expect("a list");
        let password = |user: &Value| user["app_password"].as_str().map(str::to_owned);
        world.passwords = users.iter().filter_map(password).collect();
        world
    }

    /// Starts another server for the same users, on the data of an earlier one.
    pub fn again(&self, data: &Path, beside: &Path) -> Self {
        Self::on(data, beside, self.passwords.clone(), self.arguments.clone())
    }

    /// Ends this server, if it hasn't ended, and starts another on its data.
    pub fn restarted(self, data: &Path, beside: &Path) -> Self {
        let arguments = self.arguments.clone();
        self.restarted_with(data, beside, arguments)
    }

    /// The same with other arguments than before.
    pub fn restarted_with(self, data: &Path, beside: &Path, arguments: Vec<String>) -> Self {
        let Self {
            server, passwords, ..
        } = self;
        drop(server);
        Self::on(data, beside, passwords, arguments)
    }

    fn on(data: &Path, beside: &Path, passwords: Vec<String>, arguments: Vec<String>) -> Self {
        let mut all = vec!["--smtp-listen", "127.0.0.1:0"];
        all.extend(arguments.iter().map(String::as_str));
        let server = ServerProcess::start_on(data, beside, Command::new(program()), &all);
        Self {
            smtp: server.smtp(),
            server,
            passwords,
            arguments,
        }
    }

    /// The server.
    pub fn server(&self) -> &ServerProcess {
        &self.server
    }

    /// A connection of one user.
    pub(super) fn client(&self, user: usize) -> io::Result<Client> {
        Client::user(self.server.address(), &name(user), &self.passwords[user])
    }
}

/// The ledger's entries, by label.
pub type Things = BTreeMap<String, Thing>;

/// What the ledger has on one thing. An empty text means that the thing isn't there.
#[derive(Debug, Clone, Default)]
pub struct Thing {
    /// The view after all acknowledged changes.
    sure: String,
    /// The view after the change that was sent and not acknowledged, if there is one.
    open: Option<String>,
    /// The path, once it is known.
    pub(super) path: String,
    /// Of an upload: its seed, its bytes, the acknowledged ones, and the sent ones.
    pub(super) upload: Option<Upload>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Upload {
    pub(super) seed: u64,
    pub(super) bytes: usize,
    pub(super) sure: usize,
    pub(super) sent: usize,
}

impl Thing {
    /// Returns true if the open change has happened.
    pub(super) fn settle(&mut self, found: &str) -> Result<bool, String> {
        let open = self.open.take();
        if let Some(upload) = &mut self.upload {
            let there = found.parse().unwrap_or(usize::MAX);
            let known = *upload;
            if !(known.sure..=known.sent).contains(&there) {
                return Err(format!("and should {known:?}"));
            }
            (upload.sure, upload.sent) = (there, there);
            return Ok(there > known.sure);
        }
        match &open {
            _ if found == self.sure => Ok(false),
            Some(open) if found == open => {
                self.sure = found.to_owned();
                Ok(true)
            }
            _ => Err(format!("and should {:?}, or {open:?}", self.sure)),
        }
    }
}

/// The ledger of all writers together.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Things>>);

impl Ledger {
    fn things(&self) -> MutexGuard<'_, Things> {
        self.0.lock().expect("nobody panics with it")
    }

    /// Returns all entries at this moment.
    pub fn now(&self) -> Things {
        self.things().clone()
    }

    /// Returns the number of things whose last change was acknowledged.
    pub fn acknowledged(&self) -> usize {
        let things = self.things();
        let sure = |thing: &&Thing| !thing.sure.is_empty() || thing.upload.is_some();
        things.values().filter(sure).count()
    }

    /// Replaces the entries by settled ones.
    pub fn settle(&self, things: Things) {
        *self.things() = things;
    }

    pub(super) fn of<T>(&self, label: &str, with: impl FnOnce(&mut Thing) -> T) -> T {
        with(self.things().entry(label.to_owned()).or_default())
    }
}

/// The state of one writer.
pub(super) struct Writer<'a> {
    pub(super) world: &'a World,
    pub(super) ledger: &'a Ledger,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) user: usize,
    pub(super) label: String,
    pub(super) number: u32,
    pub(super) ends: &'a AtomicBool,
}

impl Writer<'_> {
    pub(super) fn run(mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
        let failed = write(&mut self);
        if let Err(error) = failed {
            assert!(self.ends.load(Relaxed), "{} failed: {error}", self.label);
        }
    }

    /// Returns false once the load ends.
    pub(super) fn goes_on(&self) -> bool {
        !self.ends.load(Relaxed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    /// Returns some users other than this one.
    pub(super) fn others(&mut self) -> Vec<usize> {
        let (first, count) = (self.below(USERS - 1), 1 + self.below(2));
        let mut others: Vec<_> = (0..count)
            .map(|at| (self.user + 1 + (first + at) % (USERS - 1)) % USERS)
            .collect();
        others.sort_unstable();
        others
    }

    pub(super) fn next_label(&mut self) -> String {
        self.number += 1;
        format!("{}-{}", self.label, self.number)
    }

    /// Makes a change after which a thing has this view.
    pub(super) fn change<T>(
        &self,
        label: &str,
        shows: &str,
        request: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.ledger
            .of(label, |thing| thing.open = Some(shows.to_owned()));
        let answer = request()?;
        self.ledger.of(label, |thing| {
            thing.sure = thing.open.take().unwrap_or_default();
        });
        Ok(answer)
    }
}

/// The views of things in several places, combined in one order.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<String, Vec<String>>);

impl Seen {
    pub(super) fn add(&mut self, label: &str, shows: String) {
        self.0.entry(label.to_owned()).or_default().push(shows);
    }

    pub(super) fn together(self) -> BTreeMap<String, String> {
        let texts = self
            .0
            .into_iter()
            .map(|(label, shown)| (label, together(shown)));
        texts.collect()
    }
}

pub(super) fn together(mut shown: Vec<String>) -> String {
    shown.sort_unstable();
    shown.join(", ")
}

/// Asserts a status, which explains more than a later failure on the body.
pub(super) fn expect(answer: &Answer, status: u16) -> io::Result<()> {
    match answer.status == status {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{status} was expected: {answer:?}"
        ))),
    }
}
