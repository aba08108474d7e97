//! The mails of a server to look at.

use bytes::Bytes;
use groupware_mail::{
    self as mail, Attached, Context, Decision, Ids, MailError, Outgoing, Parcel, Person, Unid,
    View, drafts,
};

use super::DemoError;
use crate::AppState;

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 60 * MINUTE_S;
const DAY_S: i64 = 24 * HOUR_S;

/// What becomes of a mail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unread,
    Read,
    /// Kept by its author.
    Draft,
}

/// A mail from one of the users to others.
pub(super) struct Letter {
    from: &'static str,
    to: &'static [&'static str],
    cc: &'static [&'static str],
    /// Seconds before now.
    age_s: i64,
    subject: &'static str,
    text: &'static str,
    html: Option<&'static str>,
    files: Vec<Attached>,
    stage: Stage,
}

impl Letter {
    fn new(
        from: &'static str,
        to: &'static [&'static str],
        age_s: i64,
        subject: &'static str,
        text: &'static str,
    ) -> Self {
        Self {
            from,
            to,
            cc: &[],
            age_s,
            subject,
            text,
            html: None,
            files: Vec::new(),
            stage: Stage::Read,
        }
    }

    fn unread(self) -> Self {
        Self {
            stage: Stage::Unread,
            ..self
        }
    }

    fn draft(self) -> Self {
        Self {
            stage: Stage::Draft,
            ..self
        }
    }

    fn copy_to(self, cc: &'static [&'static str]) -> Self {
        Self { cc, ..self }
    }

    fn html(self, html: &'static str) -> Self {
        Self {
            html: Some(html),
            ..self
        }
    }

    fn file(mut self, name: &str, kind: &str, data: impl Into<Vec<u8>>) -> Self {
        self.files.push(Attached {
            name: name.to_owned(),
            kind: kind.to_owned(),
            id: (kind == "image/png").then(|| name.to_owned()),
            data: data.into(),
        });
        self
    }

    /// Sends it, as if at its moment.
    ///
    /// # Errors
    /// When the store fails, or refuses it.
    pub(super) async fn deliver(&self, state: &AppState) -> Result<(), DemoError> {
        let now_us = state.now_us() - self.age_s * 1_000_000;
        let ids = Ids::from_random(state.random_bits());
        let decision = state.store().read(|snapshot| {
            self.decide(&Context {
                snapshot,
                directory: state,
                mailbox: self.from,
                now_us,
                ids,
                quota_bytes: None,
            })
        })?;
        state.store().commit(decision.batch).await?;
        if self.stage == Stage::Read {
            for user in self.to.iter().chain(self.cc) {
                self.mark_read(state, user).await?;
            }
        }
        Ok(())
    }

    fn decide(&self, context: &Context<'_>) -> Result<Decision, MailError> {
        let people = |names: &[&str]| names.iter().map(|name| Person::at(*name)).collect();
        let (in_reply_to, references) = self.thread(context)?;
        let outgoing = Outgoing {
            subject: self.subject.to_owned(),
            to: people(self.to),
            cc: people(self.cc),
            bcc: Vec::new(),
            in_reply_to,
            references,
            text: Some(self.text.to_owned()),
            html: self.html.map(str::to_owned),
            attachments: self.files.clone(),
        };
        let message = Bytes::from(outgoing.build(context)?);
        match self.stage {
            Stage::Draft => drafts::save(context, &message),
            Stage::Read | Stage::Unread => {
                let parcel = Parcel::from_head(context.directory, context.mailbox, message)?;
                mail::send(context, &parcel)
            }
        }
    }

    /// What it answers: the newest mail with its subject.
    fn thread(&self, context: &Context<'_>) -> Result<(Option<String>, Vec<String>), MailError> {
        let Some(subject) = self.subject.strip_prefix("Re: ") else {
            return Ok((None, Vec::new()));
        };
        let Some(unid) = newest(context.snapshot, context.mailbox, subject)? else {
            return Ok((None, Vec::new()));
        };
        let held = mail::require(context.snapshot, context.mailbox, unid)?;
        let bytes = mail::bytes(context.snapshot, context.mailbox, &held)?;
        let view = View::of(&bytes, &held.entry);
        let mut references = view.references;
        references.push(view.message_id.clone());
        Ok((Some(view.message_id), references))
    }

    async fn mark_read(&self, state: &AppState, user: &str) -> Result<(), DemoError> {
        let decision = state.store().read(|snapshot| {
            let Some(unid) = newest(snapshot, user, self.subject)? else {
                return Ok(Decision::default());
            };
            let context = Context {
                snapshot,
                directory: state,
                mailbox: user,
                now_us: state.now_us(),
                ids: Ids::from_random(0),
                quota_bytes: None,
            };
            mail::mark(&context, &[unid], true)
        });
        let decision = decision.map_err(|error: MailError| error)?;
        if !decision.batch.is_empty() {
            state.store().commit(decision.batch).await?;
        }
        Ok(())
    }
}

/// The newest mail in a user's inbox whose subject has these words.
fn newest(
    snapshot: &dyn groupware_store::Snapshot,
    user: &str,
    subject: &str,
) -> Result<Option<Unid>, MailError> {
    let words = subject.trim_start_matches("Re: ");
    let query = mail::ListQuery::parse([("ps", "1"), ("search", words)])?;
    let page = mail::list(snapshot, user, mail::Folder::Inbox, &query)?;
    Ok(page.items.first().map(|listed| listed.unid))
}

impl Letter {
    /// All of them, the oldest first.
    pub(super) fn all() -> Vec<Self> {
        [older(), recent()].into_iter().flatten().collect()
    }
}

fn older() -> Vec<Letter> {
    vec![
        Letter::new("carla", &["ada", "ben", "dmitri"], 40 * DAY_S, "Welcome aboard",
            "Hello all,\n\nthe accounts are ready. Mail and calendar are the same server, so an invitation \
             needs no mail: it lies under Invitations.\n\nCarla"),
        Letter::new("ben", &["ada"], 16 * DAY_S, "Figures of the last run",
            "Hi Ada,\n\nhere are the figures. The tail grows before the mean does, as you said.\n\nBen")
            .file("figures.csv", "text/csv", "users,mean_ms,p95_ms\n1000,12,31\n2000,14,48\n3000,19,112\n"),
        Letter::new("ada", &["ben"], 16 * DAY_S - 2 * HOUR_S, "Re: Figures of the last run",
            "Thanks! At 3000 something queues. Can you repeat it with the probe on?\n\nAda\n\n\
             > here are the figures. The tail grows before the mean does, as you said."),
        Letter::new("ben", &["ada"], 15 * DAY_S, "Re: Figures of the last run",
            "Done, same picture: the probe waits 90 ms at the worst.\n\nBen\n\n\
             > Thanks! At 3000 something queues. Can you repeat it with the probe on?\n\
             >> here are the figures. The tail grows before the mean does, as you said."),
        Letter::new("dmitri", &["ada", "carla"], 12 * DAY_S, "Disks arrive on Thursday",
            "The two new disks come on Thursday. I build them in after six, when nobody measures.\n\nDmitri"),
        Letter::new("carla", &["ada"], 9 * DAY_S, "Photo from the yard",
            "Look what she can carry!")
            .html("<p>Look what she can carry!</p><p><img src=\"cid:mark.png\" alt=\"A load line\"></p>\
                   <p>More at <a href=\"https://example.org/yard\">the yard's page</a>.</p>")
            .file("mark.png", "image/png", mark_png()),
        Letter::new("dmitri", &["ada"], 8 * DAY_S, "Backup report", "All 4 backups were restored and compared: no difference."),
    ]
}

fn recent() -> Vec<Letter> {
    vec![
        Letter::new("ben", &["ada", "dmitri"], 5 * DAY_S, "Which file system for the mail store?",
            "Before we order: ext4 or xfs?\n\nI would measure both with the maildb workload, three trials each.\n\nBen")
            .copy_to(&["carla"]),
        Letter::new("dmitri", &["ben", "ada"], 5 * DAY_S - 3 * HOUR_S, "Re: Which file system for the mail store?",
            "Both, please. And tell me the fsync figures, not only the mean.\n\nDmitri\n\n\
             > I would measure both with the maildb workload, three trials each."),
        Letter::new("carla", &["ada", "ben", "dmitri"], 3 * DAY_S, "Newsletter of the harbour", 
            "This week in the harbour: the crane is painted, the canteen has soup.")
            .html("<h1>This week in the harbour</h1><table><tr><td><b>Mon</b></td><td>The crane is painted.</td></tr>\
                   <tr><td><b>Wed</b></td><td>The canteen has soup.</td></tr></table>\
                   <p><img src=\"https://tracker.example/open.gif\" width=\"1\" height=\"1\"></p>\
                   <blockquote>Small boats should keep near shore.</blockquote>"),
        Letter::new("ben", &["ada"], 2 * DAY_S, "Minutes and next steps",
            "Hi Ada,\n\nattached: the minutes, and the plan as a table.\n\nNext: the load test on the new machine. \
             See https://example.org/plan for the long version.\n\nBen")
            .file("minutes.txt", "text/plain", "1. The old server holds 2400 users.\n2. The new one is measured next week.\n")
            .file("plan.csv", "text/csv", "what,who,when\nload test,ben,monday\nreport,ada,wednesday\n"),
        Letter::new("dmitri", &["ada"], DAY_S + 2 * HOUR_S, "On-call phone", "I hand it over at the end of the week. The charger is in the drawer.").unread(),
        Letter::new("carla", &["ada", "ben", "dmitri"], 7 * HOUR_S, "Winter party: who brings what?",
            "I bring the punch. Write back what you bring, please, or it will be four salads again.\n\nCarla").unread(),
        Letter::new("ben", &["carla", "ada", "dmitri"], 5 * HOUR_S, "Re: Winter party: who brings what?",
            "Salad.\n\nBen\n\n> I bring the punch. Write back what you bring, please, or it will be four salads again.").unread(),
        Letter::new("ada", &["carla"], 4 * HOUR_S, "Re: Winter party: who brings what?", "Bread, and the long table.\n\nAda\n\n> I bring the punch."),
        Letter::new("dmitri", &["ada"], 40 * MINUTE_S, "The new machine is up",
            "It answers on the usual port. 16 cores, both disks in. Be gentle until Monday.\n\nDmitri").unread(),
        Letter::new("ada", &["dmitri"], 20 * MINUTE_S, "Re: The new machine is up",
            "Wonderful! I start with 200 users and ").draft(),
    ]
}

/// The mark on the hull, 96 by 96 points in two colours.
fn mark_png() -> Vec<u8> {
    include_bytes!("mark.png").to_vec()
}
