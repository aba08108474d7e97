//! One PostgreSQL for all tests of a process, and a schema of its own for each.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use groupware_postgres::Database;
use plimsoll_tests::postgres::Postgres;

pub(crate) fn server() -> Option<&'static Postgres> {
    static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
    SERVER.get_or_init(Postgres::start).as_ref()
}

/// A schema without a store.
pub(crate) fn place() -> Option<Database> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let address = format!("{}?schema=store{number}", server()?.address());
    Some(Database::parse(&address).unwrap())
}
