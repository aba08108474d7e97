//! The contents of a mail's form, and their conversion to a message and back.

use groupware_mail::{Attached, Outgoing, Person, Stored, Unid, View, limits};
use groupware_service::Service;

use super::text::{ordered, written};
use super::{list, message, prose};
use crate::error::PageError;
use crate::field::Wrong;
use crate::form::Fields;
use crate::people;
use crate::visitor::SignedIn;

/// Most mails whose files a form refers to: a genuine form names the draft, or the forwarded mail.
const KEPT_FROM: usize = 8;

/// The texts of the fields, and the files kept from another mail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) to: String,
    pub(crate) cc: String,
    pub(crate) bcc: String,
    pub(crate) subject: String,
    pub(crate) text: String,
    /// The draft that is being written.
    pub(crate) unid: Option<Unid>,
    /// The version of that draft that the writer saw.
    pub(crate) seen: Option<u64>,
    /// The mail that is answered.
    pub(crate) answers: Option<Unid>,
    /// Files of a draft or of a forwarded mail.
    pub(crate) kept: Vec<IncludedFile>,
}

/// A file included from another mail of the same mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncludedFile {
    pub(crate) mail: Unid,
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

impl Draft {
    /// The submitted form; kept files are loaded when needed.
    pub(crate) fn sent(fields: &Fields) -> Self {
        let text = |name| fields.trimmed(name).to_owned();
        let kept = fields.all("keep").filter_map(|text| {
            let (mail, name) = text.split_once('/')?;
            Some(IncludedFile {
                mail: Unid::parse(mail)?,
                name: name.to_owned(),
                bytes: 0,
            })
        });
        Self {
            to: text("to"),
            cc: text("cc"),
            bcc: text("bcc"),
            subject: text("subject"),
            text: fields.get("text").replace("\r\n", "\n"),
            unid: Unid::parse(fields.get("draft")),
            seen: fields.get("seen").parse().ok(),
            answers: Unid::parse(fields.get("answers")),
            kept: kept.collect(),
        }
    }

    /// A stored draft.
    pub(crate) fn kept(held: &Stored, view: &View<'_>) -> Self {
        Self {
            to: joined(&view.to),
            cc: joined(&view.cc),
            bcc: joined(&view.bcc),
            subject: view.subject.clone(),
            text: text_of(view),
            unid: Some(held.unid),
            seen: Some(held.revision),
            answers: None,
            kept: files(held.unid, view),
        }
    }

    /// A reply to a mail, to its author or to all recipients.
    pub(crate) fn reply(
        service: &Service,
        visitor: &SignedIn,
        held: &Stored,
        view: &View<'_>,
        to_all: bool,
    ) -> Self {
        let is_own = |person: &Person| {
            let user = service.auth.directory().resolve(&person.email);
            user.is_some_and(|user| &**user.name.key() == visitor.mailbox())
        };
        let others = |people: &[Person]| -> Vec<Person> {
            people.iter().filter(|it| !is_own(it)).cloned().collect()
        };
        let from = vec![view.from.clone()];
        // A reply to one's own mail continues to its recipients.
        let to = match (is_own(&view.from), view.reply_to.is_empty()) {
            (true, _) => view.to.clone(),
            (false, true) => from,
            (false, false) => view.reply_to.clone(),
        };
        let mut cc = Vec::new();
        if to_all {
            for person in [others(&view.to), others(&view.cc)].concat() {
                let known = to.iter().chain(&cc).any(|it| it.email == person.email);
                if !known {
                    cc.push(person);
                }
            }
        }
        let quoted: String = text_of(view)
            .trim_end()
            .lines()
            .map(|line| match line.starts_with('>') {
                true => format!(">{line}\n"),
                false => format!("> {line}\n"),
            })
            .collect();
        let date = list::full_date(visitor, held.entry.date_s);
        Self {
            to: joined(&to),
            cc: joined(&cc),
            subject: prefixed("Re: ", &view.subject),
            text: format!("\n\n{date}, {} wrote:\n{quoted}", view.from.shown()),
            answers: Some(held.unid),
            ..Self::default()
        }
    }

    /// A forwarded mail, with its files.
    pub(crate) fn forward(visitor: &SignedIn, held: &Stored, view: &View<'_>) -> Self {
        let text = format!(
            "\n\n-------- Forwarded mail --------\nFrom: {}\nTo: {}\nDate: {}\nSubject: {}\n\n{}",
            written(&view.from),
            joined(&view.to),
            list::full_date(visitor, held.entry.date_s),
            view.subject,
            text_of(view),
        );
        Self {
            subject: prefixed("Fwd: ", &view.subject),
            text,
            kept: files(held.unid, view),
            ..Self::default()
        }
    }

    /// Returns the message that the form describes. Errors of its recipients are recorded; invalid
    /// recipients are omitted.
    pub(crate) fn read(&self, service: &Service, wrong: &mut Wrong) -> Outgoing {
        let mut field = |name, text: &str| {
            let people = read_people(text);
            let (good, bad): (Vec<_>, Vec<_>) = people
                .into_iter()
                .partition(|person| groupware_mail::is_address(&person.email));
            if let Some(person) = bad.first() {
                let shown: String = person.email.chars().take(80).collect();
                wrong.add(name, format!("“{shown}” is no address."));
            }
            if !good.is_empty()
                && let Err(error) = groupware_mail::resolve(service.auth.people(), &good)
            {
                wrong.add(name, error.to_string());
            }
            good
        };
        let (to, cc, bcc) = (
            field("to", &self.to),
            field("cc", &self.cc),
            field("bcc", &self.bcc),
        );
        Outgoing {
            subject: self.subject.clone(),
            to,
            cc,
            bcc,
            text: Some(self.text.clone()),
            ..Outgoing::default()
        }
    }

    /// Sets the message's place in a thread: behind the mail that it replies to, or that of the
    /// draft.
    pub(crate) fn place(
        &self,
        service: &Service,
        visitor: &SignedIn,
        outgoing: &mut Outgoing,
    ) -> Result<(), PageError> {
        if let Some(draft) = self.unid {
            let (held, bytes) = message::load(service, visitor, draft)?;
            let view = View::of(&bytes, &held.entry);
            outgoing.references = view.references;
            outgoing.in_reply_to = Some(view.in_reply_to).filter(|id| !id.is_empty());
        }
        if let Some(answered) = self.answers
            && let Ok((held, bytes)) = message::load(service, visitor, answered)
        {
            let view = View::of(&bytes, &held.entry);
            if !view.message_id.is_empty() {
                outgoing.in_reply_to = Some(view.message_id.clone());
                outgoing.references = view.references;
                outgoing.references.push(view.message_id);
            }
        }
        // Others' identifiers may be invalid in our heads.
        let fits = |id: &String| id.len() <= 250 && id.bytes().all(|byte| byte.is_ascii_graphic());
        outgoing.references.retain(fits);
        outgoing.in_reply_to = outgoing.in_reply_to.take().filter(fits);
        Ok(())
    }

    /// Returns the mails whose files are kept, each once.
    ///
    /// # Errors
    /// [`PageError::TooLarge`] if there are more than any genuine form has.
    pub(crate) fn mails(&self) -> Result<Vec<Unid>, PageError> {
        let mut mails = Vec::new();
        for kept in &self.kept {
            if !mails.contains(&kept.mail) {
                mails.push(kept.mail);
            }
            if mails.len() > KEPT_FROM {
                return Err(PageError::TooLarge);
            }
        }
        Ok(mails)
    }

    /// The bytes of the mails that must be read to build the message.
    ///
    /// # Errors
    /// [`PageError::TooLarge`] if files are kept from too many mails.
    pub(crate) fn read_bytes(
        &self,
        service: &Service,
        visitor: &SignedIn,
    ) -> Result<u64, PageError> {
        let mails = self.mails()?.into_iter();
        let all = mails.chain(self.unid).chain(self.answers);
        // Missing mails are reported where they are read.
        let held = all.filter_map(|unid| message::find(service, visitor, unid).ok());
        Ok(held.map(|held| held.entry.size).sum())
    }

    /// Returns the kept files with their content; missing files are skipped.
    ///
    /// # Errors
    /// [`PageError::TooLarge`] if they exceed a message; a refusal if a mail is missing; the store's errors.
    pub(crate) fn kept_files(
        &self,
        service: &Service,
        visitor: &SignedIn,
    ) -> Result<Vec<Attached>, PageError> {
        let (mut files, mut room) = (Vec::new(), limits::MESSAGE_BYTES);
        for mail in self.mails()? {
            let (_, bytes) = message::load(service, visitor, mail)?;
            let parts = groupware_mail::parts(&bytes);
            for kept in self.kept.iter().filter(|kept| kept.mail == mail) {
                let Some(part) = parts.iter().find(|part| part.name == kept.name) else {
                    continue;
                };
                let data = part.data();
                room = room.checked_sub(data.len()).ok_or(PageError::TooLarge)?;
                files.push(Attached {
                    name: part.name.clone(),
                    kind: part.kind.clone(),
                    id: None,
                    data: data.into_owned(),
                });
            }
        }
        Ok(files)
    }
}

/// Parses `ann, Bob Baker <bob@localhost>`.
fn read_people(text: &str) -> Vec<Person> {
    let people = people::entries(text).map(|(name, address)| Person {
        name: name.chars().filter(|letter| !letter.is_control()).collect(),
        email: address.to_owned(),
    });
    people.collect()
}

fn joined(people: &[Person]) -> String {
    let people: Vec<_> = people.iter().map(written).collect();
    people.join(", ")
}

fn files(unid: Unid, view: &View<'_>) -> Vec<IncludedFile> {
    let reading = view.reading();
    // Pictures that are shown in place are included as files.
    let pictures = reading.preferred().filter(|part| !part.is_text());
    let files = reading.files().chain(pictures).map(|part| IncludedFile {
        mail: unid,
        name: part.name.clone(),
        bytes: part.data().len() as u64,
    });
    files.collect()
}

/// Joins the texts of a mail.
fn text_of(view: &View<'_>) -> String {
    let reading = view.reading();
    let texts = reading.plain().filter(|part| part.is_text());
    let texts = texts.map(|part| {
        let text = part.text();
        match part.is_html() {
            true => prose::text_of(&text),
            false => text,
        }
    });
    let texts: Vec<String> = texts.collect();
    let text = match &texts[..] {
        [text] => text.clone(),
        texts => texts
            .iter()
            .map(|text| text.trim_end())
            .collect::<Vec<_>>()
            .join("\n\n"),
    };
    ordered(&text.replace("\r\n", "\n")).into_owned()
}

fn prefixed(prefix: &str, subject: &str) -> String {
    let start = subject.get(..prefix.len()).unwrap_or_default();
    match start.eq_ignore_ascii_case(prefix) {
        true => subject.to_owned(),
        false => format!("{prefix}{subject}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_prefixed_once() {
        assert_eq!(prefixed("Re: ", "Plans"), "Re: Plans");
        assert_eq!(prefixed("Re: ", "RE: Plans"), "RE: Plans");
        assert_eq!(prefixed("Re: ", "é"), "Re: é");
        assert_eq!(prefixed("Fwd: ", "Re: Plans"), "Fwd: Re: Plans");
    }
}
