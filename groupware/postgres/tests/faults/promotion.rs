//! The primary dies, and its standby takes over.

use std::time::{Duration, Instant};

use groupware_postgres::Database;
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::wait_until;

use crate::at;
use crate::history::{patient, wrong};
use crate::meanwhile::{after_more, count, meanwhile, stores};
use crate::support::store;

const LIMIT: Duration = Duration::from_secs(120);

/// A primary and its standby.
pub(crate) fn two() -> Option<(Postgres, Postgres)> {
    let first = Postgres::start()?;
    let second = first.standby();
    Some((first, second))
}

/// The database, on the host that accepts writes.
pub(crate) fn both(first: &Postgres, second: &Postgres) -> Database {
    Database::parse(&Postgres::address_of(&[first, second])).unwrap()
}

/// Nothing that only the primary has when it dies was acknowledged: commits wait for the standby.
#[test]
fn what_was_acknowledged_is_there_when_the_standby_takes_over() {
    let Some((first, second)) = two() else { return };
    first.wait_for_standbys();
    let stores = stores(&both(&first, &second), 3);
    let told = meanwhile(&stores, || {
        after_more(&stores, 50);
        first.hold_up_standbys();
        wait_until(LIMIT, "a commit that waits for the standby", || {
            let waiting = first.sql(
                "SELECT count(*) FROM pg_stat_activity
                     WHERE application_name = 'plimsoll' AND wait_event = 'SyncRep'",
            );
            waiting.is_some_and(|count| count != "0")
        });
        first.kill();
        #[expect(
            clippy::disallowed_methods,
            reason = "what it took is told, not judged"
        )]
        let died = Instant::now();
        second.promote();
        after_more(&stores, 1);
        println!("from the death to the first commit: {:?}", died.elapsed());
        after_more(&stores, 50);
    });
    let found = wrong(&store(&at(&second), &patient()), &told);
    assert_eq!(found, Vec::<String>::new());
    assert!(count(&told).0 > 100, "{:?}", count(&told));
}
