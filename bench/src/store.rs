//! Durable commits of the store beside this disk's own append + fdatasync, in alternating rounds, so that a drift of
//! the disk affects both.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use groupware_store::{Batch, Store, StoreOptions};

use crate::clock::now;
use crate::common::{Error, median};
use crate::disk;

const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(2);
const WRITERS: u64 = 64;
const VALUE_BYTES: usize = 512;

/// Rates per second; ratios are medians of the rounds' ratios.
pub(crate) struct Result {
    pub(crate) disk_per_s: f64,
    pub(crate) one_writer_per_s: f64,
    pub(crate) many_writers_per_s: f64,
    pub(crate) one_writer_ratio: f64,
    pub(crate) many_writers_ratio: f64,
}

/// Runs the comparison in a scratch folder under `base`, which must be on a real disk.
pub(crate) fn run(base: &Path) -> std::result::Result<Result, Error> {
    let folder = tempfile::tempdir_in(base)?;
    let store = Store::open_sqlite(&folder.path().join("store"), StoreOptions::default())?;
    let (mut disks, mut ones, mut manys) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up files and caches and is not counted.
    for round in 0..=ROUNDS {
        let disk = disk::append_fdatasync_per_s(folder.path(), SPAN)?;
        let one = commits_per_s(&store, 1)?;
        let many = commits_per_s(&store, WRITERS)?;
        if round > 0 {
            disks.push(disk);
            ones.push(one);
            manys.push(many);
        }
    }
    let ratios = |rates: &[f64]| median(rates.iter().zip(&disks).map(|(r, d)| r / d).collect());
    Ok(Result {
        one_writer_ratio: ratios(&ones),
        many_writers_ratio: ratios(&manys),
        disk_per_s: median(disks.clone()),
        one_writer_per_s: median(ones),
        many_writers_per_s: median(manys),
    })
}

/// Runs `writers` tasks, each with one commit of one record under way, on two threads like the server's workers.
fn commits_per_s(store: &Store, writers: u64) -> std::result::Result<f64, Error> {
    let done = Arc::new(AtomicU64::new(0));
    let begin = now();
    let threads: Vec<_> = (0..writers.min(2))
        .map(|thread| {
            let (store, done) = (store.clone(), Arc::clone(&done));
            let share = writers.div_ceil(2).min(writers);
            std::thread::spawn(move || commit_until(&store, thread, share, &done, begin))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| Error::Thread)??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64())
}

fn commit_until(
    store: &Store,
    thread: u64,
    writers: u64,
    done: &Arc<AtomicU64>,
    begin: std::time::Instant,
) -> std::result::Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let (store, done) = (store.clone(), Arc::clone(done));
                tokio::task::spawn_local(async move {
                    let mut key = 0u64;
                    while begin.elapsed() < SPAN {
                        let mut batch = Batch::new();
                        // A few hundred keys a writer, so that the tree stays small and is updated.
                        let name = format!("{thread:02}-{writer:03}-{:04}", key % 512);
                        batch.put("bench", name.into_bytes(), vec![key as u8; VALUE_BYTES]);
                        store.commit(batch).await?;
                        done.fetch_add(1, Ordering::Relaxed);
                        key += 1;
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        for task in tasks {
            task.await.map_err(|_| Error::Thread)??;
        }
        Ok(())
    })
}
