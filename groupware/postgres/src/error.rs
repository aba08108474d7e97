//! Errors of opening a database, and the classification of PostgreSQL's errors into the store's kinds.

use std::fmt;
use std::sync::Arc;

use groupware_store::{CommitError, StoreError};
use tokio_postgres::error::SqlState;

/// The reason why a database could not be opened as a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The database can't be reached, rejects the user, or failed.
    #[error("cannot open {at}")]
    Away {
        /// The database, without its password.
        at: String,
        /// The engine's error.
        source: StoreError,
    },
    /// The server's configuration would lose data that the store must keep.
    #[error("{at} can't be trusted with data: {what}")]
    Unfit {
        /// The database, without its password.
        at: String,
        /// The problem, and its solution.
        what: String,
    },
    /// Another server is using it.
    #[error("{at} is in use by another server")]
    InUse {
        /// The database, without its password.
        at: String,
    },
    /// Servers of an earlier version use it, and can't read what this one is going to write.
    #[error("{at} is in use by a server of a version too old to be beside this one")]
    InUseByOlder {
        /// The database, without its password.
        at: String,
    },
    /// A later version has written records in formats unknown to this one.
    #[error(
        "{at}: its records have forms up to {found}, and this program reads forms up to {known}"
    )]
    NewerForms {
        /// The database, without its password.
        at: String,
        /// The highest format number in the store.
        found: u32,
        /// The highest format number that this program reads.
        known: u32,
    },
    /// The database has no store, and must not get one.
    #[error("{at} holds no Plimsoll store")]
    Nothing {
        /// The database, without its password.
        at: String,
    },
    /// The store was written by a later version of the program.
    #[error("{at} has schema version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The database, without its password.
        at: String,
        /// The schema version found.
        found: i32,
        /// The newest version that this program supports.
        known: i32,
    },
}

/// No response within the maximum wait.
#[derive(Debug, Default)]
struct Late {
    /// An error of a host that did respond, if it needs a fix.
    another: Option<StoreError>,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.another {
            None => "no answer in time",
            Some(_) => "no answer in time from one host, and another refuses",
        })
    }
}

impl std::error::Error for Late {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let another = self.another.as_ref();
        another.map(|another| another as &(dyn std::error::Error + 'static))
    }
}

/// An error that consists of a message only.
#[derive(Debug)]
pub(crate) struct MessageError(pub(crate) String);

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MessageError {}

/// The error for a missing response.
pub(crate) fn late() -> StoreError {
    StoreError::Away(Arc::new(Late::default()))
}

/// Combines the errors of a database's hosts into one, when none can be used. A silent host may be
/// the one that accepts writes. So another host's error, such as a standby's wrong password, isn't
/// the database's result, but is part of the message.
pub(crate) fn of_hosts(failures: Vec<StoreError>) -> StoreError {
    let is_silent = failures.iter().any(is_late);
    let (passing, lasting): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(StoreError::is_passing);
    let another = lasting.into_iter().next();
    match (is_silent, another) {
        (true, another) => StoreError::Away(Arc::new(Late { another })),
        (false, Some(lasting)) => lasting,
        (false, None) => passing.into_iter().next().unwrap_or_else(late),
    }
}

/// Returns true for the error of a missing response.
pub(crate) fn is_late(error: &StoreError) -> bool {
    matches!(error, StoreError::Away(cause) if cause.is::<Late>())
}

/// Classifies PostgreSQL's error.
pub(crate) fn kind(error: tokio_postgres::Error) -> StoreError {
    match is_away(&error) {
        true => StoreError::Away(Arc::new(error)),
        false => StoreError::Database(Arc::new(error)),
    }
}

/// Classifies the error of a group that was not stored.
pub(crate) fn of_write(error: tokio_postgres::Error) -> CommitError {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => CommitError::Full,
        _ => CommitError::Store(kind(error)),
    }
}

/// Returns true if a retry may store the group: it conflicted with another transaction, or lost its
/// connection before the commit was sent.
pub(crate) fn is_worth_another_try(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    let is_in_the_way = code.is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    });
    is_in_the_way || !is_lock(error) && is_away(error)
}

/// Returns true if another session held a lock for too long.
pub(crate) fn is_held(error: &StoreError) -> bool {
    let StoreError::Away(cause) = error else {
        return false;
    };
    let cause = cause.downcast_ref::<tokio_postgres::Error>();
    cause.is_some_and(is_lock)
}

/// The same for an error of the server.
pub(crate) fn is_lock(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Returns true if the error is the server's own.
pub(crate) fn is_said(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some()
}

/// Returns true if the error comes from a working server: it has no room for another connection, or
/// a lock is held. A server that starts or shuts down doesn't count.
pub(crate) fn is_answer(error: &StoreError) -> bool {
    let StoreError::Away(cause) = error else {
        return true;
    };
    let cause = cause.downcast_ref::<tokio_postgres::Error>();
    cause.is_some_and(|error| {
        let class = error.code().and_then(|code| code.code().get(..2));
        class == Some("53") || is_lock(error)
    })
}

/// Returns true if the error is about the connection or the server's state, not about the statement.
pub(crate) fn is_away(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        // The connection failed. Otherwise the server's message was malformed.
        return error.is_closed() || has_io(error);
    };
    // Connections, resources other than the disk, and operator intervention (57): by their class.
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "57")
        || class == "53" && *code != SqlState::DISK_FULL
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || is_lock(error)
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
}

fn has_io(error: &tokio_postgres::Error) -> bool {
    let mut last: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = last {
        if error.is::<std::io::Error>() {
            return true;
        }
        last = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use plimsoll_tests::postgres::Postgres;
    use tokio_postgres::NoTls;

    use super::*;

    /// Returns the error of a connection attempt.
    fn refusal(address: &str) -> StoreError {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let connected = runtime.unwrap().block_on(async {
            let connected = tokio_postgres::connect(address, NoTls).await;
            connected.map(drop)
        });
        kind(connected.unwrap_err())
    }

    #[test]
    fn who_has_no_room_is_there_and_who_comes_or_takes_no_connection_is_not() {
        let nobody = refusal("postgres://me@127.0.0.1:1/none");
        assert!(nobody.is_passing() && !is_answer(&nobody), "{nobody:?}");
        assert!(!is_answer(&late()));
        let Some(server) = Postgres::start() else {
            return;
        };
        server
            .sql("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
            .unwrap();
        let full = refusal(&server.address().replacen("postgres@", "crowd@", 1));
        assert!(full.is_passing() && is_answer(&full), "{full:?}");
        let wrong = refusal(&server.address().replacen("postgres@", "stranger@", 1));
        assert!(!wrong.is_passing() && is_answer(&wrong), "{wrong:?}");
    }
}
