//! Delivery: puts a message into the accounts of its recipients and, if the owner of an account
//! sends it, into the owner's sent messages, in one batch.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use groupware_people::Directory;
use groupware_proto_mime::{self as mime, Head, people};
use groupware_store::Snapshot;
use groupware_text::shortened;
use mail_builder::headers::date::Date;
use mail_parser::Address;

use crate::mailbox::{self, Changes};
use crate::undelivered;
use crate::{Context, Decision, Entry, Folder, MailError, Person, Reason, Unid, limits};

/// A message in transit and its recipients.
#[derive(Debug, Clone)]
pub struct RoutedMessage {
    /// The message, including `Bcc`.
    pub message: Bytes,
    /// The names of the recipients' accounts.
    pub to: BTreeSet<String>,
}

impl RoutedMessage {
    /// Builds the envelope from the recipients in the message's header.
    ///
    /// # Errors
    /// A refusal if the header has no recipient, too many, or one that is no local user; if the
    /// message is too large; if its author is not `owner`.
    pub fn from_head(
        directory: &dyn Directory,
        owner: &str,
        message: Bytes,
    ) -> Result<Self, MailError> {
        mime::check(&message)?;
        let head = Head::of(&message);
        let parsed = head.parse();
        let parsed = parsed.ok_or_else(|| MailError::bad_request("The message has no head."))?;
        check_author(directory, owner, &message)?;
        let mut all = Vec::new();
        let fields: [Vec<&Address<'_>>; 3] = [
            parsed.all_to().collect(),
            parsed.all_cc().collect(),
            parsed.all_bcc().collect(),
        ];
        for field in fields.into_iter().flatten() {
            all.extend(people(Some(field), limits::RECIPIENTS + 1));
        }
        let to = resolve(directory, &all)?;
        Ok(Self { message, to })
    }
}

/// Prepends the fields that every message must have where they are missing: `From`, `Date`, and
/// `Message-ID`. The rest stays byte for byte.
pub fn completed(context: &Context<'_>, message: Bytes) -> Bytes {
    let mut ids = context.ids;
    let name = Unid::new(context.now_us, ids.take());
    let (directory, mut front) = (context.directory, String::new());
    if !mime::has_field(&message, "Message-ID") {
        front += &format!("Message-ID: <{name}@{}>\r\n", directory.domain());
    }
    if !mime::has_field(&message, "Date") {
        let date = Date::new(context.now_us / 1_000_000).to_rfc822();
        front += &format!("Date: {date}\r\n");
    }
    if !mime::has_field(&message, "From") {
        front += &format!("From: <{}>\r\n", directory.email(context.mailbox));
    }
    match front.is_empty() {
        true => message,
        false => [front.as_bytes(), &message].concat().into(),
    }
}

/// Rejects a message whose `From` is not exactly the user who sends it.
///
/// # Errors
/// [`Reason::ForeignSender`].
pub fn check_author(
    directory: &dyn Directory,
    owner: &str,
    message: &[u8],
) -> Result<(), MailError> {
    let foreign = |text: Cow<'static, str>| Err(MailError::refused(Reason::ForeignSender, text));
    if mime::count_fields(message, "From") != 1 || mime::count_fields(message, "Sender") > 1 {
        return foreign("The message must have one From field.".into());
    }
    let (from, sender) = authors(message, 2);
    if from.len() != 1 {
        return foreign("The message must have one author in From.".into());
    }
    for person in from.iter().chain(&sender) {
        if directory.user(&person.email)?.as_deref() != Some(owner) {
            let email = shortened(&person.email).into_owned();
            return foreign(format!("You can't send as {email}.").into());
        }
    }
    Ok(())
}

/// The people in a message's `From`, at most `most`, and in its `Sender`.
fn authors(message: &[u8], most: usize) -> (Vec<Person>, Vec<Person>) {
    let head = Head::of(message);
    let parsed = head.parse();
    let parsed = parsed.as_ref();
    (
        people(parsed.and_then(|it| it.from()), most),
        people(parsed.and_then(|it| it.sender()), 2),
    )
}

/// The maximum number of authors that are checked; a message with more has no valid author.
const AUTHORS: usize = 100;

/// Rejects a message from a remote server that claims an author or sender of this domain: local
/// users sign in to send. An author without a domain, such as `boss` or `CN=boss/O=Acme`, would be
/// shown as one of this domain.
///
/// # Errors
/// [`Reason::ForeignSender`].
pub fn check_stranger(domain: &str, message: &[u8]) -> Result<(), MailError> {
    let refused = |text: &'static str| Err(MailError::refused(Reason::ForeignSender, text));
    // Mail programs differ in which of several they show.
    if mime::count_fields(message, "From") > 1 || mime::count_fields(message, "Sender") > 1 {
        return refused("A message has one From field, and one Sender field at most.");
    }
    let (from, sender) = authors(message, AUTHORS + 1);
    let is_ours = |person: &Person| {
        let of = person.email.rsplit_once('@').map(|(_, domain)| domain);
        of.is_some_and(|of| of.trim_end_matches('.').eq_ignore_ascii_case(domain))
    };
    let has_no_domain = |person: &Person| {
        let of = person.email.rsplit_once('@').map(|(_, domain)| domain);
        of.is_none_or(|of| of.trim_end_matches('.').is_empty())
    };
    if from.iter().chain(&sender).any(has_no_domain) {
        return refused("The addresses in the From and Sender fields need a domain.");
    }
    // Mail programs may find an address where this server's pages show none.
    let can_be_ours = |field| mime::names_domain(message, field, domain);
    let is_one =
        from.iter().chain(&sender).any(is_ours) || can_be_ours("From") || can_be_ours("Sender");
    match from.len() > AUTHORS || is_one {
        true => refused(
            "Users of this domain sign in to send: the From or Sender field says it is one.",
        ),
        false => Ok(()),
    }
}

/// Returns the accounts of people, each once.
///
/// # Errors
/// [`Reason::UnknownRecipient`], naming all that are no local users; a refusal if there are none or too many.
pub fn resolve(
    directory: &dyn Directory,
    people: &[Person],
) -> Result<BTreeSet<String>, MailError> {
    if people.is_empty() {
        return Err(MailError::bad_request("The message has no recipient."));
    }
    if people.len() > limits::RECIPIENTS {
        let message = format!("A message has at most {} recipients.", limits::RECIPIENTS);
        return Err(MailError::bad_request(message));
    }
    let (mut found, mut unknown) = (BTreeSet::new(), Vec::new());
    for person in people {
        match directory.user(&person.email)? {
            Some(user) => {
                found.insert(user);
            }
            None => unknown.push(shortened(&person.email).into_owned()),
        }
    }
    if unknown.is_empty() {
        return Ok(found);
    }
    const NAMED: usize = 10;
    let more = unknown.len().saturating_sub(NAMED);
    unknown.truncate(NAMED);
    let mut message = format!("No such user here: {}", unknown.join(", "));
    if more > 0 {
        message += &format!(", and {more} more");
    }
    message.push('.');
    Err(MailError::refused(Reason::UnknownRecipient, message))
}

/// Sends a message of the owner; the recipients' copies have no `Bcc`. If some recipients have no
/// room for it, the message goes to the others, and a report to the owner.
///
/// # Errors
/// A refusal if the account of the owner or of every recipient is full; errors of the store.
pub fn send(context: &Context<'_>, parcel: &RoutedMessage) -> Result<Decision, MailError> {
    let mut changes = Changes::new(context.snapshot, context.now_us);
    let made = put_sent(context, &mut changes, parcel)?;
    Ok(Decision {
        batch: changes.into_batch()?,
        made: Some(made),
        more: false,
    })
}

pub(crate) fn put_sent(
    context: &Context<'_>,
    changes: &mut Changes<'_>,
    parcel: &RoutedMessage,
) -> Result<Unid, MailError> {
    let mut ids = context.ids;
    // The first id names the message itself if it was built here.
    ids.take();
    let made = Unid::new(context.now_us, ids.take());
    let owner = Copy {
        mailbox: context.mailbox.into(),
        folder: Folder::Sent,
        unid: made,
    };
    let (delivered, is_same) = match mime::as_delivered(&parcel.message, context.directory.domain())
    {
        Cow::Borrowed(_) => (parcel.message.clone(), true),
        Cow::Owned(stripped) => (stripped.into(), false),
    };
    let room = MailboxRoom::of(context);
    room.prefetch(&parcel.to)?;
    let mut own_bytes = parcel.message.len() as u64;
    if parcel.to.contains(context.mailbox) {
        own_bytes += delivered.len() as u64;
    }
    room.check(context.mailbox, own_bytes)?;
    let (to, full) = room.divide(&parcel.to, delivered.len() as u64)?;
    let copies = copies(to, context.now_us, &mut ids);
    if is_same {
        let all: Vec<_> = std::iter::once(owner).chain(copies).collect();
        put(changes, &all, &delivered, context.now_us, &mut ids);
    } else {
        put(changes, &[owner], &parcel.message, context.now_us, &mut ids);
        put(changes, &copies, &delivered, context.now_us, &mut ids);
    }
    if !full.is_empty() {
        let unid = Unid::new(context.now_us, ids.take());
        let report = undelivered::report(context, unid, &delivered, &full);
        let entry = Entry::of(&report, context.now_us);
        changes.insert(
            &context.mailbox.into(),
            Folder::Inbox,
            unid,
            &entry,
            &report,
        );
        room.check(context.mailbox, own_bytes + report.len() as u64)?;
    }
    Ok(made)
}

/// Accepts a message from a remote server. `trace` holds the trace fields that are prepended to it.
///
/// # Errors
/// A refusal if it is too large or an account is full; errors of the store.
pub fn receive(
    context: &Context<'_>,
    to: &BTreeSet<String>,
    trace: &str,
    message: &[u8],
) -> Result<Decision, MailError> {
    mime::check(message)?;
    let message = mime::as_delivered(message, context.directory.domain());
    let mut traced = Vec::with_capacity(trace.len() + message.len());
    traced.extend_from_slice(trace.as_bytes());
    traced.extend_from_slice(&message);
    let mut ids = context.ids;
    let room = MailboxRoom::of(context);
    room.prefetch(to)?;
    for mailbox in to {
        room.check(mailbox, traced.len() as u64)?;
    }
    let copies = copies(to, context.now_us, &mut ids);
    let mut changes = Changes::new(context.snapshot, context.now_us);
    put(
        &mut changes,
        &copies,
        &traced.into(),
        context.now_us,
        &mut ids,
    );
    Ok(Decision {
        batch: changes.into_batch()?,
        made: copies.first().map(|copy| copy.unid),
        more: false,
    })
}

/// The destination of a copy.
struct Copy {
    mailbox: Arc<str>,
    folder: Folder,
    unid: Unid,
}

fn copies<'u>(
    to: impl IntoIterator<Item = &'u String>,
    now_us: i64,
    ids: &mut crate::Ids,
) -> Vec<Copy> {
    let copies = to.into_iter().map(|user| Copy {
        mailbox: user.as_str().into(),
        folder: Folder::Inbox,
        unid: Unid::new(now_us, ids.take()),
    });
    copies.collect()
}

/// The free space of accounts.
#[derive(Clone, Copy)]
struct MailboxRoom<'a> {
    snapshot: &'a dyn Snapshot,
    owner: &'a str,
    quota_bytes: Option<u64>,
    full: &'a BTreeSet<Arc<str>>,
}

impl<'a> MailboxRoom<'a> {
    fn of(context: &Context<'a>) -> Self {
        Self {
            snapshot: context.snapshot,
            owner: context.mailbox,
            quota_bytes: context.quota_bytes,
            full: context.full,
        }
    }

    /// Reads the counters of several accounts in one request.
    fn prefetch(&self, mailboxes: &BTreeSet<String>) -> Result<(), MailError> {
        if self.quota_bytes.is_some() && mailboxes.len() > 1 {
            let own = std::iter::once(self.owner).filter(|own| !own.is_empty());
            let all = own.chain(mailboxes.iter().map(String::as_str));
            mailbox::prefetch_used(self.snapshot, all)?;
        }
        Ok(())
    }

    /// Splits the recipients into those with room for this many bytes and those without.
    ///
    /// # Errors
    /// A refusal if no recipient has room; errors of the store.
    fn divide<'t>(
        &self,
        to: &'t BTreeSet<String>,
        bytes: u64,
    ) -> Result<(Vec<&'t String>, Vec<&'t String>), MailError> {
        let (mut fit, mut full) = (Vec::with_capacity(to.len()), Vec::new());
        for user in to {
            // The owner gets the error for a full account directly.
            match *user == self.owner || self.has_room(user, bytes)? {
                true => fit.push(user),
                false => full.push(user),
            }
        }
        match full.first() {
            Some(user) if fit.is_empty() => Err(self.refusal(user)),
            _ => Ok((fit, full)),
        }
    }

    fn has_room(&self, mailbox: &str, bytes: u64) -> Result<bool, MailError> {
        if self.full.contains(mailbox) {
            return Ok(false);
        }
        let Some(quota) = self.quota_bytes else {
            return Ok(true);
        };
        let used = mailbox::used_bytes(self.snapshot, mailbox)?;
        Ok(used.saturating_add(bytes) <= quota)
    }

    fn check(&self, mailbox: &str, bytes: u64) -> Result<(), MailError> {
        match self.has_room(mailbox, bytes)? {
            true => Ok(()),
            false => Err(self.refusal(mailbox)),
        }
    }

    fn refusal(&self, mailbox: &str) -> MailError {
        let message = match mailbox == self.owner {
            true => "Your mailbox is full.".to_owned(),
            false => format!("The mailbox of {mailbox} is full."),
        };
        MailError::refused(Reason::OverQuota, message)
    }
}

/// Rejects a message that doesn't fit into an account.
pub(crate) fn check_room(context: &Context<'_>, bytes: usize) -> Result<(), MailError> {
    MailboxRoom::of(context).check(context.mailbox, bytes as u64)
}

/// Puts equal copies of a message into accounts.
fn put(
    changes: &mut Changes<'_>,
    copies: &[Copy],
    message: &Bytes,
    now_us: i64,
    ids: &mut crate::Ids,
) {
    let mut entry = Entry::of(message, now_us);
    if copies.len() > 1 && message.len() >= limits::SHARED_BYTES {
        let body = Unid::new(now_us, ids.take());
        changes.share(body, message.clone(), copies.len());
        entry.shared = Some(body);
    }
    for copy in copies {
        entry.read = copy.folder == Folder::Sent;
        changes.insert(&copy.mailbox, copy.folder, copy.unid, &entry, message);
    }
}
