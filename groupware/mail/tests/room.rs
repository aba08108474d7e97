//! Whether sent messages have room.

use std::collections::BTreeSet;
use std::sync::Arc;

use groupware_mail::{
    Context, Decision, Folder, Ids, MailError, Reason, RoutedMessage, bytes, limits, page, send,
};
use groupware_proto_mime::Head;

use crate::support::{Users, World};

/// The decision for accounts with this quota, some of which are full.
fn sent(
    world: &World,
    parcel: &RoutedMessage,
    quota_bytes: Option<u64>,
    full: &[&str],
) -> Result<Decision, MailError> {
    let full: BTreeSet<Arc<str>> = full.iter().map(|user| Arc::from(*user)).collect();
    world.store.read(|snapshot| {
        let context = Context {
            snapshot,
            directory: &Users,
            mailbox: "ann",
            now_us: world.now_us,
            ids: Ids::from_random(7),
            quota_bytes,
            full: &full,
        };
        send(&context, parcel)
    })
}

fn parcel(to: &[&str], message: String) -> RoutedMessage {
    RoutedMessage {
        message: message.into(),
        to: to.iter().map(|user| (*user).to_owned()).collect(),
    }
}

#[test]
fn a_message_to_oneself_needs_room_for_both_copies() {
    let world = World::new();
    // Both copies have the same size, and a smaller one if the recipient is hidden.
    let stripped = "From: ann@localhost\r\nSubject: Pier\r\n";
    for (blind, rest) in [("", ""), ("Bcc: ann@localhost\r\n", "text")] {
        let message = format!("{stripped}{blind}\r\n{rest}");
        let both = (2 * message.len() - blind.len()) as u64;
        let to = parcel(&["ann"], message);
        assert!(sent(&world, &to, Some(both), &[]).is_ok());
        let refused = sent(&world, &to, Some(both - 1), &[]).unwrap_err();
        assert_eq!(refused.reason(), Some(Reason::OverQuota), "{refused}");
    }
}

#[test]
fn a_report_has_a_short_subject_without_deceptive_characters() {
    let world = World::new();
    let subject = "Pier\u{202e}".to_owned() + &"x".repeat(2000);
    let message = format!("From: ann@localhost\r\nSubject: {subject}\r\n\r\n");
    let to = parcel(&["bob", "cy"], message);
    world
        .commit(sent(&world, &to, None, &["bob"]).unwrap())
        .unwrap();
    let report = world.store.read::<_, MailError>(|snapshot| {
        let found = page(snapshot, "ann", (Folder::Inbox, None), 1)?;
        bytes(snapshot, "ann", &found[0])
    });
    let report = report.unwrap();
    let head = Head::of(&report);
    let parsed = head.parse().unwrap();
    let told = parsed.subject().unwrap();
    let told = told.strip_prefix("Not delivered to all: ").unwrap();
    assert!(told.starts_with("Pierxx"), "{told}");
    assert_eq!(told.len(), limits::SUBJECT_BYTES);
}
