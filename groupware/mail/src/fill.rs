//! Fills a mailbox with messages for a study: the same ones for the same seed, and their sizes
//! dealt out so evenly that each mailbox has its share of each size.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use groupware_people::Directory;
use groupware_store::{Batch, Snapshot};

use crate::mailbox::Changes;
use crate::{Entry, Folder, MailError, Unid, limits};

/// One kind of message: how large, and how many of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClass {
    /// Bytes of text.
    pub text_bytes: usize,
    /// Bytes of an attachment, before it is encoded; 0 for none.
    pub attachment_bytes: usize,
    /// How many of a thousand messages.
    pub permille: u32,
}

impl SizeClass {
    const fn new(text_bytes: usize, attachment_bytes: usize, permille: u32) -> Self {
        Self {
            text_bytes,
            attachment_bytes,
            permille,
        }
    }

    /// The sizes that Domino's Server.Load sends (`SendMessage profile`).
    pub const REFERENCE: [Self; 6] = [
        Self::new(500, 0, 100),
        Self::new(10_000, 0, 300),
        Self::new(50_000, 0, 400),
        Self::new(50_000, 50_000, 100),
        Self::new(150_000, 0, 95),
        Self::new(1_000, 10_000_000, 5),
    ];
}

/// What to fill mailboxes with.
#[derive(Debug, Clone)]
pub struct Fill {
    /// The sizes; their shares add up to a thousand.
    pub classes: Vec<SizeClass>,
    /// Repeats the same messages.
    pub seed: u64,
    /// Messages of each mailbox.
    pub messages: u32,
    /// When the newest message came, seconds since 1970; the others came a minute apart.
    pub newest_s: i64,
}

impl Fill {
    /// Refuses shares that don't add up and messages that are too large.
    ///
    /// # Errors
    /// A refusal.
    pub fn check(&self) -> Result<(), MailError> {
        let permille: u64 = self.classes.iter().map(|it| u64::from(it.permille)).sum();
        if permille != 1000 {
            let message = format!("The shares add up to {permille} of 1000.");
            return Err(MailError::bad_request(message));
        }
        let fits = |class: &SizeClass| {
            // Base64 in lines.
            let most = limits::MESSAGE_BYTES - 4096;
            class.text_bytes <= most
                && class.attachment_bytes <= most / 4 * 3 / 78 * 76
                && class.text_bytes + class.attachment_bytes / 3 * 4 / 76 * 78 <= most
        };
        match self.classes.iter().all(fits) {
            true => Ok(()),
            false => Err(MailError::bad_request("A message has at most 16 MiB.")),
        }
    }

    /// The classes of a thousand messages, and of the next thousand, and so on: dealt out so that
    /// each run of neighbours has each class as often as its share says, to within one.
    pub fn cycle(&self) -> Vec<SizeClass> {
        let mut given = vec![0_i64; self.classes.len()];
        let cycle = (0..1000_i64).map(|at| {
            let lack = |class: usize| {
                (at + 1) * i64::from(self.classes[class].permille) - given[class] * 1000
            };
            let next = (0..given.len())
                .max_by_key(|class| lack(*class))
                .unwrap_or(0);
            given[next] += 1;
            self.classes[next]
        });
        cycle.collect()
    }

    /// Puts message `number` of the mailbox, from 0, the newest, into a batch.
    ///
    /// # Errors
    /// The store's.
    pub fn batch(
        &self,
        snapshot: &dyn Snapshot,
        directory: &dyn Directory,
        mailbox: &str,
        numbers: impl Iterator<Item = (u32, SizeClass)>,
    ) -> Result<Batch, MailError> {
        let owner: Arc<str> = mailbox.into();
        let mut changes = Changes::new(snapshot);
        for (number, class) in numbers {
            let mut noise = self.noise(mailbox, number);
            let message = self.message(directory, mailbox, number, class, &mut noise);
            let received_us = (self.newest_s - 60 * i64::from(number)) * 1_000_000;
            let mut random = [0; 16];
            noise.fill(&mut random);
            let unid = Unid::new(received_us, u128::from_le_bytes(random));
            let entry = Entry::of(&message, received_us);
            changes.insert(&owner, Folder::Inbox, unid, &entry, &message);
        }
        changes.into_batch()
    }

    fn noise(&self, mailbox: &str, number: u32) -> blake3::OutputReader {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&number.to_le_bytes());
        hasher.update(mailbox.as_bytes());
        hasher.finalize_xof()
    }

    fn message(
        &self,
        directory: &dyn Directory,
        mailbox: &str,
        number: u32,
        class: SizeClass,
        noise: &mut blake3::OutputReader,
    ) -> Bytes {
        let email = directory.email(mailbox);
        let date = mail_builder::headers::date::Date::new(self.newest_s - 60 * i64::from(number));
        let subject = words(noise, 30);
        let mut message = Vec::with_capacity(class.text_bytes + class.attachment_bytes * 2 + 1024);
        let head = format!(
            "From: Study <study@{domain}>\r\nTo: <{email}>\r\nSubject: {number} {subject}\r\n\
             Date: {}\r\nMessage-ID: <fill-{}-{number}-{mailbox}@{domain}>\r\nMIME-Version: 1.0\r\n",
            date.to_rfc822(),
            self.seed,
            domain = directory.domain(),
        );
        message.extend_from_slice(head.as_bytes());
        const PLAIN: &str = "Content-Type: text/plain; charset=utf-8\r\n\r\n";
        if class.attachment_bytes == 0 {
            message.extend_from_slice(PLAIN.as_bytes());
            push_text(&mut message, noise, class.text_bytes);
            return message.into();
        }
        message.extend_from_slice(
            b"Content-Type: multipart/mixed; boundary=\"mixed_fill\"\r\n\r\n--mixed_fill\r\n",
        );
        message.extend_from_slice(PLAIN.as_bytes());
        push_text(&mut message, noise, class.text_bytes);
        message.extend_from_slice(
            b"\r\n--mixed_fill\r\nContent-Type: application/octet-stream; name=\"data.bin\"\r\n\
              Content-Disposition: attachment; filename=\"data.bin\"\r\n\
              Content-Transfer-Encoding: base64\r\n\r\n",
        );
        push_base64(&mut message, noise, class.attachment_bytes);
        message.extend_from_slice(b"--mixed_fill--\r\n");
        message.into()
    }
}

const WORDS: [&str; 32] = [
    "about", "after", "again", "board", "budget", "change", "date", "draft", "east", "figures",
    "first", "group", "house", "index", "joint", "known", "letter", "meeting", "month", "north",
    "office", "order", "paper", "plan", "quarter", "report", "second", "table", "today", "travel",
    "visit", "week",
];

fn words(noise: &mut blake3::OutputReader, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 8);
    let mut picks = [0; 16];
    while text.len() < bytes {
        noise.fill(&mut picks);
        for pick in picks {
            text.push_str(WORDS[usize::from(pick) % WORDS.len()]);
            text.push(' ');
        }
    }
    text.truncate(bytes);
    text.truncate(text.trim_end().len());
    text
}

fn push_text(message: &mut Vec<u8>, noise: &mut blake3::OutputReader, bytes: usize) {
    let end = message.len() + bytes;
    let (mut picks, mut column) = ([0; 64], 0);
    while message.len() < end {
        noise.fill(&mut picks);
        for pick in picks {
            let word = WORDS[usize::from(pick) % WORDS.len()].as_bytes();
            message.extend_from_slice(word);
            column += word.len() + 1;
            message.extend_from_slice(if column > 64 { b"\r\n" } else { b" " });
            column = if column > 64 { 0 } else { column };
        }
    }
    message.truncate(end.saturating_sub(2));
    message.extend_from_slice(b"\r\n");
}

fn push_base64(message: &mut Vec<u8>, noise: &mut blake3::OutputReader, bytes: usize) {
    const LINE_BYTES: usize = 57;
    let (mut data, mut text) = ([0; LINE_BYTES], [0; 76]);
    let mut left = bytes;
    while left > 0 {
        let now = left.min(LINE_BYTES);
        noise.fill(&mut data[..now]);
        let written = STANDARD.encode_slice(&data[..now], &mut text).unwrap_or(0);
        message.extend_from_slice(&text[..written]);
        message.extend_from_slice(b"\r\n");
        left -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_messages_has_its_share_of_each_size() {
        let fill = Fill {
            classes: SizeClass::REFERENCE.to_vec(),
            seed: 1,
            messages: 100,
            newest_s: 0,
        };
        fill.check().unwrap();
        let cycle = fill.cycle();
        let count =
            |class: &SizeClass, run: &[SizeClass]| run.iter().filter(|it| *it == class).count();
        for class in &fill.classes {
            assert_eq!(count(class, &cycle), class.permille as usize);
            for run in cycle.chunks(100) {
                let (found, due) = (count(class, run) * 10, class.permille as usize);
                assert!(found.abs_diff(due) <= 10, "{class:?}: {found} of {due}");
            }
        }
    }
}
