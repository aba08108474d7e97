//! A store in memory and shorthands for requests.

use groupware_lookup::{
    Context, Decision, Layout, LookupError, LookupQuery, NewRecord, Registrant, Results, xml,
};
use groupware_store::{Snapshot, Store, StoreError, StoreOptions};
use serde_json::Value;

/// A lookup service without a network.
pub(crate) struct Service {
    pub(crate) store: Store,
    pub(crate) layout: Layout,
    pub(crate) now: i64,
    pub(crate) who: Registrant,
    /// Operations and bytes of the last change.
    pub(crate) cost: (usize, usize),
    random: u128,
}

impl Service {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            store: Store::memory(StoreOptions::default()).unwrap(),
            layout,
            now: 1_000_000,
            who: Registrant::Anybody,
            cost: (0, 0),
            random: 1,
        }
    }

    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Context<'_>) -> Result<T, LookupError>,
    ) -> Result<T, LookupError> {
        self.store.read(|snapshot| {
            read(&Context {
                snapshot,
                layout: self.layout,
                now: self.now,
                random: self.random,
                who: &self.who,
            })
        })
    }

    pub(crate) fn change<T>(
        &mut self,
        decide: impl FnOnce(&Context<'_>) -> Result<Decision<T>, LookupError>,
    ) -> Result<T, LookupError> {
        self.random = self
            .random
            .wrapping_mul(0x5851_F42D_4C95_7F2D_1405_7B7E_F767_814F)
            + 1;
        let decision = self.read(decide)?;
        self.cost = (decision.batch.ops.len(), decision.batch.bytes());
        if !decision.batch.is_empty() {
            self.store.commit_blocking(decision.batch).unwrap();
        }
        Ok(decision.reply)
    }

    pub(crate) fn register(&mut self, body: &str) -> Result<Value, LookupError> {
        let new = NewRecord::parse(body.as_bytes())?;
        let reply = self.change(|context| groupware_lookup::register(context, new))?;
        Ok(serde_json::from_slice(&reply).unwrap())
    }

    pub(crate) fn renew(&mut self, uri: &str, body: &str) -> Result<Value, LookupError> {
        let asked = groupware_lookup::parse_renewal(body.as_bytes())?;
        let (kind, id) = parts(uri);
        let reply = self.change(|context| groupware_lookup::renew(context, (kind, id), asked))?;
        Ok(serde_json::from_slice(&reply).unwrap())
    }

    pub(crate) fn delete(&mut self, uri: &str) -> Result<Value, LookupError> {
        let (kind, id) = parts(uri);
        let reply = self.change(|context| groupware_lookup::delete(context, kind, id))?;
        Ok(serde_json::from_slice(&reply).unwrap())
    }

    pub(crate) fn get(&self, uri: &str) -> Result<Value, LookupError> {
        let (kind, id) = parts(uri);
        let reply = self.read(|context| groupware_lookup::get(context, kind, id))?;
        Ok(serde_json::from_slice(&reply).unwrap())
    }

    pub(crate) fn page(&self, pairs: &[(&str, &str)]) -> Result<Results, LookupError> {
        let query = LookupQuery::parse(pairs.iter().copied())?;
        self.read(|context| {
            groupware_lookup::query(context.snapshot, context.layout, &query, context.now)
        })
    }

    pub(crate) fn query(&self, pairs: &[(&str, &str)]) -> Vec<Value> {
        serde_json::from_slice(&self.page(pairs).unwrap().body).unwrap()
    }

    /// Returns the response to a message, as text.
    pub(crate) fn message(&mut self, body: &str) -> String {
        let message = xml::Message::parse(body.as_bytes()).unwrap();
        let reply = self
            .change(|context| xml::decide(context, &message, xml::ScanBudget::WHOLE))
            .unwrap();
        String::from_utf8(reply).unwrap()
    }

    /// Sweeps until nothing is left to do; returns the number of batches.
    pub(crate) fn sweep(&mut self) -> usize {
        for sweeps in 0..10_000 {
            let batch = self
                .store
                .read(|snapshot| self.layout.sweep(snapshot, self.now))
                .unwrap();
            match batch {
                Some(batch) => drop(self.store.commit_blocking(batch).unwrap()),
                None => return sweeps,
            }
        }
        panic!("sweeping has no end");
    }

    /// Returns the number of records in all partitions of the service.
    pub(crate) fn rows(&self) -> usize {
        let mut rows = 0;
        let read: Result<(), StoreError> = self.store.read(|snapshot: &dyn Snapshot| {
            // "$lookup" is the layout of earlier versions.
            let all = [
                "$lookup/indexed",
                "$lookup/documents",
                "$lookup/single",
                "$lookup",
            ];
            for partition in all {
                snapshot.scan(partition, b"", None, usize::MAX, &mut |_, _| {
                    rows += 1;
                    std::ops::ControlFlow::Continue(())
                })?;
            }
            Ok(())
        });
        read.unwrap();
        rows
    }
}

fn parts(uri: &str) -> (&str, &str) {
    let (kind, id) = uri
        .strip_prefix("lookup/")
        .unwrap()
        .split_once('/')
        .unwrap();
    (kind, id)
}

/// Returns the status of a refusal.
pub(crate) fn status<T: std::fmt::Debug>(outcome: Result<T, LookupError>) -> u16 {
    outcome.expect_err("a refusal").status()
}
