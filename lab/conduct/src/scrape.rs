//! Asks a node_exporter for its counters beside a trial, in a thread of its own: the conductor
//! waits for nobody. It understands no answer.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_driver::Clock;

use crate::clock::pause;
use crate::http::{Ask, exchange};

/// It is asked this often; an answer costs its machine some ten milliseconds.
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait for an answer.
const WITHIN: Duration = Duration::from_secs(5);
/// Answers that may wait for the conductor.
const QUEUE: usize = 4;

/// Where a node_exporter answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exporter {
    /// Host and port; safe to print, where the path may hold a secret.
    authority: String,
    path: String,
}

impl Exporter {
    /// From its URL; what is wrong with it otherwise, without what may be secret.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        if url.starts_with("https://") {
            let what = "a node_exporter over https can't be read; give its http address";
            return Err(what.to_owned());
        }
        let form = || "the address of the node_exporter is not of the form http://host:port/path";
        let rest = url.strip_prefix("http://").ok_or_else(form)?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.is_empty() || authority.contains('@') {
            return Err(form().to_owned());
        }
        let bare = authority.rsplit(']').next().unwrap_or_default();
        let port = if bare.contains(':') { "" } else { ":80" };
        Ok(Self {
            authority: format!("{authority}{port}"),
            path: if path.is_empty() { "/metrics" } else { path }.to_owned(),
        })
    }

    fn ask(&self, stop: &AtomicBool) -> Result<String, String> {
        let mut addresses = self
            .authority
            .to_socket_addrs()
            .map_err(|error| error.to_string())?;
        let address: SocketAddr = addresses.next().ok_or("it has no address")?;
        let ask = Ask {
            method: "GET",
            path: &self.path,
            token: None,
            body: &[],
            within: WITHIN,
        };
        let answer = exchange(address, &ask, stop).map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        String::from_utf8(answer.body).map_err(|_| "its answer is no text".to_owned())
    }
}

/// An answer, or why there is none, and when it came.
type Answer = (Duration, Result<String, String>);

/// A thread that asks until it is dropped.
#[derive(Debug)]
pub(crate) struct Scraper {
    exporter: Exporter,
    answers: Receiver<Answer>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    asked: u64,
    failed: u64,
    problem: String,
}

impl Scraper {
    /// Begins to ask; times are on the trial's clock.
    pub(crate) fn start(exporter: Exporter, clock: Clock) -> std::io::Result<Self> {
        let (sender, answers) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let (told, whom) = (Arc::clone(&stop), exporter.clone());
        let thread = std::thread::Builder::new()
            .name("scraper".to_owned())
            .spawn(move || ask_until(&told, &whom, clock, &sender))?;
        Ok(Self {
            exporter,
            answers,
            stop,
            thread: Some(thread),
            asked: 0,
            failed: 0,
            problem: String::new(),
        })
    }

    /// The answers since the last call, given to `take`, which may refuse them.
    pub(crate) fn take(&mut self, mut take: impl FnMut(Duration, &str) -> Result<(), String>) {
        loop {
            let (at, answer) = match self.answers.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            };
            self.asked += 1;
            if let Err(problem) = answer.and_then(|text| take(at, &text)) {
                self.failed += 1;
                self.problem = problem;
            }
        }
    }

    /// A sentence about answers that did not come.
    pub(crate) fn note(&self) -> Option<String> {
        let Self { asked, failed, .. } = self;
        let whom = &self.exporter.authority;
        if *asked == 0 {
            return Some(format!(
                "The node_exporter at {whom} did not answer in time."
            ));
        }
        (*failed > 0).then(|| {
            format!(
                "{failed} of {asked} answers of the node_exporter at {whom} are missing, and so \
                 are the host's counters of those moments: {}.",
                self.problem
            )
        })
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn ask_until(stop: &AtomicBool, exporter: &Exporter, clock: Clock, answers: &SyncSender<Answer>) {
    let mut next = clock.now();
    while !stop.load(Ordering::Relaxed) {
        let answer = exporter.ask(stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // A conductor that is held up misses some.
        let _ = answers.try_send((clock.now(), answer));
        next = (next + EVERY).max(clock.now());
        while clock.now() < next && !stop.load(Ordering::Relaxed) {
            pause(next.saturating_sub(clock.now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_and_a_path() {
        let of = |url: &str| Exporter::new(url).map(|e| (e.authority, e.path));
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(of("http://a:9100/metrics"), pair("a:9100", "/metrics"));
        assert_eq!(of("http://a"), pair("a:80", "/metrics"));
        assert_eq!(of("http://[::1]/x?y"), pair("[::1]:80", "/x?y"));
        assert_eq!(of("http://[::1]:9/x"), pair("[::1]:9", "/x"));
        for url in ["https://a", "a:9100", "http://", "http://u:p@a/x"] {
            assert!(of(url).is_err(), "{url}");
        }
    }
}
