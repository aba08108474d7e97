//! Checks that a database stores data durably, and whether it has a store.

use std::collections::BTreeMap;

use groupware_store::StoreError;

use crate::address::Database;
use crate::error::{OpenError, kind};
use crate::session::Session;
use crate::sql;

/// The oldest supported version of PostgreSQL.
const OLDEST: u32 = 15;
/// A group takes at most as many locks as there are partition numbers, and a few of its own. The
/// server's lock table has room for this many times its number of connections.
const LOCKS: u32 = 64;
/// The locks that all writers together may need.
const ALL_LOCKS: u32 = 2200;

/// Checks the server's settings, and returns its maximum number of connections.
pub(crate) async fn check_server(
    session: &Session,
    database: &Database,
) -> Result<usize, OpenError> {
    let rows = session.client.query(sql::SETTINGS, &[]).await;
    let rows = rows.map_err(|error| away(database, kind(error)))?;
    let settings: BTreeMap<String, String> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    match unfit(&settings) {
        Some(what) => Err(OpenError::Unfit {
            at: database.to_string(),
            what,
        }),
        None => {
            let connections = settings.get("max_connections");
            let connections = connections.and_then(|text| text.parse().ok());
            Ok(connections.unwrap_or_default())
        }
    }
}

/// Returns the first problem in a server's settings, with its solution.
fn unfit(settings: &BTreeMap<String, String>) -> Option<String> {
    let setting = |name: &str| settings.get(name).map_or("", String::as_str);
    let number = |name: &str| setting(name).parse::<u32>().unwrap_or_default();
    let version = number("server_version_num") / 10_000;
    if version < OLDEST {
        return Some(format!(
            "it is PostgreSQL {version}, and at least {OLDEST} is needed"
        ));
    }
    for (name, why) in [
        (
            "fsync",
            "a power failure would lose what was acknowledged, or all of it",
        ),
        (
            "full_page_writes",
            "a power failure could leave pages half written",
        ),
    ] {
        if setting(name) != "on" {
            return Some(format!(
                "its server runs with {name} = off: {why}. Set {name} = on"
            ));
        }
    }
    if !["on", "remote_apply"].contains(&setting("synchronous_commit")) {
        return Some("synchronous_commit can't be set to on".to_owned());
    }
    if setting("transaction_read_only") != "off" {
        return Some(
            "it takes no writes: this is a standby, or it is set to be read only".to_owned(),
        );
    }
    let locks = number("max_locks_per_transaction");
    if locks < LOCKS || u64::from(locks) * u64::from(number("max_connections")) < ALL_LOCKS.into() {
        return Some(format!(
            "max_locks_per_transaction = {locks} leaves too little room for the locks of large \
             changes. Set it to 256"
        ));
    }
    None
}

fn away(database: &Database, source: StoreError) -> OpenError {
    OpenError::Away {
        at: database.to_string(),
        source,
    }
}

/// Creates the store if it is missing and that is allowed, and checks its version.
pub(crate) async fn check_store(
    session: &Session,
    database: &Database,
    as_it_is: bool,
) -> Result<(), OpenError> {
    let failed = |error| away(database, kind(error));
    let at = || database.to_string();
    if tables(session, database).await?.is_empty() {
        if as_it_is {
            return Err(OpenError::Nothing { at: at() });
        }
        make(session, database).await?;
    }
    let found = tables(session, database).await?;
    if found.len() < 4 {
        return Err(OpenError::Unfit {
            at: at(),
            what: format!(
                "the schema \"{}\" holds some tables of a store and not all. Name another one by \
                 ?schema=, or drop it",
                database.schema
            ),
        });
    }
    if let Some((name, _)) = found.iter().find(|(_, lasts)| !lasts) {
        return Err(OpenError::Unfit {
            at: at(),
            what: format!(
                "{name} is unlogged: a crash of the server empties it. ALTER TABLE {name} SET LOGGED"
            ),
        });
    }
    let row = session.client.query_opt(sql::VERSION, &[]).await;
    let found: i32 = row.map_err(failed)?.map_or(0, |row| row.get(0));
    let known = sql::SCHEMA_VERSION;
    match (sql::SILENT_VERSION..=known).contains(&found) {
        true => Ok(()),
        false => Err(OpenError::Newer {
            at: at(),
            found,
            known,
        }),
    }
}

async fn tables(session: &Session, database: &Database) -> Result<Vec<(String, bool)>, OpenError> {
    let rows = session.client.query(sql::TABLES, &[&database.schema]).await;
    let rows = rows.map_err(|error| away(database, kind(error)))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Concurrent servers are possible: one creates the store, and the others find it.
async fn make(session: &Session, database: &Database) -> Result<(), OpenError> {
    let failed = |error| away(database, kind(error));
    let schema = &database.schema;
    let sql = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(0, 0);
         DO $make$ BEGIN
             IF to_regnamespace('\"{schema}\"') IS NULL THEN
                 CREATE SCHEMA \"{schema}\";
             END IF;
             IF to_regclass('\"{schema}\".store') IS NULL THEN
                 {tables} INSERT INTO store VALUES ({version});
             END IF;
         END $make$; COMMIT;",
        tables = sql::SCHEMA,
        version = sql::SCHEMA_VERSION,
    );
    let made = session.client.batch_execute(&sql).await;
    if made.is_err() {
        let _ = session.client.batch_execute(sql::ROLLBACK).await;
    }
    made.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_lose_data_are_told_in_words() {
        let good = [
            ("server_version_num", "150018"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            ("transaction_read_only", "off"),
            ("max_locks_per_transaction", "64"),
            ("max_connections", "100"),
        ];
        let with = |name: &str, value: &str| {
            let settings = good.iter().map(|(of, is)| match *of == name {
                true => (name.to_owned(), value.to_owned()),
                false => ((*of).to_owned(), (*is).to_owned()),
            });
            unfit(&settings.collect())
        };
        assert_eq!(with("", ""), None);
        assert_eq!(with("synchronous_commit", "remote_apply"), None);
        for (name, value, said) in [
            ("server_version_num", "140009", "PostgreSQL 14"),
            ("fsync", "off", "Set fsync = on"),
            ("full_page_writes", "off", "Set full_page_writes = on"),
            ("synchronous_commit", "local", "synchronous_commit"),
            ("transaction_read_only", "on", "standby"),
            ("max_locks_per_transaction", "10", "Set it to 256"),
            ("max_connections", "20", "Set it to 256"),
        ] {
            let found = with(name, value).unwrap_or_default();
            assert!(found.contains(said), "{name}: {found}");
        }
    }
}
