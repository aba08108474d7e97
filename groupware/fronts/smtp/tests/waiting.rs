//! Sessions beside one that waits for the store, which is a remote database.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use groupware_front_smtp::{Role, Smtp, SmtpLimits, start};
use groupware_net::{Networks, TrustedNetworks};
use groupware_service::{Service, Settings};
use groupware_store::{
    Batch, Engine, Outcome, Record, Snapshot, Store, StoreError, StoreOptions, Writer,
};
use tokio::sync::watch;

/// A store in memory that can't be read while it is closed.
#[derive(Clone)]
struct Gate {
    store: Store,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    waiting: usize,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        self.state.0.lock().unwrap().is_closed = is_closed;
        self.state.1.notify_all();
    }

    /// Waits until a reader waits for it.
    fn wait_for_waiting(&self) {
        let state = self.state.0.lock().unwrap();
        let waited = self.state.1.wait_while(state, |state| state.waiting == 0);
        drop(waited.unwrap());
    }
}

impl Engine for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        let mut state = self.state.0.lock().unwrap();
        state.waiting += 1;
        self.state.1.notify_all();
        let mut state = self
            .state
            .1
            .wait_while(state, |state| state.is_closed)
            .unwrap();
        state.waiting -= 1;
        drop(state);
        Ok(Box::new(self.clone()))
    }

    fn data_bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

impl Snapshot for Gate {
    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: &mut dyn FnMut(&str, &[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store
            .read(|snapshot| snapshot.walk(after, limit, visit))
    }

    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        self.store.read(|snapshot| snapshot.get(partition, key))
    }

    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store
            .read(|snapshot| snapshot.scan(partition, from, to, limit, visit))
    }
}

impl Writer for Gate {
    fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
        let commits = group
            .iter()
            .map(|batch| self.store.commit_blocking((*batch).clone()));
        outcomes.extend(commits);
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // Ends a test that would wait for ever.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut client = Self(BufReader::new(stream));
        client.expect("220");
        client
    }

    fn say(&mut self, line: &str) {
        let stream = self.0.get_mut();
        stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    fn expect(&mut self, code: &str) {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            assert!(line.starts_with(code), "{line:?}");
            if !line[3..].starts_with('-') {
                return;
            }
        }
    }
}

#[test]
fn a_session_that_waits_for_the_store_keeps_no_other_waiting() {
    let gate = Gate {
        store: Store::memory(StoreOptions::default()).unwrap(),
        state: Arc::default(),
    };
    let store = Store::over(gate.clone(), gate.clone(), &StoreOptions::default()).unwrap();
    let mut settings = Settings::default();
    settings.auth.is_shared = true;
    let service = Service::start(store, settings).unwrap();
    let known = TrustedNetworks::new(Networks::loopback(), Networks::default());
    let smtp = Smtp::new(service, None, SmtpLimits::default(), false, known);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    let thread = start(vec![(listener, Role::Receive)], smtp, stopping).unwrap();

    let mut waiting = Client::new(address);
    for line in ["EHLO there", "MAIL FROM:<x@pier.example>"] {
        waiting.say(line);
        waiting.expect("250");
    }
    gate.set(true);
    waiting.say("RCPT TO:<nobody@localhost>");
    gate.wait_for_waiting();
    let mut other = Client::new(address);
    for line in ["EHLO there", "NOOP", "MAIL FROM:<y@pier.example>"] {
        other.say(line);
        other.expect("250");
    }
    gate.set(false);
    waiting.expect("550");

    drop((waiting, other));
    stop.send_replace(true);
    thread.join().unwrap().unwrap();
}
