//! Registers a trial's users with the groupware server, in bulk, and keeps their passwords.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use lab_study::MailSpec;
use lab_workload::{PASSWORD, User, UserScope, Workload};
use serde::{Deserialize, Serialize};

use crate::http::{ANSWER, Ask, Client};
use crate::start::{Stop, UserExtra};

/// Users of one call; keeps a body within any server's usual limit of a megabyte.
const BATCH: usize = 1000;
/// Padding of one call; any disk writes that within the time an answer may take.
const BATCH_PAD_BYTES: u64 = 256 << 20;

/// Messages of one call: some hundred megabytes.
const BATCH_MESSAGES: usize = 5000;

/// The variable that names a user towards the system.
const NAME: &str = "name";

#[derive(Serialize)]
struct Register<'a> {
    users: Vec<Named<'a>>,
    app_passwords: bool,
    mailbox_pad_bytes: u64,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Deserialize)]
struct Registered {
    users: Vec<Account>,
}

#[derive(Deserialize)]
struct Account {
    name: String,
    app_password: String,
}

/// The users' names as the workload's `user: name:` renders them; `None` if it has no such
/// variable, and so needs no accounts.
pub(crate) fn names(workload: &Workload, first: User) -> Result<Option<Vec<String>>, String> {
    if !workload.user.iter().any(|(name, _)| name == NAME) {
        return Ok(None);
    }
    let mut names = Vec::with_capacity(first.users as usize);
    for index in 0..first.users {
        let scope = UserScope::new(workload, User { index, ..first }, &[])
            .map_err(|e| format!("the name of user {index} can't be made: {e}"))?;
        names.push(scope.get(NAME).unwrap_or_default());
    }
    Ok(Some(names))
}

/// Where users are registered, and how.
#[derive(Debug)]
pub(crate) struct Registry<'a> {
    pub(crate) server: SocketAddr,
    pub(crate) token: &'a str,
    pub(crate) mailbox_pad_bytes: u64,
}

impl Registry<'_> {
    /// Registers all, and gives the variables that the driver adds to each user's own.
    pub(crate) fn register(
        &self,
        names: &[String],
        interrupt: &AtomicBool,
    ) -> Result<UserExtra, Stop> {
        let mut extra = Vec::with_capacity(names.len());
        for batch in names.chunks(self.batch()) {
            let called = self.call(batch, interrupt);
            if interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            let accounts = called.map_err(|problem| {
                Stop::System(format!("the system did not register users: {problem}"))
            })?;
            extra.extend(
                accounts
                    .into_iter()
                    .map(|a| vec![(PASSWORD.to_owned(), a.app_password)]),
            );
        }
        Ok(extra)
    }

    /// Fills each user's mailbox, with the same messages for the same seed.
    pub(crate) fn fill(
        &self,
        names: &[String],
        mail: MailSpec,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<(), Stop> {
        let messages = mail.messages;
        let batch = (BATCH_MESSAGES / messages.max(1) as usize).clamp(1, BATCH);
        for (number, users) in names.chunks(batch).enumerate() {
            let first = number * batch;
            let mut body = serde_json::json!({
                "users": users, "messages": messages, "seed": seed, "first": first,
            });
            if let Some(bytes) = mail.message_bytes {
                body["profile"] = serde_json::json!([{ "text_bytes": bytes, "permille": 1000 }]);
            }
            let filled = self.post("/admin/mail/fill", body.to_string().as_bytes(), interrupt);
            if interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            filled.map_err(|problem| {
                Stop::System(format!("the system did not fill mailboxes: {problem}"))
            })?;
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        let padded = BATCH_PAD_BYTES.checked_div(self.mailbox_pad_bytes);
        padded.map_or(BATCH, |users| {
            usize::try_from(users).unwrap_or(BATCH).clamp(1, BATCH)
        })
    }

    fn call(&self, batch: &[String], interrupt: &AtomicBool) -> Result<Vec<Account>, String> {
        let users = batch.iter().map(|name| Named { name }).collect();
        let register = Register {
            users,
            app_passwords: true,
            mailbox_pad_bytes: self.mailbox_pad_bytes,
        };
        let body = serde_json::to_vec(&register).map_err(|e| e.to_string())?;
        let answer = self.post("/admin/users", &body, interrupt)?;
        let registered: Registered = serde_json::from_slice(&answer)
            .map_err(|e| format!("an answer that makes no sense ({e})"))?;
        let same = registered.users.len() == batch.len()
            && registered
                .users
                .iter()
                .zip(batch)
                .all(|(account, name)| account.name == *name);
        if !same {
            return Err("an answer for other users than those asked for".to_owned());
        }
        Ok(registered.users)
    }

    /// The body of an answer that says it went well.
    fn post(&self, path: &str, body: &[u8], interrupt: &AtomicBool) -> Result<Vec<u8>, String> {
        let ask = Ask {
            method: "POST",
            path,
            headers: &[
                ("Content-Type".to_owned(), "application/json".to_owned()),
                ("Authorization".to_owned(), format!("Bearer {}", self.token)),
            ],
            body,
            within: ANSWER,
        };
        let answer = Client::plain(self.server)
            .exchange(&ask, interrupt)
            .map_err(|e| e.to_string())?;
        if answer.status == 200 {
            return Ok(answer.body);
        }
        let text = String::from_utf8_lossy(&answer.body);
        let start: String = text.chars().take(200).collect();
        Err(format!("status {} ({})", answer.status, start.trim()))
    }
}
