//! How many requests a read of an account sends to a remote store.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::support::{USERS, World};
use groupware_mail::{Folder, RoutedMessage, all_folders, find, folders, move_to, send};
use groupware_store::{PrefetchSet, Record, Snapshot, StoreError, Walk};

/// A snapshot that counts the requests to a remote store.
struct RemoteStore<'a> {
    near: &'a dyn Snapshot,
    keys: RefCell<BTreeSet<Vec<u8>>>,
    ranges: RefCell<BTreeSet<Vec<u8>>>,
    exchanges: Cell<usize>,
    /// Records that were read one by one.
    gets: Cell<usize>,
}

impl RemoteStore<'_> {
    fn asks(&self, is_there: bool) {
        self.exchanges
            .set(self.exchanges.get() + usize::from(!is_there));
    }
}

impl Snapshot for RemoteStore<'_> {
    fn is_remote(&self) -> bool {
        true
    }

    fn prefetch(&self, soon: &PrefetchSet) -> Result<(), StoreError> {
        self.asks(false);
        let keys = soon.keys.iter().map(|(_, key)| key.clone());
        self.keys.borrow_mut().extend(keys);
        let ranges = soon.ranges.iter().map(|(_, from, _)| from.clone());
        self.ranges.borrow_mut().extend(ranges);
        Ok(())
    }

    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: Walk<'_>,
    ) -> Result<(), StoreError> {
        self.asks(false);
        self.near.walk(after, limit, visit)
    }

    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        self.asks(self.keys.borrow().contains(key));
        self.gets.set(self.gets.get() + 1);
        self.near.get(partition, key)
    }

    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.asks(self.ranges.borrow().contains(from));
        self.near.scan(partition, from, to, limit, visit)
    }
}

#[test]
fn a_mailbox_of_many_folders_takes_two_exchanges() {
    let mut world = World::new();
    let owner = USERS[0];
    let mut last = None;
    for number in 0..50 {
        let name = format!("folder {number}");
        let made = world.change(owner, |context| folders::create(context, &name));
        last = made.unwrap();
    }
    let parcel = RoutedMessage {
        message: "Subject: Plan\r\n\r\ntext\r\n".into(),
        to: BTreeSet::from([owner.to_owned()]),
    };
    let sent = world.change(owner, |context| send(context, &parcel));
    sent.unwrap();
    let unid = world.unids(owner, Folder::Inbox)[0];
    let counted = |look: &dyn Fn(&dyn Snapshot)| {
        let count: Result<_, StoreError> = world.store.read(|snapshot| {
            let far = RemoteStore {
                near: snapshot,
                keys: RefCell::default(),
                ranges: RefCell::default(),
                exchanges: Cell::default(),
                gets: Cell::default(),
            };
            look(&far);
            Ok((far.exchanges.get(), far.gets.get()))
        });
        count.unwrap()
    };
    let lists = |snapshot: &dyn Snapshot| {
        assert_eq!(all_folders(snapshot, owner).unwrap().len(), 55);
    };
    let finds = |snapshot: &dyn Snapshot| assert!(find(snapshot, owner, unid).unwrap().is_some());
    // The counters of each folder and the head of the account are read once.
    assert_eq!((counted(&lists), counted(&finds).0), ((2, 55 + 1), 1));
    let folder = Folder::Own(last.unwrap());
    let moved = world.change(owner, |context| move_to(context, &[unid], folder));
    moved.unwrap();
    let in_own = world.store.read(|snapshot| {
        let far = RemoteStore {
            near: snapshot,
            keys: RefCell::default(),
            ranges: RefCell::default(),
            exchanges: Cell::default(),
            gets: Cell::default(),
        };
        assert!(find(&far, owner, unid).unwrap().is_some());
        Ok::<_, StoreError>(far.exchanges.get())
    });
    assert_eq!(in_own.unwrap(), 2);
}
