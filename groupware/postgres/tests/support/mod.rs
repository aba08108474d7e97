//! Stores as tests open them.

use groupware_postgres::{Database, PostgresOptions, open};
use groupware_store::{Store, StoreOptions};

pub(crate) fn store(at: &Database, how: &PostgresOptions) -> Store {
    open(at, &StoreOptions::default(), how).unwrap()
}

/// Few sessions, since many tests run concurrently.
pub(crate) fn few() -> PostgresOptions {
    PostgresOptions::default().readers(3)
}
