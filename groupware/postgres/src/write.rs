//! Stores a group as one transaction in two exchanges.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join4};
use groupware_store::{Batch, GROUP_BATCHES, Outcome, StoreError};
use tokio::time::timeout;
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use crate::clock::Deadline;
use crate::error::{kind, late};
use crate::group::{Found, Wanted, Writes};
use crate::session::Session;
use crate::sql;

/// The class of the partition locks: "PLIM".
const LOCK_CLASS: i32 = 0x504C_494D;
/// The maximum bytes of records per statement; at least one record.
const PUT_BYTES: usize = 8 << 20;
/// The bytes for which a commit gets one more second.
const BYTES_PER_S: usize = 4 << 20;

/// The prepared statements of a writing session.
pub(crate) struct Statements {
    lock: Statement,
    number: Statement,
    look: Statement,
    empty: Statement,
    ranges: Statement,
    delete: Statement,
    put: Statement,
    mark: Statement,
}

impl Statements {
    pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
        let (first, second) = join(
            join4(
                client.prepare(sql::LOCK),
                client.prepare(sql::NUMBER),
                client.prepare(sql::LOOK),
                client.prepare(sql::EMPTY),
            ),
            join4(
                client.prepare(sql::DELETE_RANGES),
                client.prepare(sql::DELETE),
                client.prepare(sql::PUT),
                client.prepare(sql::MARK),
            ),
        )
        .await;
        Ok(Self {
            lock: first.0?,
            number: first.1?,
            look: first.2?,
            empty: first.3?,
            ranges: second.0?,
            delete: second.1?,
            put: second.2?,
            mark: second.3?,
        })
    }
}

/// The state of a session after a try that stored nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The server has confirmed the end of the transaction: the next one may start.
    Free,
    /// The transaction may still be open.
    Unclear,
}

/// The result of one try to store a group.
pub(crate) enum Attempt {
    /// There was nothing to store.
    Nothing(Vec<Outcome>),
    Stored(Vec<Outcome>),
    /// Not stored: the server returned an error, or was lost before the commit was sent.
    Refused(Error, After),
    /// Not stored: too little time was left after the lookup.
    NoTime(After),
    /// Not stored: no response, and the session is closed.
    Late,
    /// Possibly stored, with these outcomes.
    InDoubt(Vec<Outcome>, StoreError),
}

/// Tries to store a group under a number of the writer, until the deadline. The second exchange
/// doesn't start if less than the minimum time is left.
pub(crate) async fn attempt(
    session: &Session,
    statements: &Statements,
    group: &[&Batch],
    (node, number): (i64, i64),
    (deadline, least): (Deadline, Duration),
) -> Attempt {
    let wanted = Wanted::of(group);
    let looked = timeout(
        deadline.left().max(least),
        look(&session.client, statements, &wanted),
    );
    let looked = looked.await;
    let (base, found) = match looked {
        Ok(Ok(looked)) => looked,
        Ok(Err(error)) => {
            return Attempt::Refused(error, roll_back(session, least).await);
        }
        Err(_) => return Attempt::Late,
    };
    let first = base.unsigned_abs() * GROUP_BATCHES as u64;
    let (outcomes, writes) = wanted.judge(found, group, first);
    if writes.is_empty() {
        let over = timeout(least, session.client.batch_execute(sql::ROLLBACK)).await;
        return match over {
            Ok(Ok(())) => Attempt::Nothing(outcomes),
            Ok(Err(error)) => Attempt::Refused(error, After::Unclear),
            Err(_) => Attempt::Late,
        };
    }
    let left = deadline.left();
    if left < least {
        return Attempt::NoTime(roll_back(session, least).await);
    }
    session.warned();
    let more = Duration::from_secs((writes.bytes() / BYTES_PER_S) as u64);
    let stored = store(&session.client, statements, &writes, (node, number));
    match timeout(left + more, stored).await {
        Err(_) => Attempt::InDoubt(outcomes, late()),
        Ok(Err(error)) if is_rolled_back(&error) => Attempt::Refused(error, After::Free),
        Ok(Err(error)) => Attempt::InDoubt(outcomes, kind(error)),
        // A commit that gave up waiting for a standby still reports COMMIT.
        Ok(Ok(())) => match session.warned() {
            Some(warning) => Attempt::InDoubt(outcomes, warning),
            None => Attempt::Stored(outcomes),
        },
    }
}

/// Rolls back a transaction that stored nothing. Without a response, it ends on receipt or with the session.
async fn roll_back(session: &Session, least: Duration) -> After {
    match timeout(least, session.client.batch_execute(sql::ROLLBACK)).await {
        Ok(Ok(())) => After::Free,
        _ => After::Unclear,
    }
}

/// Returns true if the server has confirmed the rollback and still runs.
fn is_rolled_back(error: &Error) -> bool {
    let said = error.as_db_error();
    said.and_then(|said| said.parsed_severity()) == Some(Severity::Error)
}

/// The first exchange: locks, a number, and the stored records that the group looks up.
async fn look(
    client: &Client,
    statements: &Statements,
    wanted: &Wanted<'_>,
) -> Result<(i64, Vec<Found>), Error> {
    let to_lock: [&(dyn ToSql + Sync); 3] = [&LOCK_CLASS, &wanted.locks, &wanted.are_exclusive];
    let to_find: [&(dyn ToSql + Sync); 3] = [&wanted.partitions, &wanted.keys, &wanted.with_values];
    let found = async {
        match wanted.keys.is_empty() {
            true => Ok(Vec::new()),
            false => client.query(&statements.look, &to_find).await,
        }
    };
    let (begun, locked, number, found) = join4(
        client.batch_execute(sql::BEGIN_WRITE),
        client.execute(&statements.lock, &to_lock),
        client.query_one(&statements.number, &[]),
        found,
    )
    .await;
    begun?;
    locked?;
    let number = number?.try_get(0)?;
    let found = found?.iter().map(record).collect::<Result<_, _>>()?;
    Ok((number, found))
}

fn record(row: &Row) -> Result<Found, Error> {
    let (at, revision): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let value: Option<&[u8]> = row.try_get(2)?;
    Ok(Found {
        // One-based.
        at: usize::try_from(at - 1).unwrap_or(usize::MAX),
        revision: revision.unsigned_abs(),
        value: value.map(Bytes::copy_from_slice),
    })
}

/// The second exchange: all changes, the marker, and the commit. Only the first error counts: later
/// ones follow from it, or report the end of the transaction.
async fn store(
    client: &Client,
    statements: &Statements,
    writes: &Writes<'_>,
    (node, number): (i64, i64),
) -> Result<(), Error> {
    let ranges = Columns::of(&writes.ranges);
    let deletes = writes.deletes.iter();
    let deletes: (Vec<&[u8]>, Vec<&[u8]>) =
        deletes.map(|(partition, key)| (*partition, &**key)).unzip();
    let puts: Vec<Puts<'_>> = slices(&writes.puts).map(Puts::of).collect();
    let empty: [&(dyn ToSql + Sync); 1] = [&writes.emptied];
    let to_range: [&(dyn ToSql + Sync); 3] = [&ranges.0, &ranges.1, &ranges.2];
    let to_delete: [&(dyn ToSql + Sync); 2] = [&deletes.0, &deletes.1];
    let to_put: Vec<[&(dyn ToSql + Sync); 4]> = puts.iter().map(Puts::parameters).collect();
    let mark: [&(dyn ToSql + Sync); 2] = [&node, &number];
    let mut sent: Vec<Sent<'_>> = Vec::new();
    let mut send = |statement, parameters| {
        sent.push(Box::pin(async move {
            client.execute(statement, parameters).await.map(drop)
        }));
    };
    if !writes.emptied.is_empty() {
        send(&statements.empty, &empty[..]);
    }
    if !writes.ranges.is_empty() {
        send(&statements.ranges, &to_range[..]);
    }
    if !writes.deletes.is_empty() {
        send(&statements.delete, &to_delete[..]);
    }
    for parameters in &to_put {
        send(&statements.put, &parameters[..]);
    }
    send(&statements.mark, &mark[..]);
    sent.push(Box::pin(client.batch_execute(sql::COMMIT)));
    in_order(sent).await
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// Sends all requests in order: polling a request once sends it.
async fn in_order(mut sent: Vec<Sent<'_>>) -> Result<(), Error> {
    let mut answers: Vec<Option<Result<(), Error>>> = sent.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut is_over = true;
        for (request, answer) in sent.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match request.as_mut().poll(context) {
                    Poll::Ready(done) => *answer = Some(done),
                    Poll::Pending => is_over = false,
                }
            }
        }
        match is_over {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}

struct Columns<'a>(Vec<&'a [u8]>, Vec<&'a [u8]>, Vec<&'a [u8]>);

impl<'a> Columns<'a> {
    fn of(rows: &[(&'a [u8], &'a [u8], &'a [u8])]) -> Self {
        let mut columns = Self(Vec::new(), Vec::new(), Vec::new());
        for (first, second, third) in rows {
            columns.0.push(first);
            columns.1.push(second);
            columns.2.push(third);
        }
        columns
    }
}

type Put<'a> = ((&'a [u8], Cow<'a, [u8]>), u64, Bytes);

/// Records by column, as a statement takes them.
#[derive(Default)]
struct Puts<'a> {
    partitions: Vec<&'a [u8]>,
    keys: Vec<&'a [u8]>,
    revisions: Vec<i64>,
    values: Vec<&'a [u8]>,
}

impl<'a> Puts<'a> {
    fn of(records: &'a [Put<'a>]) -> Self {
        let mut puts = Self::default();
        for ((partition, key), revision, value) in records {
            puts.partitions.push(partition);
            puts.keys.push(key);
            puts.revisions.push(revision.cast_signed());
            puts.values.push(value);
        }
        puts
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.partitions, &self.keys, &self.revisions, &self.values]
    }
}

/// Splits the records into slices of one statement each.
fn slices<'a>(mut records: &'a [Put<'a>]) -> impl Iterator<Item = &'a [Put<'a>]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |(_, _, value): &&Put<'_>| {
            bytes += value.len();
            bytes <= PUT_BYTES
        };
        let count = records.iter().take_while(fits).count().max(1);
        let (part, rest) = records.split_at_checked(count)?;
        records = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;
    use plimsoll_tests::postgres::Postgres;

    use super::*;
    use crate::hosts::Hosts;
    use crate::session::Role;
    use crate::{Database, PostgresOptions, open};

    /// If other sessions held the group's locks for long, the server still responds, and the session can be reused.
    #[tokio::test]
    async fn a_session_whose_look_took_long_goes_on() {
        let Some(server) = Postgres::start() else {
            return;
        };
        let database = Database::parse(&server.address()).unwrap();
        drop(
            open(
                &database,
                &StoreOptions::default(),
                &PostgresOptions::default(),
            )
            .unwrap(),
        );
        let patience = Duration::from_secs(120);
        let session = Session::open(&Hosts::of(&database), Role::Writer, patience).await;
        let session = session.unwrap();
        let statements = Statements::prepare(&session.client).await.unwrap();
        let mut batch = Batch::new();
        batch.assert_absent("p", "k").put("p", "k", "v");
        let group = [&batch];
        // The remaining time is below the minimum, however fast the lookup was.
        let none = (Deadline::after(patience), 2 * patience);
        let tried = attempt(&session, &statements, &group, (7, 1), none).await;
        assert!(matches!(tried, Attempt::NoTime(After::Free)));
        let enough = (Deadline::after(patience), Duration::from_secs(1));
        let tried = attempt(&session, &statements, &group, (7, 1), enough).await;
        assert!(matches!(tried, Attempt::Stored(_)));
    }

    #[test]
    fn large_records_go_by_several_statements() {
        let record = |bytes: usize| {
            let place = (&b"p"[..], Cow::Borrowed(&b"k"[..]));
            (place, 1, Bytes::from(vec![0; bytes]))
        };
        let check = |sizes: &[usize], expected: &[usize]| {
            let records: Vec<_> = sizes.iter().map(|bytes| record(*bytes)).collect();
            let parts: Vec<_> = slices(&records).map(<[Put<'_>]>::len).collect();
            assert_eq!(parts, expected);
        };
        check(&[], &[]);
        check(&[0, 1, 2], &[3]);
        check(&[PUT_BYTES, 1, PUT_BYTES + 1, 5, 5], &[1, 1, 1, 2]);
    }
}
