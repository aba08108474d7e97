//! State that users share: counters, queues, and pools; and the steps' reads from and writes to queues.

use std::sync::Arc;

use lab_workload::template::Escape;
use lab_workload::{Data, Each, Lease, Put, Queued, SharedKind, SharedState, Take, Workload};

use super::data;
use super::files::Files;
use super::names::{called_at, transposed, unknown_name};
use super::request::Compiler;
use super::variable;
use crate::error::Problems;
use crate::file::{PoolFile, RowsFile, SharedFile, StepFile};
use crate::node::Node;
use crate::source::Span;
use crate::units;
use lab_units::parts::{At, Scalar, Table};

/// Maximum shared objects of a workload.
const MAX_SHARED: usize = 100;
/// The highest start value of a counter.
const MAX_FROM: u64 = 1_000_000_000_000_000;
/// Maximum entries of a queue, also the default.
const MAX_ENTRIES: u64 = 100_000_000;
const ENTRIES: u32 = 10_000;
/// The key of `take` that is no variable.
const WITHIN: &str = "within";

/// The rows of a pool, by the name of the pool.
pub(super) type Pools = Vec<(String, Arc<Data>)>;

/// Reads the rows of all pools; `None` if a problem was reported. The columns have no slots yet.
pub(super) fn pools(
    table: &Table<At<SharedFile>>,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Pools> {
    let mut all = Some(Vec::new());
    for (name, file) in table.iter() {
        let Some(pool) = &file.value.pool else {
            continue;
        };
        let rows = data::rows(&RowsFile::of(&pool.value.file), files, problems);
        match (&mut all, rows) {
            (Some(all), Some(rows)) => all.push((name.value.clone(), Arc::new(rows))),
            (all, _) => *all = None,
        }
    }
    all
}

/// Returns the pools of a workload.
pub(super) fn pools_of(workload: &Workload) -> Pools {
    let pool = |one: &SharedState| Some((one.name.clone(), Arc::clone(one.pool()?.0)));
    workload.shared.iter().filter_map(pool).collect()
}

/// Returns the names of a pool's columns, with their indexes.
pub(super) fn columns(rows: &Data) -> impl Iterator<Item = (u32, &String)> {
    let table = rows.table.as_ref();
    let columns = rows.columns.iter();
    columns.filter_map(move |(place, _)| Some((*place, table?.columns().get(*place as usize)?)))
}

/// Returns the names of the variables that steps take from queues.
pub(super) fn taken(step: &StepFile) -> impl Iterator<Item = &At<String>> {
    let take = step.take.iter().flat_map(|take| take.value.iter());
    take.map(|(name, _)| name)
        .filter(|name| name.value != WITHIN)
}

/// Reads the shared state of a file's users; `None` if a problem was reported.
pub(super) fn read(
    table: &Table<At<SharedFile>>,
    (pools, variables): (&Pools, &[String]),
    compiler: &mut Compiler,
) -> Option<Vec<SharedState>> {
    let mut all = Some(Vec::new());
    for (name, file) in table.iter() {
        let rows = pools.iter().find(|(of, _)| *of == name.value);
        let rows = rows.map(|(_, rows)| placed(rows, variables));
        let of = variable::check(name, compiler.problems)
            .then(|| kind(file, rows, compiler))
            .flatten();
        match (&mut all, of) {
            (Some(all), Some(kind)) if all.len() < MAX_SHARED => all.push(SharedState {
                name: name.value.clone(),
                kind,
            }),
            (Some(_), Some(_)) => {
                let message = format!("users share {MAX_SHARED} things at most");
                let problem = name.span.problem(message, "the first one too many");
                compiler.problems.push(problem);
                return None;
            }
            (all, _) => *all = None,
        }
    }
    one_lease(table, compiler)?;
    all
}

/// Checks that a session leases at most one row.
fn one_lease(table: &Table<At<SharedFile>>, compiler: &mut Compiler) -> Option<()> {
    let mut leases = table.iter().filter_map(|(_, file)| {
        let pool = file.value.pool.as_ref()?;
        pool.value.lease.as_ref()
    });
    match leases.nth(1) {
        None => Some(()),
        Some(second) => {
            let message = "a session has a row of one pool to itself";
            let help = "put the columns of both into one file";
            compiler.refuse_here(&second.span, message, help)
        }
    }
}

fn kind(
    file: &At<SharedFile>,
    rows: Option<Arc<Data>>,
    compiler: &mut Compiler,
) -> Option<SharedKind> {
    let SharedFile {
        counter,
        queue,
        pool,
    } = &file.value;
    match (counter, queue, pool) {
        (Some(counter), None, None) => {
            let from = match &counter.value.from {
                Some(from) => compiler
                    .setting("from", from, |text| units::whole_number(text, 0..=MAX_FROM))?,
                None => 1,
            };
            Some(SharedKind::Counter { from })
        }
        (None, Some(queue), None) => {
            let at_most = match &queue.value.at_most {
                Some(at_most) => compiler.setting("at_most", at_most, |text| {
                    units::whole_number(text, 1..=MAX_ENTRIES)
                })? as u32,
                None => ENTRIES,
            };
            Some(SharedKind::Queue { at_most })
        }
        (None, None, Some(pool)) if compiler.is_repeatable => {
            let message = "users get whatever row of a pool is free, which the seed doesn't repeat";
            let help = "rows of `data` are repeatable; or leave out `repeatable`";
            compiler.refuse_here(&pool.span, message, help)
        }
        (None, None, Some(pool)) => Some(SharedKind::Pool {
            lease: lease(pool, compiler)?,
            rows: rows?,
        }),
        _ => {
            let message = "it is one of a counter, a queue, and a pool";
            let help = "write `{ counter: { from: 1 } }`, `{ queue: { at_most: 10000 } }`, or `{ pool: { file: \
                        tokens.csv, lease: session } }`";
            compiler.refuse_here(&file.span, message, help)
        }
    }
}

fn lease(pool: &At<PoolFile>, compiler: &mut Compiler) -> Option<Lease> {
    let named =
        |what: &str, name: &'static str, at: &At<Scalar>, lease, compiler: &mut Compiler| {
            compiler.setting(what, at, |text| {
                units::one_named(what, text, &[(name, lease)])
            })
        };
    match (&pool.value.lease, &pool.value.rotate) {
        (Some(at), None) => named("lease", "session", at, Lease::Session, compiler),
        (None, Some(at)) => named("rotate", "request", at, Lease::Request, compiler),
        _ => {
            let message = "a pool needs `lease` or `rotate`";
            let help = "`lease: session` gives a session a row to itself, `rotate: request` each request the next one";
            compiler.refuse_here(&pool.span, message, help)
        }
    }
}

/// Returns the rows with the slots of their columns.
fn placed(rows: &Arc<Data>, variables: &[String]) -> Arc<Data> {
    let slot = |name: &String| variable::slot(variables, name);
    let columns = columns(rows).filter_map(|(place, name)| Some((place, slot(name)?)));
    Arc::new(Data {
        columns: columns.collect(),
        each: Each::Session,
        ..(**rows).clone()
    })
}

impl Compiler<'_> {
    /// Reads a step's use of queues; the inner `None` if it has none.
    pub(super) fn queued(&mut self, file: &StepFile) -> Option<Option<Box<Queued>>> {
        let take = file.take.as_ref().map(|take| self.take(take));
        let put = file.put.as_ref().map(|put| self.put(put));
        if take.is_none() && put.is_none() {
            return Some(None);
        }
        if let (Some(at), Some(_)) = (&file.put, &file.parallel) {
            let message = "a step with `parallel` puts nothing into a queue";
            let help = "put it in with the step after it";
            return self.refuse_here(&at.span, message, help);
        }
        Some(Some(Box::new(Queued {
            take: transposed(take)?,
            put: transposed(put)?,
        })))
    }

    fn take(&mut self, take: &At<Table<At<Scalar>>>) -> Option<Take> {
        let entries = take.value.iter();
        let (within, taken): (Vec<_>, Vec<_>) = entries.partition(|(name, _)| name.value == WITHIN);
        let help = "write `take: { order: orders, within: 5s }`: the variable, the queue, and how long an entry may take";
        let ([(variable, queue)], [(_, within)]) = (&taken[..], &within[..]) else {
            let message = "a step takes one entry, `within` a time";
            return self.refuse_here(&take.span, message, help);
        };
        if self.is_repeatable {
            let message = "a queue gives whatever entry is next, which the seed doesn't repeat";
            let help = "`capture` what the same session sends later; or leave out `repeatable`";
            return self.refuse_here(&take.span, message, help);
        }
        let slot = variable::slot(self.variables, &variable.value);
        let within = self.setting(WITHIN, within, |text| {
            units::duration(text, units::MAX_WAIT)
        });
        Some(Take {
            queue: self.queue(&queue.text(), &queue.span)?,
            slot: slot?,
            within: within?,
        })
    }

    fn put(&mut self, put: &At<Table<At<Scalar>>>) -> Option<Put> {
        let entries: Vec<_> = put.value.iter().collect();
        let [(queue, entry)] = &entries[..] else {
            let message = "a step puts one entry into one queue";
            let help = "write `put: { orders: \"{{ id }}\" }`";
            return self.refuse_here(&put.span, message, help);
        };
        let name = self.queue(&queue.value, &queue.span);
        let entry = self.template("put", entry, Escape::None);
        Some(Put {
            queue: name?,
            entry: entry?,
        })
    }

    /// Returns the name of an existing queue.
    fn queue(&mut self, name: &str, at: &Span) -> Option<String> {
        let queues = self.shared.iter();
        let queues = queues.filter(|one| matches!(one.kind, SharedKind::Queue { .. }));
        let names: Vec<&str> = queues.map(|one| one.name.as_str()).collect();
        if names.contains(&name) {
            return Some(name.to_owned());
        }
        let (message, mut help) = unknown_name("queue", name, &names);
        if names.is_empty() {
            help = format!(
                "say what users share: `shared: {{ {name}: {{ queue: {{ at_most: 10000 }} }} }}`"
            );
        }
        self.refuse_here(at, &message, &help)
    }
}

/// Reports the use of a queue outside of session steps.
pub(super) fn refuse(file: &StepFile, compiler: &mut Compiler) {
    for at in [&file.take, &file.put].into_iter().flatten() {
        let message = "a setup has nothing to do with queues";
        let help = "`take` and `put` are of steps of the session";
        compiler.refuse_here::<()>(&at.span, message, help);
    }
}

/// Reports a problem if a template takes a number of an unknown counter, or if a variable of `user:` takes one. Returns
/// false if a problem was reported.
pub(super) fn check_counters(root: &Node, workload: &Workload, problems: &mut Problems) -> bool {
    let counters = workload.shared.iter();
    let counters = counters.filter(|one| matches!(one.kind, SharedKind::Counter { .. }));
    let counters: Vec<&str> = counters.map(|one| one.name.as_str()).collect();
    let mut of_users = Vec::new();
    for (_, template) in &workload.user {
        template.counters(&mut of_users);
    }
    if let Some(name) = of_users.first() {
        let message = "a variable of `user:` takes no number of a counter";
        let help = "users come by their own numbers: `index`; take the counter's in a step";
        let problem = called_at(root, name, &["next"]).problem(message, "taken here");
        problems.push(problem.help(help));
        return false;
    }
    let used = workload.counters();
    let unknown = used.iter().find(|name| !counters.contains(&name.as_str()));
    let Some(name) = unknown else {
        return true;
    };
    let (message, mut help) = unknown_name("counter", name, &counters);
    if counters.is_empty() {
        help =
            format!("say what users share: `shared: {{ {name}: {{ counter: {{ from: 1 }} }} }}`");
    }
    let problem = called_at(root, name, &["next"]).problem(message, "taken here");
    problems.push(problem.help(help));
    false
}
