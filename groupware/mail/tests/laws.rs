//! Laws: after any operations of users, also concurrent ones, counters match the content, a shared
//! body exists as long as it has a holder, and a draft is sent once.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{USERS, World};
use bytes::Bytes;
use groupware_mail::{
    Context, Decision, Entry, Folder, MailError, Marking, Reason, RoutedMessage, State, Unid,
    add_and_remove, changes_since, delete, drafts, empty, folders, limits, mark, mark_as, move_to,
    receive, release_shared, send,
};
use groupware_store::CommitError;
use proptest::prelude::*;

/// Indexes of users; indexes beyond the last wrap, for messages and folders, too.
type Picks = Vec<usize>;

#[derive(Debug, Clone)]
enum Deed {
    Send {
        to: BTreeSet<usize>,
        is_large: bool,
        is_blind: bool,
    },
    Receive {
        to: BTreeSet<usize>,
        is_large: bool,
    },
    Save {
        is_large: bool,
    },
    Rewrite {
        draft: usize,
        is_large: bool,
    },
    SendDraft {
        draft: usize,
        to: BTreeSet<usize>,
        is_large: bool,
    },
    Mark {
        picks: Picks,
        read: bool,
    },
    MarkAs {
        picks: Picks,
        flagged: bool,
        keywords: usize,
    },
    Move {
        picks: Picks,
        folder: usize,
    },
    AddAndRemove {
        folder: usize,
        add: Picks,
        remove: Picks,
    },
    Delete {
        picks: Picks,
        permanently: bool,
    },
    Empty {
        folder: usize,
    },
    CreateFolder {
        name: usize,
    },
    DeleteFolder {
        folder: usize,
    },
    /// The account is emptied, as when its owner is removed.
    Clear,
}

fn people() -> impl Strategy<Value = BTreeSet<usize>> {
    prop::collection::btree_set(0..USERS.len(), 1..=USERS.len())
}

fn deed() -> impl Strategy<Value = Deed> {
    let number = || any::<usize>();
    let picks = || prop::collection::vec(any::<usize>(), 0..4);
    prop_oneof![
        6 => (people(), any::<bool>(), any::<bool>())
            .prop_map(|(to, is_large, is_blind)| Deed::Send { to, is_large, is_blind }),
        2 => (people(), any::<bool>()).prop_map(|(to, is_large)| Deed::Receive { to, is_large }),
        3 => any::<bool>().prop_map(|is_large| Deed::Save { is_large }),
        1 => (number(), any::<bool>())
            .prop_map(|(draft, is_large)| Deed::Rewrite { draft, is_large }),
        3 => (number(), people(), any::<bool>())
            .prop_map(|(draft, to, is_large)| Deed::SendDraft { draft, to, is_large }),
        2 => (picks(), any::<bool>()).prop_map(|(picks, read)| Deed::Mark { picks, read }),
        3 => (picks(), any::<bool>(), 0..3_usize)
            .prop_map(|(picks, flagged, keywords)| Deed::MarkAs { picks, flagged, keywords }),
        4 => (picks(), number()).prop_map(|(picks, folder)| Deed::Move { picks, folder }),
        2 => (number(), picks(), picks())
            .prop_map(|(folder, add, remove)| Deed::AddAndRemove { folder, add, remove }),
        5 => (picks(), any::<bool>())
            .prop_map(|(picks, permanently)| Deed::Delete { picks, permanently }),
        1 => number().prop_map(|folder| Deed::Empty { folder }),
        2 => (0..3_usize).prop_map(|name| Deed::CreateFolder { name }),
        1 => number().prop_map(|folder| Deed::DeleteFolder { folder }),
        1 => Just(Deed::Clear),
    ]
}

fn names(to: &BTreeSet<usize>) -> BTreeSet<String> {
    to.iter().map(|user| USERS[*user].to_owned()).collect()
}

/// A message, large enough to be shared or not.
fn message(owner: &str, is_large: bool, is_blind: bool) -> Bytes {
    let blind = if is_blind {
        "Bcc: cy@localhost\r\n"
    } else {
        ""
    };
    let bytes = if is_large { limits::SHARED_BYTES } else { 20 };
    format!(
        "From: {owner}@localhost\r\n{blind}Subject: Plan\r\n\r\n{}\r\n",
        "x".repeat(bytes)
    )
    .into()
}

/// The input of a deed, found in the owner's account before concurrent changes.
struct Found {
    owner: &'static str,
    messages: Vec<Unid>,
    drafts: Vec<Unid>,
    folders: Vec<Folder>,
}

impl Found {
    fn of(world: &World, owner: &'static str) -> Self {
        let messages = world.messages(owner);
        let all = messages.values().flatten().map(|listed| listed.unid);
        Self {
            owner,
            messages: all.collect(),
            drafts: world.unids(owner, Folder::Drafts),
            folders: messages.keys().copied().collect(),
        }
    }

    fn picked(&self, picks: &[usize]) -> Vec<Unid> {
        let one = |pick: &usize| Some(self.messages[pick.checked_rem(self.messages.len())?]);
        picks.iter().filter_map(one).collect()
    }

    fn folder(&self, number: usize) -> Folder {
        self.folders[number % self.folders.len()]
    }

    fn draft(&self, number: usize) -> Option<Unid> {
        Some(self.drafts[number.checked_rem(self.drafts.len())?])
    }
}

/// Returns the decision for a deed; `None` if it has no object.
fn decide(
    context: &Context<'_>,
    found: &Found,
    deed: &Deed,
) -> Option<Result<Decision, MailError>> {
    let parcel = |to: &BTreeSet<usize>, is_large, is_blind| RoutedMessage {
        message: message(found.owner, is_large, is_blind),
        to: names(to),
    };
    Some(match deed {
        Deed::Send {
            to,
            is_large,
            is_blind,
        } => send(context, &parcel(to, *is_large, *is_blind)),
        Deed::Receive { to, is_large } => {
            let message = message("x", *is_large, false);
            receive(context, &names(to), "Received: x\r\n", &message)
        }
        Deed::Save { is_large } => drafts::save(context, &message(found.owner, *is_large, false)),
        Deed::Rewrite { draft, is_large } => {
            let message = message(found.owner, *is_large, false);
            drafts::rewrite(context, (found.draft(*draft)?, None), &message)
        }
        Deed::SendDraft {
            draft,
            to,
            is_large,
        } => drafts::send(
            context,
            (found.draft(*draft)?, None),
            &parcel(to, *is_large, false),
        ),
        Deed::Mark { picks, read } => mark(context, &found.picked(picks), *read),
        Deed::MarkAs {
            picks,
            flagged,
            keywords,
        } => {
            let marking = Marking {
                flagged: Some(*flagged),
                keywords: Some((0..*keywords).map(|number| format!("k{number}")).collect()),
                ..Marking::default()
            };
            mark_as(context, &found.picked(picks), &marking)
        }
        Deed::Move { picks, folder } => {
            move_to(context, &found.picked(picks), found.folder(*folder))
        }
        Deed::AddAndRemove {
            folder,
            add,
            remove,
        } => {
            let (add, remove) = (found.picked(add), found.picked(remove));
            add_and_remove(context, found.folder(*folder), &add, &remove)
        }
        Deed::Delete { picks, permanently } => delete(context, &found.picked(picks), *permanently),
        Deed::Empty { folder } => empty(context, found.folder(*folder)),
        Deed::CreateFolder { name } => folders::create(context, &format!("Folder {name}")),
        Deed::DeleteFolder { folder } => match found.folder(*folder) {
            Folder::Own(unid) => folders::delete(context, unid),
            _ => return None,
        },
        Deed::Clear => return None,
    })
}

/// Releases the shared bodies of the account, then clears it: in one batch here, since there are so few.
fn clear(context: &Context<'_>) -> Result<Decision, MailError> {
    let (mut batch, more) = release_shared(context.snapshot, context.mailbox, 10_000)?;
    assert!(!more);
    batch.delete_partition(context.mailbox);
    Ok(Decision {
        batch,
        ..Decision::default()
    })
}

/// Runs deeds of several users concurrently: all decide on one state, and commit one after the
/// other. A deed with a conflict decides again, without concurrency. Accounts are cleared when
/// nothing else runs: the batch asserts nothing about concurrent deliveries.
fn at_once(world: &mut World, deeds: &[(usize, Deed)]) {
    let mut decided = Vec::new();
    for (owner, deed) in deeds {
        let found = Found::of(world, USERS[*owner]);
        if !matches!(deed, Deed::Clear) {
            decided.push(attempt(world, &found, deed).map(|decision| (found, deed, decision)));
        }
    }
    for (found, deed, decision) in decided.into_iter().flatten() {
        match world.commit(decision) {
            Ok(()) => {}
            Err(CommitError::Conflict { .. }) => {
                if let Some(again) = attempt(world, &found, deed) {
                    world.commit(again).expect("nobody was in between");
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    for (owner, _) in deeds.iter().filter(|(_, deed)| matches!(deed, Deed::Clear)) {
        world.change(USERS[*owner], clear).unwrap();
    }
}

/// A refusal is a valid result; an unreadable store is not.
fn attempt(world: &mut World, found: &Found, deed: &Deed) -> Option<Decision> {
    let mut nothing = false;
    let decided = world.decide(found.owner, |context| {
        decide(context, found, deed).unwrap_or_else(|| {
            nothing = true;
            Ok(Decision::default())
        })
    });
    match decided {
        Ok(decision) => Some(decision).filter(|_| !nothing),
        Err(error) => {
            assert!(error.reason().is_some(), "{deed:?}: {error}");
            None
        }
    }
}

/// A folder as a client knows it: the state of its numbers, and its content.
type Seen = (State, BTreeMap<Unid, Entry>);

/// Returns all folders of an account.
fn seen(world: &World, owner: &str) -> BTreeMap<Folder, Seen> {
    let all = world.messages(owner).into_iter();
    all.map(|(folder, listed)| {
        let state = world
            .store
            .read(|snapshot| State::of(snapshot, owner, folder));
        let listed = listed.into_iter().map(|one| (one.unid, one.entry));
        (folder, (state.unwrap(), listed.collect()))
    })
    .collect()
}

/// Checks that the changes since a known state turn that state into the current one, and that UIDs rise.
fn check_since(
    world: &World,
    (owner, folder): (&str, Folder),
    (before, then): &Seen,
    (state, now): &Seen,
    was_cleared: bool,
) {
    let since = world
        .store
        .read(|snapshot| changes_since(snapshot, owner, folder, before.modseq));
    let since = match since {
        Ok(since) => since,
        Err(error) => {
            assert_eq!(error.reason(), Some(Reason::Gone), "{error}");
            // Without any change before, the earlier state is unknown; so is that of another account.
            assert!(
                before.modseq == 0 || was_cleared,
                "{owner} {folder} {before:?} {state:?}"
            );
            return;
        }
    };
    assert_eq!(&since.state, state);
    let mut there = then.clone();
    for gone in &since.vanished {
        if let Some(entry) = there.remove(&gone.unid) {
            assert_eq!(entry.numbers.map(|numbers| numbers.uid), gone.uid);
        }
    }
    let mut last = before.modseq;
    for changed in since.messages {
        let numbers = changed.entry.numbers.unwrap();
        assert!(numbers.modseq > last, "in the order of the changes");
        last = numbers.modseq;
        if let Some(old) = there.insert(changed.unid, changed.entry) {
            assert_eq!(old.numbers.unwrap().uid, numbers.uid, "a UID stays");
        } else {
            assert!(numbers.uid >= before.uid_next, "UIDs rise");
        }
    }
    assert_eq!(&there, now, "{owner} {folder}");
    assert_eq!(before.uid_validity, state.uid_validity);
}

#[test]
fn who_has_missed_too_much_begins_anew() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = message(owner, false, false);
    let unid = world
        .change(owner, |context| drafts::save(context, &text))
        .unwrap()
        .unwrap();
    let before = seen(&world, owner).remove(&Folder::Drafts).unwrap();
    for number in 0..limits::CHANGES {
        if number % 1000 == 0 {
            let now = seen(&world, owner).remove(&Folder::Drafts).unwrap();
            check_since(&world, (owner, Folder::Drafts), &before, &now, false);
        }
        let read = number % 2 == 1;
        let marked = world.change(owner, |context| mark(context, &[unid], read));
        marked.unwrap();
    }
    let now = seen(&world, owner).remove(&Folder::Drafts).unwrap();
    assert_eq!(now.0.modseq, before.0.modseq + u64::from(limits::CHANGES));
    check_since(&world, (owner, Folder::Drafts), &before, &now, false);
    // A change of another folder replaces the oldest one.
    let folder = world.change(owner, |context| drafts::save(context, &text));
    let other = folder.unwrap().unwrap();
    let moved = world.change(owner, |context| delete(context, &[other], false));
    moved.unwrap();
    for (since, is_known) in [
        (before.0.modseq, false),
        (before.0.modseq + 2, false),
        (before.0.modseq + 3, true),
        (now.0.modseq + 3, true),
        (now.0.modseq + 4, false),
        (u64::MAX, false),
        (0, false),
    ] {
        let known = world
            .store
            .read(|snapshot| changes_since(snapshot, owner, Folder::Trash, since));
        assert_eq!(known.is_ok(), is_known, "{since} {known:?}");
    }
}

#[test]
fn a_move_gives_another_uid_and_takes_the_old_one_away() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = message(owner, false, false);
    let draft = world.change(owner, |context| drafts::save(context, &text));
    let unid = draft.unwrap().unwrap();
    let (drafts_before, trash_before) = (
        seen(&world, owner).remove(&Folder::Drafts).unwrap(),
        seen(&world, owner).remove(&Folder::Trash).unwrap(),
    );
    // The same bytes keep their UID, others get a new one.
    for (is_rewritten, uid) in [(false, 1), (true, 2), (false, 2)] {
        let changed = world.change(owner, |context| match is_rewritten {
            true => drafts::rewrite(context, (unid, None), &text),
            false => mark(context, &[unid], false),
        });
        changed.unwrap();
        let now = seen(&world, owner).remove(&Folder::Drafts).unwrap();
        assert_eq!(now.1[&unid].numbers.unwrap().uid, uid);
        check_since(&world, (owner, Folder::Drafts), &drafts_before, &now, false);
    }
    let moved = world.change(owner, |context| move_to(context, &[unid], Folder::Trash));
    moved.unwrap();
    let mut now = seen(&world, owner);
    let (left, came) = (
        now.remove(&Folder::Drafts).unwrap(),
        now.remove(&Folder::Trash).unwrap(),
    );
    assert!(left.1.is_empty() && came.1[&unid].numbers.unwrap().uid == 1);
    check_since(
        &world,
        (owner, Folder::Drafts),
        &drafts_before,
        &left,
        false,
    );
    check_since(&world, (owner, Folder::Trash), &trash_before, &came, false);
    let gone = world
        .store
        .read(|snapshot| changes_since(snapshot, owner, Folder::Drafts, drafts_before.0.modseq));
    let gone: Vec<_> = gone.unwrap().vanished.iter().map(|gone| gone.uid).collect();
    assert_eq!(gone, [Some(1), Some(2)]);
}

#[test]
fn a_message_that_is_named_twice_is_counted_once() {
    let mut world = World::new();
    let owner = USERS[0];
    let text = message(owner, false, false);
    for _ in 0..2 {
        let to = BTreeSet::from([owner.to_owned()]);
        let message = text.clone();
        let parcel = RoutedMessage { message, to };
        world
            .change(owner, |context| send(context, &parcel))
            .unwrap();
    }
    let inbox = world.unids(owner, Folder::Inbox);
    let (first, second) = (inbox[0], inbox[1]);
    for (folder, add, remove) in [
        (Folder::Archive, [first; 2], [second; 2]),
        (Folder::Inbox, [first; 2], [second; 2]),
        (Folder::Inbox, [first; 2], [first; 2]),
    ] {
        let changed = world.change(owner, |context| {
            add_and_remove(context, folder, &add, &remove)
        });
        changed.unwrap();
        world.check();
    }
    assert!(world.unids(owner, Folder::Inbox).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A folder's counters match a scan; each message has its bytes; a shared body exists exactly
    /// as long as it has a holder: after each step of any concurrent operations.
    #[test]
    fn what_is_counted_and_kept_is_what_is_there(
        moments in prop::collection::vec(
            prop::collection::vec((0..USERS.len(), deed()), 1..4),
            1..30,
        ),
    ) {
        let mut world = World::new();
        for deeds in &moments {
            at_once(&mut world, deeds);
            world.check();
        }
    }

    /// The changes since a known state of a folder give its current state, after any operations,
    /// also concurrent ones.
    #[test]
    fn what_has_changed_since_makes_the_old_list_the_new_one(
        moments in prop::collection::vec(
            prop::collection::vec((0..USERS.len(), deed()), 1..4),
            1..20,
        ),
    ) {
        let mut world = World::new();
        let mut history: Vec<BTreeMap<&str, BTreeMap<Folder, Seen>>> = Vec::new();
        let mut cleared: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, deeds) in moments.iter().enumerate() {
            let all = USERS.iter().map(|owner| (*owner, seen(&world, owner)));
            history.push(all.collect());
            at_once(&mut world, deeds);
            for (owner, _) in deeds.iter().filter(|(_, deed)| matches!(deed, Deed::Clear)) {
                cleared.insert(USERS[*owner], at);
            }
            for owner in USERS {
                let now = seen(&world, owner);
                for then in [at, at / 2, 0] {
                    let was_cleared = cleared.get(owner).is_some_and(|cleared| *cleared >= then);
                    for (folder, before) in &history[then][owner] {
                        if let Some(now) = now.get(folder) {
                            check_since(&world, (owner, *folder), before, now, was_cleared);
                        }
                    }
                }
            }
        }
    }

    /// Any number of concurrent requests send a draft once: one batch passes, and the repeated
    /// decisions find no draft.
    #[test]
    fn a_draft_is_sent_once(
        to in people(),
        is_large: bool,
        is_blind: bool,
        attempts in 2..5_usize,
        first in 0..5_usize,
    ) {
        let mut world = World::new();
        let owner = USERS[0];
        let text = message(owner, is_large, is_blind);
        let draft = world.change(owner, |context| drafts::save(context, &text)).unwrap().unwrap();
        let parcel = RoutedMessage { message: text, to: names(&to) };
        let mut decided = Vec::new();
        for _ in 0..attempts {
            decided.push(world.decide(owner, |context| drafts::send(context, (draft, None), &parcel)).unwrap());
        }
        // Any of them may be first.
        decided.rotate_left(first % attempts);
        let passed: Vec<bool> = decided.into_iter().map(|decision| match world.commit(decision) {
            Ok(()) => true,
            Err(CommitError::Conflict { .. }) => false,
            Err(error) => panic!("{error}"),
        }).collect();
        prop_assert_eq!(passed.iter().filter(|passed| **passed).count(), 1);
        prop_assert!(passed[0]);
        let again = world.decide(owner, |context| drafts::send(context, (draft, None), &parcel));
        prop_assert_eq!(again.unwrap_err().reason(), Some(Reason::NotFound));
        prop_assert!(world.unids(owner, Folder::Drafts).is_empty());
        prop_assert_eq!(world.unids(owner, Folder::Sent).len(), 1);
        for (number, user) in USERS.iter().enumerate() {
            let expected = usize::from(to.contains(&number));
            prop_assert_eq!(world.unids(user, Folder::Inbox).len(), expected, "{}", user);
        }
        world.check();
    }

    /// Concurrent operations on a draft neither send it twice nor restore it.
    #[test]
    fn a_draft_that_is_sent_is_no_draft_any_more(to in people(), is_large: bool, is_first: bool) {
        let mut world = World::new();
        let owner = USERS[0];
        let text = message(owner, is_large, false);
        let draft = world.change(owner, |context| drafts::save(context, &text)).unwrap().unwrap();
        let parcel = RoutedMessage { message: text.clone(), to: names(&to) };
        let sent = world.decide(owner, |context| drafts::send(context, (draft, None), &parcel)).unwrap();
        let others = [
            world.decide(owner, |context| drafts::rewrite(context, (draft, None), &text)).unwrap(),
            world.decide(owner, |context| mark(context, &[draft], false)).unwrap(),
            world.decide(owner, |context| delete(context, &[draft], false)).unwrap(),
            world.decide(owner, |context| delete(context, &[draft], true)).unwrap(),
        ];
        for other in others {
            // Each starts with the same draft.
            prop_assert!(!other.batch.is_empty());
            let mut fresh = World::new();
            let made = fresh.change(owner, |context| drafts::save(context, &text)).unwrap();
            prop_assert_eq!(made, Some(draft));
            let sent = Decision { batch: sent.batch.clone(), ..Decision::default() };
            let (first, second) = if is_first { (sent, other) } else { (other, sent) };
            prop_assert!(fresh.commit(first).is_ok());
            let too_late = matches!(fresh.commit(second), Err(CommitError::Conflict { index: 0 }));
            prop_assert!(too_late);
            let delivered = usize::from(is_first);
            prop_assert_eq!(fresh.unids(owner, Folder::Sent).len(), delivered);
            let user = USERS[*to.first().unwrap()];
            prop_assert_eq!(fresh.unids(user, Folder::Inbox).len(), delivered);
            fresh.check();
        }
    }
}
