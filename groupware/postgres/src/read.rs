//! The reading half of the engine: a snapshot is a transaction on a session of its own, which
//! starts with the first query, in the same exchange.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join;
use groupware_store::{Engine, PrefetchSet, Record, Show, Snapshot, StoreError, Walk};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, RowStream, Statement};

use crate::error::{is_said, kind, late};
use crate::pool::{Pool, Reader};
use crate::sql;
use crate::wait::{begin, wait};

/// The number of records of the first page: few, for readers that need the first ones only.
const FIRST_ROWS: usize = 64;
/// The maximum number of records of a page.
const MOST_ROWS: usize = 4096;
/// The maximum bytes of a page, plus its last record.
const PAGE_BYTES: usize = 4 << 20;

/// The maximum number of records of a prefetched range.
const RANGE_RECORDS: usize = 64;

/// The additional time limit of queries over all records.
const FULL_LOOK: Duration = Duration::from_secs(3600);

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Engine for Pool {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        Ok(Box::new(View::open(self)?))
    }

    fn data_bytes(&self) -> Result<u64, StoreError> {
        let bytes: i64 = View::open(self)?.number(sql::SIZE, self.patience())?;
        Ok(bytes.unsigned_abs())
    }

    /// Reads every record completely by way of the index, and counts the records without it.
    fn check(&self) -> Result<Vec<String>, StoreError> {
        let view = View::open(self)?;
        let mut found = 0_i64;
        view.walk(None, usize::MAX, &mut |_, _, _| {
            found += 1;
            ControlFlow::Continue(())
        })?;
        view.asked(view.client().batch_execute(sql::COUNT_BY_TABLE), FULL_LOOK)?;
        let there = view.number(sql::COUNT, FULL_LOOK)?;
        Ok(match found == there {
            true => Vec::new(),
            false => vec![format!(
                "the index leads to {found} records, and the table has {there}: REINDEX TABLE records"
            )],
        })
    }
}

/// Prefetched records, by partition and key.
type Fetched = HashMap<String, HashMap<Vec<u8>, Option<Record>>>;

/// Partition, first key, and first key after.
type Range = (Arc<str>, Vec<u8>, Vec<u8>);
/// Prefetched ranges.
type Ranges = HashMap<(String, Vec<u8>, Vec<u8>), Vec<(Vec<u8>, Record)>>;

/// One transaction.
struct View<'pool> {
    pool: &'pool Pool,
    /// Taken when the transaction ends.
    reader: Option<Reader>,
    has_begun: Cell<bool>,
    /// A query failed: the session must not be reused.
    is_broken: Cell<bool>,
    fetched: RefCell<Fetched>,
    ranges: RefCell<Ranges>,
}

impl<'pool> View<'pool> {
    fn open(pool: &'pool Pool) -> Result<Self, StoreError> {
        Ok(Self {
            reader: Some(pool.take()?),
            pool,
            has_begun: Cell::new(false),
            is_broken: Cell::new(false),
            fetched: RefCell::default(),
            ranges: RefCell::default(),
        })
    }

    fn reader(&self) -> &Reader {
        self.reader
            .as_ref()
            .expect("the session is taken only by drop")
    }

    fn client(&self) -> &tokio_postgres::Client {
        &self.reader().session.client
    }

    /// Runs a query, and starts the transaction in the same exchange if it is the first.
    fn asked<T>(
        &self,
        question: impl Future<Output = Result<T, Error>>,
        more: Duration,
    ) -> Result<T, StoreError> {
        let most = self.pool.patience() + more;
        let answer = match self.has_begun.replace(true) {
            true => wait(question, most),
            false => {
                let begun = self.client().batch_execute(sql::BEGIN_READ);
                let both = wait(join(begun, question), most);
                both.map(|(begun, answer)| begun.and(answer))
            }
        };
        let answer = match answer {
            Some(answer) => {
                if answer.as_ref().err().is_none_or(is_said) {
                    self.pool.heard();
                }
                answer.map_err(kind)
            }
            None => Err(self.late()),
        };
        self.is_broken.set(self.is_broken.get() || answer.is_err());
        answer
    }

    fn late(&self) -> StoreError {
        self.pool.was_late();
        late()
    }

    fn number(&self, sql: &str, more: Duration) -> Result<i64, StoreError> {
        let row = self.asked(self.client().query_one(sql, &[]), more)?;
        row.try_get(0).map_err(kind)
    }

    fn query(&self, of: &Statement, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        self.asked(self.client().query(of, parameters), Duration::ZERO)
    }

    /// Returns the first rows of a result, up to the page limits, and whether there are more.
    ///
    /// The page is complete before the visitor sees it: the visitor may send another query, whose
    /// response only follows after the pending rows.
    fn page(
        &self,
        of: &Statement,
        parameters: Parameters<'_>,
    ) -> Result<(Vec<Row>, bool), StoreError> {
        let question = self.client().query_raw(of, parameters.iter().copied());
        let rows: RowStream = self.asked(question, Duration::ZERO)?;
        let mut rows = pin!(rows);
        let (mut page, mut bytes) = (Vec::new(), 0);
        while bytes < PAGE_BYTES {
            let next = wait(rows.next(), self.pool.patience()).ok_or_else(|| self.late());
            let row = next.and_then(|row| row.transpose().map_err(kind));
            match row.inspect_err(|_| self.is_broken.set(true))? {
                Some(row) => {
                    bytes += row.raw_size_bytes();
                    page.push(row);
                }
                None => break,
            }
        }
        self.pool.heard();
        Ok((page, bytes >= PAGE_BYTES))
    }

    /// Visits rows page by page, so that a visitor that stops early doesn't load all; `ask`
    /// requests a number of rows after a row.
    fn pages(
        &self,
        limit: usize,
        mut ask: impl FnMut(Option<&Row>, i64) -> Result<(Vec<Row>, bool), StoreError>,
        mut visit: impl FnMut(&Row) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), StoreError> {
        let (mut left, mut most, mut last) = (limit, FIRST_ROWS, None);
        while left > 0 {
            let wanted = most.min(left);
            let (rows, is_cut) = ask(last.as_ref(), wanted as i64)?;
            for row in &rows {
                if visit(row).map_err(kind)?.is_break() {
                    return Ok(());
                }
            }
            let count = rows.len();
            left -= count;
            if !is_cut && count < wanted {
                return Ok(());
            }
            most = match is_cut {
                true => count.max(1),
                false => (most * 2).min(MOST_ROWS),
            };
            last = rows.into_iter().next_back();
        }
        Ok(())
    }

    /// Visits the records of a range.
    fn range(
        &self,
        (partition, from, to, limit): (&str, &[u8], Option<&[u8]>, usize),
        statements: &[Statement; 2],
        mut visit: impl FnMut(&[u8], &Row) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), StoreError> {
        let partition = partition.as_bytes();
        let ask = |last: Option<&Row>, limit: i64| {
            let from = match last {
                Some(last) => [last.try_get::<_, &[u8]>(0).map_err(kind)?, &[0]].concat(),
                None => from.to_vec(),
            };
            match to {
                Some(to) => self.page(&statements[1], &[&partition, &from, &limit, &to]),
                None => self.page(&statements[0], &[&partition, &from, &limit]),
            }
        };
        self.pages(limit, ask, |row| visit(row.try_get(0)?, row))
    }

    /// Prefetches ranges in one query; ranges with more than a few records are dropped.
    fn fetch(&self, ranges: &[Range]) -> Result<(), StoreError> {
        let bytes = |of: fn(&Range) -> &[u8]| -> Vec<&[u8]> { ranges.iter().map(of).collect() };
        let partitions = bytes(|range| range.0.as_bytes());
        let (first, after) = (bytes(|range| &range.1), bytes(|range| &range.2));
        let most = RANGE_RECORDS as i64 + 1;
        let scan_many = &self.reader().statements.scan_many;
        let rows = self.query(scan_many, &[&partitions, &first, &after, &most])?;
        let mut found = vec![Vec::new(); ranges.len()];
        for row in rows {
            let at: i64 = row.try_get(0).map_err(kind)?;
            let key: &[u8] = row.try_get(1).map_err(kind)?;
            let slot = usize::try_from(at - 1).ok();
            if let Some(slot) = slot.and_then(|at| found.get_mut(at)) {
                slot.push((key.to_vec(), record(&row, 2).map_err(kind)?));
            }
        }
        let mut kept = self.ranges.borrow_mut();
        for ((partition, from, to), records) in ranges.iter().zip(found) {
            if records.len() <= RANGE_RECORDS {
                let range = (partition.to_string(), from.clone(), to.clone());
                kept.insert(range, records);
            }
        }
        Ok(())
    }

    /// The prefetched records of a range.
    fn fetched_range(
        &self,
        (partition, from, to): (&str, &[u8], Option<&[u8]>),
    ) -> Option<Vec<(Vec<u8>, Record)>> {
        let ranges = self.ranges.borrow();
        let to = to.filter(|_| !ranges.is_empty())?;
        let range = (partition.to_owned(), from.to_vec(), to.to_vec());
        ranges.get(&range).cloned()
    }

    fn fetched(&self, partition: &str, key: &[u8]) -> Option<Option<Record>> {
        self.fetched.borrow().get(partition)?.get(key).cloned()
    }
}

impl Snapshot for View<'_> {
    fn is_remote(&self) -> bool {
        true
    }

    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        if let Some(record) = self.fetched(partition, key) {
            return Ok(record);
        }
        let get = &self.reader().statements.get;
        let question = self.client();
        let parameters: Parameters<'_> = &[&partition.as_bytes(), &key];
        let row = self.asked(question.query_opt(get, parameters), Duration::ZERO)?;
        row.map(|row| record(&row, 0)).transpose().map_err(kind)
    }

    fn get_many(&self, keys: &[(&str, &[u8])]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut records = vec![None; keys.len()];
        if keys.is_empty() {
            return Ok(records);
        }
        let (partitions, wanted): (Vec<&[u8]>, Vec<&[u8]>) = keys
            .iter()
            .map(|(partition, key)| (partition.as_bytes(), *key))
            .unzip();
        let get_many = &self.reader().statements.get_many;
        for row in self.query(get_many, &[&partitions, &wanted])? {
            let at: i64 = row.try_get(0).map_err(kind)?;
            let found = record(&row, 1).map_err(kind)?;
            let slot = usize::try_from(at - 1)
                .ok()
                .and_then(|at| records.get_mut(at));
            if let Some(slot) = slot {
                *slot = Some(found);
            }
        }
        Ok(records)
    }

    fn prefetch(&self, soon: &PrefetchSet) -> Result<(), StoreError> {
        if !soon.ranges.is_empty() {
            self.fetch(&soon.ranges)?;
        }
        let is_new =
            |(partition, key): &&(Arc<str>, Vec<u8>)| self.fetched(partition, key).is_none();
        let keys = soon.keys.iter().filter(is_new);
        let keys: Vec<_> = keys
            .map(|(partition, key)| (&**partition, key.as_slice()))
            .collect();
        let records = self.get_many(&keys)?;
        let mut fetched = self.fetched.borrow_mut();
        for ((partition, key), record) in keys.into_iter().zip(records) {
            let of = fetched.entry(partition.to_owned()).or_default();
            of.insert(key.to_vec(), record);
        }
        Ok(())
    }

    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if let Some(records) = self.fetched_range((partition, from, to)) {
            for (key, record) in records.into_iter().take(limit) {
                if visit(&key, record).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let scan = &self.reader().statements.scan;
        self.range((partition, from, to, limit), scan, |key, row| {
            Ok(visit(key, record(row, 1)?))
        })
    }

    fn browse(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        show: Show<'_>,
    ) -> Result<(), StoreError> {
        let scan = &self.reader().statements.scan;
        self.range((partition, from, to, limit), scan, |key, row| {
            Ok(show(key, row.try_get(2)?))
        })
    }

    fn measure(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        tell: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let measure = &self.reader().statements.measure;
        self.range((partition, from, to, limit), measure, |key, row| {
            Ok(tell(key, row.try_get::<_, i64>(1)?.unsigned_abs()))
        })
    }

    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: Walk<'_>,
    ) -> Result<(), StoreError> {
        let walk = &self.reader().statements.walk;
        let ask = |last: Option<&Row>, limit: i64| {
            // Partition names are never empty, so that the empty one precedes them all.
            let (mut partition, mut key): (&[u8], &[u8]) = match after {
                Some((partition, key)) => (partition.as_bytes(), key),
                None => (b"", b""),
            };
            if let Some(last) = last {
                partition = last.try_get(0).map_err(kind)?;
                key = last.try_get(1).map_err(kind)?;
            }
            self.page(walk, &[&partition, &key, &limit])
        };
        self.pages(limit, ask, |row| {
            let name = String::from_utf8_lossy(row.try_get(0)?);
            Ok(visit(&name, row.try_get(1)?, record(row, 2)?))
        })
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let reader = self.reader.take();
        let reader = reader.filter(|_| !self.is_broken.get());
        if let Some(reader) = &reader
            && self.has_begun.get()
        {
            // The session's next query follows it.
            begin(reader.session.client.batch_execute(sql::ROLLBACK));
        }
        self.pool.leave(reader);
    }
}

/// The record whose revision is in column `at` and whose value is in the next one.
fn record(row: &Row, at: usize) -> Result<Record, Error> {
    let revision: i64 = row.try_get(at)?;
    Ok(Record {
        value: Bytes::copy_from_slice(row.try_get(at + 1)?),
        revision: revision.unsigned_abs(),
    })
}
