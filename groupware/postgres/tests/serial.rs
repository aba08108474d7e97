//! The law of group commit on PostgreSQL, through one to eight handles on one database.

use groupware_store::Store;
use proptest::prelude::*;

use crate::law::{check, drafts, run};
use crate::place::{place, server};
use crate::support::{few, store};

#[path = "../../store/tests/contract/serial.rs"]
mod law;
mod place;
mod support;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_interleaving_equals_a_serial_order(drafts in drafts(8), handles in 1_usize..=8) {
        if server().is_none() {
            return Ok(());
        }
        let at = place().unwrap();
        let shared = few().shared();
        let stores: Vec<Store> = (0..handles).map(|_| store(&at, &shared)).collect();
        let logs = run(&stores, &drafts);
        for store in &stores {
            check(store, &logs)?;
        }
        drop(stores);
        check(&store(&at, &few()), &logs)?;
    }
}
