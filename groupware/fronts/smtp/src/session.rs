//! One client's session: its identity, its permissions, and its recipients. Knows no sockets.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use groupware_auth::SignInError;
use groupware_mail::{self as mail, MailError, Reason, RoutedMessage, limits};
use groupware_mailauth::{Transport, body_hashes};
use groupware_net::{LineConnection, LineError, Permit};
use groupware_people::Account;
use groupware_proto_smtp::{Command, Flaw, Mechanism, POSTMASTER, Text, Trace, command};
use groupware_runtime::{Caller, Client};
use groupware_service::mail::{deliver, has_room};
use groupware_service::{ChangeError, fingerprint};
use groupware_store::{CommitError, StoreError};
use tokio::sync::watch;

use crate::shared::{Role, Smtp};
use crate::stop::stopped;

/// Most invalid commands and unknown recipients before the client is disconnected.
const ERRORS: u32 = 20;
/// Most commands of one connection.
const COMMANDS: u32 = 100_000;
/// Most `Received` fields of a message, to stop loops. RFC 5321, 6.3: at least 100.
const HOPS: usize = 100;
/// Room for the fields that are prepended to a message.
const TRACE_BYTES: usize = 4096;
/// Memory is acquired in steps of this size.
const MEMORY_STEP_BYTES: usize = 256 << 10;

/// The next step of a connection.
pub(crate) enum Next {
    /// The connection switches to TLS.
    Tls,
    /// The connection ends.
    End,
}

/// The session of a client.
pub(crate) struct Session<'a> {
    shared: &'a Smtp,
    role: Role,
    caller: Caller,
    /// Whether only this machine can reach the listener.
    is_local: bool,
    is_tls: bool,
    is_esmtp: bool,
    helo: Option<String>,
    user: Option<Arc<Account>>,
    envelope: Option<Envelope>,
    errors: u32,
}

#[derive(Default)]
struct Envelope {
    from: String,
    /// The message's size, as announced so far.
    size: u64,
    /// The recipients as the client wrote them.
    to: Vec<String>,
    /// The recipients' accounts.
    users: BTreeSet<String>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(shared: &'a Smtp, role: Role, caller: Caller, is_local: bool) -> Self {
        Self {
            shared,
            role,
            caller,
            is_local,
            is_tls: false,
            is_esmtp: false,
            helo: None,
            user: None,
            envelope: None,
            errors: 0,
        }
    }

    /// The same client after its handshake: earlier input is discarded (RFC 3207, 4.2).
    pub(crate) fn in_tls(self) -> Self {
        Self {
            is_tls: true,
            errors: self.errors,
            ..Self::new(self.shared, self.role, self.caller, self.is_local)
        }
    }

    /// Serves commands until one side ends the session, or the server stops; a command under way is completed.
    pub(crate) async fn talk(
        &mut self,
        wire: &mut LineConnection,
        stopping: &mut watch::Receiver<bool>,
    ) -> Next {
        for _ in 0..COMMANDS {
            let line = tokio::select! {
                biased;
                () = stopped(stopping) => Err(LineError::Stopping),
                line = wire.line(self.shared.limits.command_timeout) => line,
            };
            let line = match line {
                Ok(line) => line,
                Err(problem) => return leave(wire, &problem).await,
            };
            match self.answer(wire, &line).await {
                Ok(None) => {}
                Ok(Some(next)) => {
                    let _ = wire.flush().await;
                    return next;
                }
                Err(problem) => return leave(wire, &problem).await,
            }
            if self.errors > ERRORS {
                wire.reply("421 4.7.0 Too many errors");
                let _ = wire.flush().await;
                return Next::End;
            }
        }
        wire.reply("421 4.7.0 Too many commands");
        let _ = wire.flush().await;
        Next::End
    }

    async fn answer(
        &mut self,
        wire: &mut LineConnection,
        line: &[u8],
    ) -> Result<Option<Next>, LineError> {
        let reply: &str = match command(line) {
            // A trusted proxy has sent its header before: this connection would count for the wrong client.
            _ if line.starts_with(b"PROXY ") => {
                wire.reply("554 5.7.1 PROXY is taken from named proxies only");
                return Ok(Some(Next::End));
            }
            None => {
                self.errors += 1;
                "501 5.5.2 That command can't be read"
            }
            Some(Command::Ehlo(host)) => {
                self.greet(host, true);
                self.offer(wire);
                return Ok(None);
            }
            Some(Command::Helo(host)) => {
                self.greet(host, false);
                wire.reply(&format!("250 {}", self.shared.domain()));
                return Ok(None);
            }
            Some(Command::StartTls) => match self.start_tls(wire) {
                Ok(()) => return Ok(Some(Next::Tls)),
                Err(reply) => reply,
            },
            Some(Command::Auth { mechanism, initial }) => {
                self.auth(wire, mechanism, initial).await?
            }
            Some(Command::Mail {
                from,
                size,
                asks_too_much,
            }) => self.mail(from, size, asks_too_much),
            Some(Command::Rcpt(to)) => self.rcpt(to),
            Some(Command::Data) => {
                let reply = self.data(wire).await?;
                wire.reply(&reply);
                return Ok(None);
            }
            Some(Command::Rset) => {
                self.envelope = None;
                "250 2.0.0 Forgotten"
            }
            Some(Command::Noop) => "250 2.0.0 Here",
            Some(Command::Vrfy) => "252 2.1.5 Send to it and see",
            Some(Command::Quit) => {
                wire.reply("221 2.0.0 Bye");
                return Ok(Some(Next::End));
            }
            Some(Command::Other) => {
                self.errors += 1;
                "502 5.5.1 That is not done here"
            }
        };
        wire.reply(reply);
        Ok(None)
    }

    fn greet(&mut self, host: String, is_esmtp: bool) {
        self.helo = Some(host);
        self.is_esmtp = is_esmtp;
        self.envelope = None;
    }

    fn offer(&self, wire: &mut LineConnection) {
        wire.reply(&format!("250-{}", self.shared.domain()));
        if self.shared.tls.is_some() && !self.is_tls {
            wire.reply("250-STARTTLS");
        }
        if self.may_sign_in() {
            wire.reply("250-AUTH PLAIN LOGIN");
        }
        wire.reply("250-PIPELINING");
        wire.reply("250-8BITMIME");
        wire.reply("250-SMTPUTF8");
        wire.reply("250-ENHANCEDSTATUSCODES");
        wire.reply(&format!("250 SIZE {}", limits::MESSAGE_BYTES - TRACE_BYTES));
    }

    /// Returns true if a password is safe on this connection.
    fn may_sign_in(&self) -> bool {
        self.role == Role::Submission && (self.is_tls || self.is_local)
    }

    fn start_tls(&mut self, wire: &mut LineConnection) -> Result<(), &'static str> {
        if self.is_tls || self.shared.tls.is_none() {
            self.errors += 1;
            return Err("502 5.5.1 TLS is not to be had here");
        }
        if wire.has_input() {
            // An attacker in the middle may have injected it, to be read as sent within TLS.
            self.errors = ERRORS + 1;
            return Err("501 5.5.1 Nothing may follow STARTTLS before its reply");
        }
        wire.reply("220 2.0.0 Go ahead");
        Ok(())
    }

    async fn auth(
        &mut self,
        wire: &mut LineConnection,
        mechanism: Mechanism,
        initial: String,
    ) -> Result<&'static str, LineError> {
        if self.role != Role::Submission {
            self.errors += 1;
            return Ok("502 5.5.1 Nobody signs in here");
        }
        if !self.may_sign_in() {
            return Ok("538 5.7.11 Passwords need TLS: STARTTLS comes first");
        }
        if self.user.is_some() || self.envelope.is_some() {
            return Ok("503 5.5.1 Too late to sign in");
        }
        let credentials = match mechanism {
            Mechanism::Plain => self.auth_plain(wire, initial).await?,
            Mechanism::Login => self.auth_login(wire, initial).await?,
            Mechanism::Other => return Ok("504 5.5.4 Sign in by PLAIN or LOGIN"),
        };
        let Some((user, password)) = credentials else {
            self.errors += 1;
            return Ok("501 5.5.2 That can't be read");
        };
        let client = Client::at(self.caller.peer());
        let verify = self
            .shared
            .service
            .auth
            .verify(&self.caller, client, &user, &password);
        match verify.await {
            Ok(proven) => {
                self.caller.signed_in(&proven.account);
                self.user = Some(proven.account);
                Ok("235 2.7.0 Welcome")
            }
            Err(error) => {
                self.errors += 3;
                Ok(match error {
                    SignInError::Wrong => "535 5.7.8 The user name or password is wrong",
                    SignInError::TooManyFailures { .. }
                    | SignInError::Busy
                    | SignInError::Store(_) => "454 4.7.0 Not now: try again later",
                })
            }
        }
    }

    async fn auth_plain(
        &self,
        wire: &mut LineConnection,
        initial: String,
    ) -> Result<Option<(String, String)>, LineError> {
        let text = match initial.is_empty() {
            true => self.ask(wire, "334 ").await?,
            false => decode(&initial),
        };
        Ok(text.and_then(|text| {
            let mut pieces = text.split('\0');
            let (acting_for, user, password) = (pieces.next()?, pieces.next()?, pieces.next()?);
            let is_self = acting_for.is_empty() || acting_for == user;
            (is_self && pieces.next().is_none()).then(|| (user.to_owned(), password.to_owned()))
        }))
    }

    async fn auth_login(
        &self,
        wire: &mut LineConnection,
        initial: String,
    ) -> Result<Option<(String, String)>, LineError> {
        let user = match initial.is_empty() {
            true => self.ask(wire, "334 VXNlcm5hbWU6").await?,
            false => decode(&initial),
        };
        let Some(user) = user else { return Ok(None) };
        let password = self.ask(wire, "334 UGFzc3dvcmQ6").await?;
        Ok(password.map(|password| (user, password)))
    }

    async fn ask(
        &self,
        wire: &mut LineConnection,
        question: &str,
    ) -> Result<Option<String>, LineError> {
        wire.reply(question);
        let line = wire.line(self.shared.limits.command_timeout).await?;
        let line = String::from_utf8(line).unwrap_or_default();
        Ok(decode(line.trim_end()))
    }

    fn mail(&mut self, from: String, size: Option<usize>, asks_too_much: bool) -> &'static str {
        if self.helo.is_none() {
            return "503 5.5.1 Say EHLO first";
        }
        if self.envelope.is_some() {
            return "503 5.5.1 There is a message under way";
        }
        if asks_too_much {
            return "555 5.5.4 That is not offered here";
        }
        if size.is_some_and(|size| size > limits::MESSAGE_BYTES - TRACE_BYTES) {
            return "552 5.3.4 The message is too large";
        }
        // A final dot denotes the root.
        let local = self.local_name(from.trim_end_matches('.'));
        match (self.role, &self.user) {
            (Role::Submission, None) => return "530 5.7.0 Sign in first",
            (Role::Submission, Some(user)) => {
                let is_own = local.is_some_and(|name| name.eq_ignore_ascii_case(user.name.key()));
                // A report must not be answered, such as a read receipt (RFC 8098, 3).
                if !is_own && !from.is_empty() {
                    return "553 5.7.1 You can't send as somebody else";
                }
            }
            // Remote clients can't send for local users without signing in.
            (Role::Receive, _) if local.is_some() && self.shared.is_stranger(&self.caller) => {
                return "530 5.7.1 Local users sign in to send";
            }
            (Role::Receive, _) => {}
        }
        if !self.shared.may_send(&self.caller) {
            return "450 4.7.1 Too many messages: try again later";
        }
        self.envelope = Some(Envelope {
            from,
            size: size.unwrap_or_default() as u64,
            ..Envelope::default()
        });
        "250 2.1.0 Go on"
    }

    fn rcpt(&mut self, to: String) -> &'static str {
        let Some(envelope) = &self.envelope else {
            return "503 5.5.1 Say MAIL first";
        };
        if envelope.to.len() >= limits::RECIPIENTS {
            return "452 4.5.3 Too many recipients";
        }
        let Some(name) = self.local_name(&to) else {
            self.errors += 1;
            return "550 5.7.1 Mail to other servers is not passed on";
        };
        // Valid names are rejected too: else the client would still find them. Signed-in users may find each other.
        let is_known = self.user.is_some();
        if !is_known && self.shared.tries_names(&self.caller) {
            return "450 4.7.1 Too many names that nobody has here: try again later";
        }
        let is_postmaster = name.eq_ignore_ascii_case(POSTMASTER);
        if is_postmaster && envelope.to.contains(&to) {
            return "250 2.1.5 Go on";
        }
        let accounts = match self.find(name) {
            Ok(Some(account)) => vec![account],
            Ok(None) if is_postmaster => self.shared.postmasters(),
            Ok(None) => Vec::new(),
            Err(_) => return "451 4.3.0 Not now: try again later",
        };
        if accounts.is_empty() {
            self.errors += 1;
            if !is_known {
                self.shared.note_wrong_name(&self.caller);
            }
            return "550 5.1.1 No such user here";
        }
        self.take_recipients(&accounts, to)
    }

    /// Adds the recipients of an address, if their mailboxes have room.
    fn take_recipients(&mut self, accounts: &[Arc<Account>], to: String) -> &'static str {
        let Some(envelope) = &mut self.envelope else {
            return "503 5.5.1 Say MAIL first";
        };
        let before = envelope.users.len();
        let mut is_there = false;
        for account in accounts {
            let mailbox = account.name.key();
            if envelope.users.contains(&**mailbox) {
                is_there = true;
                continue;
            }
            // A rejection of the whole message would deny it to the other recipients. Repeated requests
            // reveal a mailbox's free space, as sending does.
            let message = (mailbox, envelope.size.max(1));
            match has_room(&self.shared.service, message) {
                Ok(true) => drop(envelope.users.insert(mailbox.to_string())),
                Ok(false) => {}
                Err(_) => return "451 4.3.0 Not now: try again later",
            }
        }
        if envelope.users.len() == before && !is_there {
            return "452 4.2.2 The mailbox is full";
        }
        envelope.to.push(to);
        "250 2.1.5 Go on"
    }

    /// Returns the name in an address of this server: in its domain, at the address of its
    /// listener, or the postmaster's (RFC 5321, 4.1.3 and 4.5.1).
    fn local_name<'t>(&self, address: &'t str) -> Option<&'t str> {
        let of_this_machine = || {
            let (name, host) = address.rsplit_once('@').filter(|_| self.is_local)?;
            let is_loopback = ["[127.0.0.1]", "[IPv6:::1]"]
                .iter()
                .any(|known| host.eq_ignore_ascii_case(known));
            is_loopback.then_some(name)
        };
        let postmaster = || (address == POSTMASTER).then_some(address);
        let of_domain = self.shared.local_name(address);
        of_domain.or_else(of_this_machine).or_else(postmaster)
    }

    /// Returns the account of a name, or of its part before a `+`: the rest is for its owner's filters (RFC 5233).
    fn find(&self, name: &str) -> Result<Option<Arc<Account>>, StoreError> {
        let auth = &self.shared.service.auth;
        match (auth.find(name)?, name.split_once('+')) {
            (None, Some((name, _))) if !name.is_empty() => auth.find(name),
            (found, _) => Ok(found),
        }
    }

    async fn data(&mut self, wire: &mut LineConnection) -> Result<String, LineError> {
        let Some(envelope) = self.envelope.take() else {
            return Ok("503 5.5.1 Say MAIL first".to_owned());
        };
        if envelope.to.is_empty() {
            self.envelope = Some(envelope);
            return Ok("554 5.5.1 No valid recipients".to_owned());
        }
        wire.reply("354 End with a dot");
        let mut text = Text::new(limits::MESSAGE_BYTES - TRACE_BYTES);
        let mut memory: Vec<Permit> = Vec::new();
        let mut is_short = false;
        wire.text(self.shared.limits.data_timeout, |bytes| {
            while !is_short && memory.len() * MEMORY_STEP_BYTES < text.seen() + bytes.len() {
                match self.shared.memory(&self.caller, MEMORY_STEP_BYTES) {
                    Some(permit) => memory.push(permit),
                    None => {
                        is_short = true;
                        text.give_up();
                    }
                }
            }
            text.feed(bytes)
        })
        .await?;
        match text.finish() {
            Err(_) if is_short => Ok("452 4.3.1 No room just now: try again later".to_owned()),
            Err(Flaw::TooLarge) => Ok("552 5.3.4 The message is too large".to_owned()),
            Err(Flaw::BareLineEnd) => {
                self.errors = ERRORS + 1;
                Ok("550 5.6.0 Lines end with CR LF, both".to_owned())
            }
            Ok(message) => Ok(self.deliver(envelope, message.into()).await),
        }
    }

    async fn deliver(&mut self, envelope: Envelope, message: Bytes) -> String {
        // Checked before any other parsing of the head, which may be the whole message.
        if let Err(error) = mail::check(&message) {
            return refusal(&ChangeError::Decided(error.into()));
        }
        if mail::count_fields(&message, "Received") > HOPS {
            return "554 5.4.6 The message goes round in circles".to_owned();
        }
        if self.user.is_none()
            && self.shared.is_stranger(&self.caller)
            && let Err(error) = mail::check_stranger(self.shared.domain(), &message)
        {
            return refusal(&ChangeError::Decided(error));
        }
        let found = self.findings(&envelope, &message).await;
        let service = &self.shared.service;
        let id = service.random_bits();
        let trace = self.trace(&envelope, id);
        let bytes = message.len();
        let (text, from) = (message.clone(), envelope.from.clone());
        let to = envelope.users.clone();
        let sent = move || {
            let to = to.iter().map(String::as_bytes);
            fingerprint([&text[..], from.as_bytes()].into_iter().chain(to))
        };
        let done = match &self.user {
            Some(user) => {
                let at = (&self.caller, &**user.name.key());
                deliver(service, at, (bytes, sent), move |context| {
                    let message = mail::completed(context, message.clone());
                    mail::check_author(context.directory, context.mailbox, &message)?;
                    let parcel = RoutedMessage {
                        message: [trace.as_bytes(), &message].concat().into(),
                        to: envelope.users.clone(),
                    };
                    mail::send(context, &parcel)
                })
                .await
            }
            None => {
                let trace = format!("Return-Path: <{}>\r\n{found}{trace}", envelope.from);
                deliver(service, (&self.caller, ""), (bytes, sent), move |context| {
                    mail::receive(context, &envelope.users, &trace, &message)
                })
                .await
            }
        };
        match done {
            Ok(_) => format!("250 2.0.0 Delivered as {id:032X}"),
            Err(error) => refusal(&error),
        }
    }

    /// Returns the field with the authentication results, if enabled and the message is from a
    /// remote client.
    async fn findings(&self, envelope: &Envelope, message: &Bytes) -> String {
        let is_from_elsewhere = self.user.is_none() && self.shared.is_stranger(&self.caller);
        let Some(asking) = self.shared.asking.as_ref().filter(|_| is_from_elsewhere) else {
            return String::new();
        };
        let is_long = message.len() as u64 > limits::LARGE_BYTES;
        let hashed = message.clone();
        let hash = move || body_hashes(&hashed);
        let hashes = self.shared.service.work(&self.caller, is_long, hash).await;
        let _turn = asking.turns.take(&self.caller.source(), 1).await;
        let came = Transport {
            client: self.caller.peer().to_canonical(),
            helo: self.helo.as_deref().unwrap_or_default(),
            sender: &envelope.from,
        };
        let findings = asking.auth.findings(came, message, &hashes).await;
        findings.field(self.shared.domain())
    }

    /// Returns the trace field.
    fn trace(&self, envelope: &Envelope, id: u128) -> String {
        let trace = Trace {
            helo: self.helo.as_deref().unwrap_or_default(),
            peer: self.caller.peer(),
            domain: self.shared.domain(),
            is_esmtp: self.is_esmtp,
            is_tls: self.is_tls,
            is_signed_in: self.user.is_some(),
            id,
            only_for: match envelope.to.as_slice() {
                [only] => Some(only),
                _ => None,
            },
            now_s: self.shared.service.now_s(),
        };
        trace.received()
    }
}

/// The reply to a failure: permanent or temporary.
fn refusal(error: &ChangeError<MailError>) -> String {
    match error {
        ChangeError::Decided(MailError::Refused { reason, message }) => {
            let code = match reason {
                Reason::OverQuota => "452 4.2.2",
                Reason::DiskFull => "452 4.3.1",
                Reason::TooOften => "452 4.5.3",
                Reason::TooLarge => "552 5.3.4",
                Reason::ForeignSender => "550 5.7.1",
                _ => "554 5.6.0",
            };
            // The reply must be one line of ASCII.
            let text = message.chars().filter(|letter| matches!(letter, ' '..='~'));
            let text: String = text.take(400).collect();
            format!("{code} {text}")
        }
        ChangeError::Commit(CommitError::Full) => "452 4.3.1 The disk is full".to_owned(),
        ChangeError::Commit(CommitError::TooLarge) => {
            "552 5.3.4 The message is too large".to_owned()
        }
        ChangeError::Commit(CommitError::Closed) => "421 4.3.2 The server is stopping".to_owned(),
        _ => "451 4.3.0 Try again later".to_owned(),
    }
}

async fn leave(wire: &mut LineConnection, problem: &LineError) -> Next {
    let reply = match problem {
        LineError::Gone => return Next::End,
        LineError::Stopping => "421 4.3.2 The server is stopping",
        LineError::Late => "421 4.4.2 That took too long",
        LineError::Long => "500 5.5.2 The line is too long",
        LineError::Bare => "500 5.5.2 Lines end with CR LF, both",
    };
    wire.reply(reply);
    let _ = wire.flush().await;
    Next::End
}

fn decode(text: &str) -> Option<String> {
    if text == "=" {
        return Some(String::new());
    }
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}
