//! The law of group commit, on the engines of this crate.

use groupware_store::{Batch, Store, StoreOptions};
use proptest::prelude::*;

use self::law::{check, drafts, run};

#[path = "contract/serial.rs"]
mod law;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_interleaving_equals_a_serial_order_in_memory(drafts in drafts(4)) {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let logs = run(std::slice::from_ref(&store), &drafts);
        check(&store, &logs)?;
    }

    #[test]
    fn any_interleaving_equals_a_serial_order_on_sqlite(
        drafts in drafts(4),
        pending_bytes in prop_oneof![Just(1), 100..4000_usize, Just(1 << 20)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::default().pending_bytes(pending_bytes);
        let store = Store::open_sqlite(folder.path(), options).unwrap();
        let logs = run(std::slice::from_ref(&store), &drafts);
        check(&store, &logs)?;
        drop(store);
        let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
        check(&store, &logs)?;
        // No value is lost, and none is left over.
        prop_assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    }
}

/// Some groups must have more than one batch; otherwise the law was not tested.
#[test]
fn waiting_batches_share_a_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..500_u32)
            .map(|number| {
                let mut batch = Batch::new();
                // Every third batch fails alone, whatever its group.
                if number % 3 == 0 {
                    batch.assert_exists("p", "never");
                }
                batch.put("p", number.to_be_bytes(), "x");
                let store = store.clone();
                async move { store.commit(batch).await }
            })
            .collect();
        let local = tokio::task::LocalSet::new();
        let handles: Vec<_> = tasks
            .into_iter()
            .map(|task| local.spawn_local(task))
            .collect();
        local
            .run_until(async {
                for (number, handle) in handles.into_iter().enumerate() {
                    assert_eq!(handle.await.unwrap().is_err(), number % 3 == 0);
                }
            })
            .await;
    });
    let stats = store.stats();
    assert_eq!(
        (stats.commits, stats.conflicts, stats.failures),
        (333, 167, 0)
    );
    assert!(stats.groups < 250, "{stats:?}");
    assert_eq!(stats.group_sizes.iter().sum::<u64>(), stats.groups);
}
