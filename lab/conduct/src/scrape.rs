//! Reads the counters of a node_exporter besides a trial, in a thread of its own, so that the conductor never waits. It
//! parses no response.

use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_archive::Warning;
use lab_client::Tls;
use lab_driver::{BaseUrl, Clock};
use lab_host::clock::pause;
use lab_machine::http::{Ask, Client};

/// Interval of requests; a response costs its machine some ten milliseconds.
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a response.
const WITHIN: Duration = Duration::from_secs(5);
/// Most queued responses.
const QUEUE: usize = 4;

/// The address of a node_exporter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exporter {
    /// Safe to print, where the path may hold a secret.
    server: BaseUrl,
    path: String,
}

impl Exporter {
    /// Parses its URL; returns what is wrong with it, without possible secrets.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let (server, path) = BaseUrl::split(url).map_err(|_| {
            "the address of the node_exporter is not of the form http://host:port/path".to_owned()
        })?;
        let path = if path.is_empty() { "/metrics" } else { path };
        Ok(Self {
            server,
            path: path.to_owned(),
        })
    }

    /// A client for one connection.
    fn client(&self) -> Result<Client, String> {
        let mut addresses = (self.server.host.as_str(), self.server.port)
            .to_socket_addrs()
            .map_err(|error| error.to_string())?;
        let address = addresses.next().ok_or("it has no address")?;
        Ok(Client::new(self.server.clone(), address, Tls::default()))
    }

    fn ask(&self, client: &mut Client, stop: &AtomicBool) -> Result<String, String> {
        let answer = client
            .exchange(&Ask::get(&self.path, WITHIN), stop)
            .map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        String::from_utf8(answer.body).map_err(|_| "its answer is no text".to_owned())
    }
}

/// The time of a response, and the response or why there is none.
type Answer = (Duration, Result<String, String>);

/// A thread that sends requests until it is dropped.
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
    /// Starts to send requests; times are on the trial's clock.
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

    /// Passes the responses since the last call to `take`, which may reject them.
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

    /// Missing responses.
    pub(crate) fn missed(&self) -> Option<Warning> {
        let Self { asked, failed, .. } = *self;
        (asked == 0 || failed > 0).then(|| Warning::ExporterMissed {
            server: self.exporter.server.authority().to_owned(),
            asked,
            missing: failed,
            problem: self.problem.clone(),
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
    let mut kept = None;
    while !stop.load(Ordering::Relaxed) {
        // A connection that failed is not used again.
        let answer = kept.take().map_or_else(|| exporter.client(), Ok);
        let answer = answer.and_then(|mut client| {
            let text = exporter.ask(&mut client, stop)?;
            kept = Some(client);
            Ok(text)
        });
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // A delayed conductor misses some.
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
        let of = |url: &str| Exporter::new(url).map(|e| (e.server.to_string(), e.path));
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        let exporter = "http://a:9100";
        assert_eq!(of("http://a:9100/metrics"), pair(exporter, "/metrics"));
        assert_eq!(of("http://a"), pair("http://a", "/metrics"));
        assert_eq!(of("https://a/x"), pair("https://a", "/x"));
        assert_eq!(of("http://[::1]/x?y"), pair("http://[::1]", "/x?y"));
        assert_eq!(of("http://[::1]:9/x"), pair("http://[::1]:9", "/x"));
        for url in ["ftp://a", "a:9100", "http://", "http://u:p@a/x"] {
            assert!(of(url).is_err(), "{url}");
        }
    }
}
