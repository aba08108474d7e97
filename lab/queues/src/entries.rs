//! Queues between the users of a program: one user puts an entry in, another takes it out, on any worker.
//!
//! A worker keeps a few entries of each queue to itself, which costs no atomic operation. Further entries, and those
//! for waiting users of another worker, pass through one lock-free channel of the program. A worker's entries leave in
//! the order in which the worker received them. It knows no steps and no time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll};

use crossbeam_channel::{Receiver, Sender, unbounded};
use lab_workload::{SharedKind, Workload};
use tokio::sync::Notify;

use crate::waiters::{Left, Ticket, Waiters};

/// The maximum number of entries of a queue that a worker keeps to itself.
const KEPT: usize = 64;

type Entry = Box<str>;

/// The queues of a program, shared by its workers.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    queues: Arc<[Common]>,
    /// By worker: notified when the channel has an entry that one of its users waits for, or when a user of another
    /// worker waits for one that it keeps.
    calls: Arc<[Notify]>,
}

/// The part of a queue that the workers of a program share.
#[derive(Debug)]
struct Common {
    name: Box<str>,
    /// The maximum number of entries that each worker keeps.
    kept: usize,
    /// The maximum number of entries in the channel.
    passed_most: usize,
    /// The number of entries in the channel, or about to be.
    passed: AtomicUsize,
    sender: Sender<Entry>,
    receiver: Receiver<Entry>,
    /// The number of waiting users of all workers.
    hungry: AtomicUsize,
    workers: Box<[Side]>,
}

/// The state of a worker that other workers read, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Side {
    /// Whether the worker may keep entries.
    keeps: AtomicBool,
    /// The number of its waiting users.
    hungry: AtomicUsize,
}

impl Queues {
    /// Returns the queues of these workloads; queues of the same name are one queue.
    pub fn of<'a>(workloads: impl Iterator<Item = &'a Workload>, workers: usize) -> Self {
        let mut queues: Vec<Common> = Vec::new();
        for one in workloads.flat_map(|workload| &workload.shared) {
            if let SharedKind::Queue { at_most } = one.kind
                && queues.iter().all(|known| *known.name != *one.name)
            {
                queues.push(Common::new(&one.name, at_most as usize, workers));
            }
        }
        Self {
            queues: queues.into(),
            calls: (0..workers).map(|_| Notify::new()).collect(),
        }
    }

    /// Returns the side of one worker.
    pub fn of_worker(&self, worker: usize) -> WorkerQueues {
        let queue = |place| {
            Rc::new(Queue {
                of: self.clone(),
                place,
                worker,
                state: RefCell::default(),
            })
        };
        WorkerQueues {
            queues: (0..self.queues.len()).map(queue).collect(),
        }
    }
}

impl Common {
    fn new(name: &str, at_most: usize, workers: usize) -> Self {
        let kept = KEPT.min(at_most / workers.max(1));
        let (sender, receiver) = unbounded();
        Self {
            name: name.into(),
            kept,
            passed_most: at_most - kept * workers,
            passed: AtomicUsize::new(0),
            sender,
            receiver,
            hungry: AtomicUsize::new(0),
            workers: (0..workers).map(|_| Side::default()).collect(),
        }
    }

    fn receive(&self) -> Option<Entry> {
        let entry = self.receiver.try_recv().ok()?;
        self.passed.fetch_sub(1, Ordering::Relaxed);
        Some(entry)
    }

    fn send(&self, entry: Entry) {
        // The sender and the receiver live as long as this.
        let _open = self.sender.send(entry);
    }
}

/// The queues of a program on one worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerQueues {
    queues: Rc<[Rc<Queue>]>,
}

impl WorkerQueues {
    /// Returns the queue of this name.
    pub fn named(&self, name: &str) -> Option<&Rc<Queue>> {
        self.queues
            .iter()
            .find(|queue| *queue.common().name == *name)
    }

    /// Gives entries to waiting users, of this worker and of others. Never returns; each worker runs it once.
    pub async fn serve(&self) {
        let Some(first) = self.queues.first() else {
            return std::future::pending().await;
        };
        loop {
            first.of.calls[first.worker].notified().await;
            self.queues.iter().for_each(|queue| queue.serve());
        }
    }

    /// Returns true if there are no queues.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

/// A queue on one worker.
#[derive(Debug)]
pub struct Queue {
    of: Queues,
    place: usize,
    worker: usize,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Kept entries, the oldest first.
    entries: VecDeque<Entry>,
    /// Its waiting users, the longest wait first. While users wait, the worker keeps no entry.
    waiters: Waiters<Entry>,
    /// Whether the channel may hold entries newer than the kept ones: further entries then go to the channel.
    passes: bool,
}

impl Queue {
    fn common(&self) -> &Common {
        &self.of.queues[self.place]
    }

    fn side(&self) -> &Side {
        &self.common().workers[self.worker]
    }

    /// Puts an entry in. Returns false if the queue is full: the entry is dropped then.
    pub fn put(&self, entry: Entry) -> bool {
        let (state, common) = (&mut *self.state.borrow_mut(), self.common());
        let Err(entry) = self.give(state, entry) else {
            return true;
        };
        state.passes &= common.passed.load(Ordering::Relaxed) > 0;
        if !state.passes && state.entries.len() < common.kept {
            self.keep(state, |entries| entries.push_back(entry));
            if common.hungry.load(Ordering::SeqCst) > 0 {
                self.pass_on(state);
            }
            return true;
        }
        if common.passed.fetch_add(1, Ordering::SeqCst) >= common.passed_most {
            common.passed.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        state.passes = true;
        common.send(entry);
        self.call_hungry();
        true
    }

    /// Takes an available entry.
    pub fn take(&self) -> Option<Entry> {
        let state = &mut *self.state.borrow_mut();
        if let Some(entry) = state.entries.pop_front() {
            if state.entries.is_empty() {
                self.side().keeps.store(false, Ordering::Relaxed);
            }
            return Some(entry);
        }
        // Waiting users are served first.
        match state.waiters.is_empty() {
            true => self.common().receive(),
            false => None,
        }
    }

    /// Waits for an entry.
    pub fn wait(self: &Rc<Self>) -> Taking {
        let (state, common) = (&mut *self.state.borrow_mut(), self.common());
        let ticket = state.waiters.join();
        common.hungry.fetch_add(1, Ordering::SeqCst);
        self.side().hungry.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.receive(state);
        if self.side().hungry.load(Ordering::Relaxed) > 0 {
            self.call(|side| side.keeps.load(Ordering::SeqCst));
        }
        Taking {
            queue: Rc::clone(self),
            ticket,
        }
    }

    /// Gives an entry to the user with the longest wait; returns it if no user waits.
    fn give(&self, state: &mut State, entry: Entry) -> Result<(), Entry> {
        state.waiters.give(entry)?;
        self.fed();
        Ok(())
    }

    /// Records that a user waits no longer.
    fn fed(&self) {
        self.common().hungry.fetch_sub(1, Ordering::Relaxed);
        self.side().hungry.fetch_sub(1, Ordering::Relaxed);
    }

    fn keep(&self, state: &mut State, keep: impl FnOnce(&mut VecDeque<Entry>)) {
        let was_empty = state.entries.is_empty();
        keep(&mut state.entries);
        if was_empty {
            // This store precedes the load of `hungry`: a user of another worker that begins to wait reads `keeps`.
            self.side().keeps.store(true, Ordering::SeqCst);
        }
    }

    /// Gives entries of the channel to its own waiting users, and its own entries to users of other workers.
    fn serve(&self) {
        let state = &mut *self.state.borrow_mut();
        self.receive(state);
        self.pass_on(state);
        // Another user may have taken the announced entry.
        if !state.waiters.is_empty() {
            fence(Ordering::SeqCst);
            self.call(|side| side.keeps.load(Ordering::SeqCst));
        }
    }

    fn receive(&self, state: &mut State) {
        while !state.waiters.is_empty() {
            let Some(entry) = self.common().receive() else {
                return;
            };
            if let Err(entry) = self.give(state, entry) {
                self.keep(state, |entries| entries.push_front(entry));
            }
        }
    }

    /// Sends kept entries to the channel for waiting users of other workers.
    fn pass_on(&self, state: &mut State) {
        let common = self.common();
        let mut passed = false;
        while common.passed.load(Ordering::SeqCst) < common.hungry.load(Ordering::SeqCst) {
            let Some(entry) = state.entries.pop_front() else {
                break;
            };
            common.passed.fetch_add(1, Ordering::SeqCst);
            common.send(entry);
            passed = true;
        }
        if state.entries.is_empty() {
            self.side().keeps.store(false, Ordering::Relaxed);
        }
        if passed {
            self.call_hungry();
        }
    }

    /// Notifies the workers with waiting users.
    fn call_hungry(&self) {
        fence(Ordering::SeqCst);
        self.call(|side| side.hungry.load(Ordering::SeqCst) > 0);
    }

    fn call(&self, which: impl Fn(&Side) -> bool) {
        let others = self.common().workers.iter().zip(self.of.calls.iter());
        for (worker, (side, call)) in others.enumerate() {
            if worker != self.worker && which(side) {
                call.notify_one();
            }
        }
    }
}

/// The wait of a user for an entry. Dropping it ends the wait.
#[derive(Debug)]
pub struct Taking {
    queue: Rc<Queue>,
    ticket: Ticket<Entry>,
}

impl Future for Taking {
    type Output = Entry;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Entry> {
        self.ticket.poll_given(cx)
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let state = &mut *self.queue.state.borrow_mut();
        match state.waiters.leave(&self.ticket) {
            Left::Taken => {}
            Left::Waiting => self.queue.fed(),
            // The user has left: give the entry to another user.
            Left::Given(entry) => {
                if let Err(entry) = self.queue.give(state, entry) {
                    let keep = |entries: &mut VecDeque<Entry>| entries.push_front(entry);
                    self.queue.keep(state, keep);
                    self.queue.pass_on(state);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lab_workload::{SharedState, Step, Template};

    use super::*;

    /// Returns the same queue on this number of workers.
    fn queue(at_most: u32, workers: usize) -> Vec<Rc<Queue>> {
        let mut workload: Workload<Template> = Workload::of("queues", Vec::<Step>::new());
        workload.shared.push(SharedState {
            name: "q".to_owned(),
            kind: SharedKind::Queue { at_most },
        });
        let queues = Queues::of([&workload].into_iter(), workers);
        let of = |worker| Rc::clone(queues.of_worker(worker).named("q").unwrap());
        (0..workers).map(of).collect()
    }

    fn entry(number: usize) -> Entry {
        number.to_string().into()
    }

    #[test]
    fn a_queue_has_as_many_entries_as_it_may_and_all_come_out_in_order() {
        for at_most in [1, 2, 63, 64, 65, 1000] {
            let queue = &queue(at_most, 1)[0];
            let kept = (0..2000).filter(|number| queue.put(entry(*number)));
            let kept: Vec<usize> = kept.collect();
            assert_eq!(kept, (0..at_most as usize).collect::<Vec<_>>());
            let out = std::iter::from_fn(|| queue.take());
            let out: Vec<Entry> = out.collect();
            assert_eq!(out, kept.into_iter().map(entry).collect::<Vec<_>>());
        }
    }

    #[test]
    fn workers_share_what_exceeds_their_own() {
        let sides = queue(1000, 2);
        (0..200).for_each(|number| assert!(sides[0].put(entry(number))));
        // The first 64 are the first worker's, the others go to any worker.
        assert_eq!(sides[1].take(), Some(entry(64)));
        assert_eq!(sides[0].take(), Some(entry(0)));
        let rest = (0..).map_while(|_| sides[1].take()).count();
        assert_eq!(rest, 135);
        // Later entries follow the kept ones.
        assert!(sides[0].put(entry(200)));
        let rest: Vec<Entry> = (0..).map_while(|_| sides[0].take()).collect();
        let expected: Vec<Entry> = (1..64).chain([200]).map(entry).collect();
        assert_eq!(rest, expected);
    }

    #[test]
    fn who_stops_waiting_leaves_what_it_was_given_to_others() {
        let queue = &queue(10, 1)[0];
        let (first, second) = (queue.wait(), queue.wait());
        assert!(queue.put(entry(1)));
        drop(first);
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        assert_eq!(
            Pin::new(&mut Box::pin(second)).poll(cx),
            Poll::Ready(entry(1))
        );
        let third = queue.wait();
        assert!(queue.put(entry(2)));
        drop(third);
        assert_eq!(queue.take(), Some(entry(2)));
        for _ in 0..1000 {
            drop(queue.wait());
        }
        assert!(queue.state.borrow().waiters.is_empty());
        assert_eq!(queue.common().hungry.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn threads_lose_nothing_and_give_nothing_twice() {
        const EACH: usize = 20_000;
        let mut workload: Workload<Template> = Workload::of("queues", Vec::<Step>::new());
        workload.shared.push(SharedState {
            name: "q".to_owned(),
            kind: SharedKind::Queue { at_most: 1_000_000 },
        });
        let queues = Queues::of([&workload].into_iter(), 3);
        let all_ended = Arc::new(std::sync::Barrier::new(3));
        let work = |worker: usize| {
            let (queues, all_ended) = (queues.clone(), Arc::clone(&all_ended));
            std::thread::spawn(move || {
                let own = queues.of_worker(worker);
                let serving = own.clone();
                let queue = Rc::clone(own.named("q").unwrap());
                let put = async {
                    // The third only takes.
                    for number in (0..EACH).filter(|_| worker < 2) {
                        assert!(queue.put(entry(worker * EACH + number)));
                        if number % 100 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                };
                let take = async {
                    let mut taken = Vec::new();
                    // So few that the entries kept by ended workers are not needed.
                    while taken.len() < EACH / 2 {
                        let one = match queue.take() {
                            Some(one) => one,
                            None => queue.wait().await,
                        };
                        taken.push(one.parse::<usize>().unwrap());
                    }
                    taken
                };
                let both = async { tokio::join!(put, take).1 };
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .build()
                    .unwrap();
                let taken = runtime.block_on(async {
                    tokio::select! {
                        taken = both => taken,
                        () = serving.serve() => unreachable!("it never ends"),
                    }
                });
                all_ended.wait();
                (taken, std::iter::from_fn(|| queue.take()).count())
            })
        };
        let workers: Vec<_> = (0..3).map(work).collect();
        let ended: Vec<(Vec<usize>, usize)> =
            workers.into_iter().map(|one| one.join().unwrap()).collect();
        let mut taken: Vec<usize> = ended.iter().flat_map(|(taken, _)| taken.clone()).collect();
        let left: usize = ended.iter().map(|(_, left)| left).sum();
        assert_eq!(taken.len() + left, 2 * EACH, "{left} were left");
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len() + left, 2 * EACH, "one was given twice");
    }
}
