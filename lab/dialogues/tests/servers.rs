//! Dialogues against Debian's servers, without an engine. Where a server is missing, its tests print that and pass.

mod mqtt;
mod raw;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab_client::dialogue::{Dialogue, DialogueClient};
use lab_client::{Client, ErrorClass, Exchange, Time as _};
use lab_workload::{
    Capture, CaptureSource, ProtocolRequest, Request, Speech, Template, UserScope, Workload,
};
use tokio::task::LocalSet;

use crate::conformance::{LONG, ONLY_USER, server};
use crate::time::tokios::TokioTime;

/// A server that is ended on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// Starts a server that listens at this port; `None` if it is not installed.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's wait for a program outside of it"
)]
fn start(program: &str, arguments: &[&str], port: Option<u16>) -> Option<Running> {
    let mut command = Command::new(program);
    command.args(arguments);
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(child) = started else {
        eprintln!("SKIPPED: {program} is not on this machine");
        return None;
    };
    let running = Running(child);
    let deadline = Instant::now() + Duration::from_secs(120);
    while let Some(port) = port {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "{program} listens");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(running)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Returns a request that keeps its response in `kept`.
fn request(said: ProtocolRequest) -> Request {
    let capture = Capture {
        variable: "kept".to_owned(),
        slot: 0,
        source: CaptureSource::Body,
    };
    Request {
        captures: vec![capture],
        ..Request::of_protocol(said)
    }
}

fn literal(text: &str) -> Template {
    Template::literal(text)
}

/// A user of a dialogue.
struct Playing<D: Dialogue> {
    client: DialogueClient<D, TokioTime>,
    session: <DialogueClient<D, TokioTime> as Client>::Session,
    scope: UserScope,
    time: TokioTime,
}

impl<D: Dialogue> Playing<D> {
    fn new(
        port: u16,
        speech: Speech,
        requests: Vec<ProtocolRequest>,
        new: impl FnOnce(&Workload) -> D,
    ) -> Self {
        let requests = requests.into_iter().map(request).collect();
        Self::of(port, speech, requests, new)
    }

    fn of(
        port: u16,
        speech: Speech,
        requests: Vec<Request>,
        new: impl FnOnce(&Workload) -> D,
    ) -> Self {
        let workload = Workload {
            variables: Arc::from(["kept".to_owned()]),
            speech,
            ..Workload::of("w", vec![lab_workload::Step::of("it", requests)])
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let server = server(address, LONG);
        let time = TokioTime::start();
        let client = DialogueClient::new(&workload, new(&workload), server, time.clone());
        Self {
            session: client.session(),
            client,
            scope: workload.scope(ONLY_USER, &[]).unwrap(),
            time,
        }
    }

    /// The number of connections that it has opened.
    fn client_connects(&self) -> u64 {
        self.client.take_counts().connects
    }

    /// Plays a request; returns the response, or the class and the text of its error.
    async fn play(&mut self, request: u32) -> Result<String, (ErrorClass, String)> {
        let deadline = self.time.timer();
        let exchange = self
            .client
            .exchange(&mut self.session, request, &mut self.scope, &deadline);
        match exchange.await {
            Exchange::Done { result: Ok(()), .. } => Ok(self.scope.get("kept").unwrap_or_default()),
            Exchange::Done {
                result: Err(failure),
                ..
            } => Err((failure.class, failure.detail.to_string())),
            other => panic!("nothing was sent: {other:?}"),
        }
    }
}

/// Starts a server that answers each read with the next text, and then closes the connection; returns its port.
fn sends(connections: &'static [&'static [&'static [u8]]]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for answers in connections {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in *answers {
                let _count = stream.read(&mut [0; 1024]).unwrap();
                stream.write_all(answer).unwrap();
            }
        }
    });
    port
}

fn run(future: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, future);
}
