//! Behaviour that the engine requires of every client, tested over real sockets: a new client adds a [`Subject`].
//! Protocol details are tested in their own modules.

mod subjects;

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_workload::{Capture, CaptureSource, Request, Speech, Template, User, UserScope, Workload};
use tokio::task::LocalSet;

use lab_client::{
    BaseUrl, Client, ErrorClass, Exchange, Limits, Nanos, Phase, Phases, Protocol, Resolve, Server,
    Sources, Time, Tls,
};

use crate::time::tokios::TokioTime;

/// The text of every successful response.
const TEXT: &str = "hello";

/// How a server handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Responds with [`TEXT`].
    Answer,
    /// Refuses, as its protocol does.
    Refuse,
    /// Sends data that violates its protocol.
    Garbage,
    /// Sends the start of a response, then ends the connection.
    Half,
    /// Sends nothing until the client is gone.
    Silence,
}

/// A client, and a server of its protocol.
trait Subject {
    type Client: Client<Time = TokioTime>;

    /// Returns a request that [`TEXT`] answers, and its protocol.
    fn request() -> (Request, Speech);

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client;

    /// Runs the exchange on a new connection before the first request.
    fn greet(stream: &mut TcpStream) -> io::Result<()>;

    /// Reads a whole request; false if the client is gone.
    fn hear(stream: &mut TcpStream) -> io::Result<bool>;

    /// Handles the request accordingly; silence sends nothing.
    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()>;
}

/// Returns a request without content that keeps its response in `kept`.
fn request() -> Request {
    let capture = Capture {
        variable: "kept".to_owned(),
        slot: 0,
        source: CaptureSource::Body,
    };
    Request {
        captures: vec![capture],
        ..Request::get(Template::literal(""))
    }
}

fn workload<S: Subject>() -> Workload {
    let (request, speech) = S::request();
    let step = lab_workload::Step::of("it", vec![request]);
    Workload {
        variables: Arc::from(["kept".to_owned()]),
        speech,
        ..Workload::of("w", vec![step])
    }
}

/// A server that handles the requests of its first connection by the first list, and so on. It reports each request
/// received, and each connection ended.
struct Serving {
    address: SocketAddr,
    told: Receiver<&'static str>,
    thread: JoinHandle<io::Result<()>>,
}

fn serve<S: Subject>(connections: &'static [&'static [Act]]) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = sync_channel(64);
    let thread = std::thread::spawn(move || {
        for acts in connections {
            let (mut stream, _) = listener.accept()?;
            S::greet(&mut stream)?;
            act::<S>(&mut stream, acts, &tell)?;
            drop(stream);
            let _nobody_asks = tell.send("ended");
        }
        Ok(())
    });
    Serving {
        address,
        told,
        thread,
    }
}

fn act<S: Subject>(
    stream: &mut TcpStream,
    acts: &[Act],
    tell: &SyncSender<&'static str>,
) -> io::Result<()> {
    for act in acts {
        if !S::hear(stream)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let _nobody_asks = tell.send("heard");
        match act {
            Act::Silence => {
                let read = stream.read(&mut [0; 1])?;
                assert_eq!(read, 0, "the client says more, and has no answer yet");
            }
            act => S::act(stream, *act)?,
        }
    }
    Ok(())
}

/// A user of a client, with the test's time.
struct Visiting<S: Subject> {
    client: S::Client,
    session: <S::Client as Client>::Session,
    scope: UserScope,
    time: TokioTime,
}

impl<S: Subject> Visiting<S> {
    fn new(address: SocketAddr, timeout: Duration) -> Self {
        let workload = workload::<S>();
        let time = TokioTime::start();
        let client = S::client(&workload, server(address, timeout), time.clone());
        Self {
            session: client.session(),
            client,
            scope: workload.scope(ONLY_USER, &[]).unwrap(),
            time,
        }
    }

    async fn exchange(&mut self) -> Values {
        let deadline = self.time.timer();
        let before = self.time.now();
        let exchange = self
            .client
            .exchange(&mut self.session, 0, &mut self.scope, &deadline);
        let exchange = exchange.await;
        let after = self.time.now();
        let Exchange::Done {
            sent,
            ended,
            phases,
            result,
            sizes,
            ..
        } = exchange
        else {
            panic!("nothing was sent: {exchange:?}");
        };
        assert!(before <= sent && sent <= ended && ended <= after);
        Values {
            took: ended - sent,
            phases,
            class: result.map_err(|failure| failure.class),
            wire: sizes.wire,
        }
    }

    fn kept(&self) -> Option<String> {
        self.scope.get("kept")
    }

    fn connects(&self) -> u64 {
        self.client.take_counts().connects
    }
}

struct Values {
    took: Nanos,
    phases: Phases,
    class: Result<(), ErrorClass>,
    wire: u64,
}

/// The only user of a client.
pub(crate) const ONLY_USER: User = User {
    first: 0,
    index: 0,
    users: 1,
    seed: 1,
    block: 0,
    base_date: lab_workload::DEFAULT_DATES_FROM,
};

pub(crate) fn server(address: SocketAddr, request_timeout: Duration) -> Server {
    Server {
        base: format!("tcp://{address}").parse::<BaseUrl>().unwrap(),
        addresses: Arc::from([address]),
        tls: Tls::default(),
        resolve: Resolve::default(),
        sources: Sources::default(),
        protocol: Protocol::default(),
        limits: Limits {
            request_timeout,
            connect_timeout: LONG,
            max_response_bytes: 1 << 20,
            max_header_bytes: 64 << 10,
            keep_alive_idle: LONG,
        },
    }
}

pub(crate) const LONG: Duration = Duration::from_secs(300);
/// Time limit for a greeting on any machine.
const SHORT: Duration = Duration::from_secs(2);

fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test);
}

/// Runs one user against a server that handles requests as listed.
fn with<S: Subject>(
    (timeout, acts): (Duration, &'static [&'static [Act]]),
    test: impl AsyncFnOnce(Visiting<S>, &Receiver<&str>),
) {
    let Serving {
        address,
        told,
        thread,
    } = serve::<S>(acts);
    run(test(Visiting::new(address, timeout), &told));
    thread.join().unwrap().unwrap();
}

fn one_operation_is_one_exchange<S: Subject>() {
    with::<S>((LONG, &[&[Act::Answer]]), async |mut user, _| {
        let told = user.exchange().await;
        assert_eq!(told.class, Ok(()));
        assert_eq!(user.kept().as_deref(), Some(TEXT));
        assert!(told.wire >= TEXT.len() as u64);
        assert_eq!(user.connects(), 1);
        let phases = [Phase::Connect, Phase::Wait, Phase::Receive];
        let phases = phases.map(|phase| told.phases.0[phase as usize].expect("each was there"));
        assert!(phases.iter().sum::<Nanos>() <= told.took);
        user.client.forget(0, &mut user.scope);
        assert_eq!(user.kept(), None);
    });
}

fn a_connection_is_used_again<S: Subject>() {
    let acts: &[&[Act]] = &[&[Act::Answer, Act::Refuse, Act::Answer]];
    with::<S>((LONG, acts), async |mut user, _| {
        assert_eq!(user.exchange().await.class, Ok(()));
        assert_eq!(user.exchange().await.class, Err(ErrorClass::Status));
        let told = user.exchange().await;
        assert_eq!(told.class, Ok(()));
        assert_eq!(told.phases.0[Phase::Connect as usize], None);
        assert_eq!(user.connects(), 1);
    });
}

fn what_is_not_of_the_protocol_is_no_answer<S: Subject>() {
    let acts: &[&[Act]] = &[&[Act::Garbage], &[Act::Answer]];
    with::<S>((LONG, acts), async |mut user, _| {
        assert_eq!(user.exchange().await.class, Err(ErrorClass::Check));
        assert_eq!(user.exchange().await.class, Ok(()));
        assert_eq!(user.connects(), 2, "what follows garbage is garbage");
    });
}

fn a_connection_that_breaks_is_a_reset<S: Subject>() {
    let acts: &[&[Act]] = &[&[Act::Half], &[Act::Answer]];
    with::<S>((LONG, acts), async |mut user, _| {
        let told = user.exchange().await;
        assert_eq!(told.class, Err(ErrorClass::Reset));
        assert_eq!(told.phases, Phases::default(), "failures have none");
        assert_eq!(user.exchange().await.class, Ok(()));
        assert_eq!(user.connects(), 2);
    });
}

fn an_answer_that_is_late_is_none<S: Subject>() {
    let acts: &[&[Act]] = &[&[Act::Silence], &[Act::Silence]];
    with::<S>((SHORT, acts), async |mut user, _| {
        for _ in 0..2 {
            let told = user.exchange().await;
            assert_eq!(told.class, Err(ErrorClass::Timeout));
            assert!(told.took >= lab_client::time::nanos(SHORT));
        }
        assert_eq!(
            user.connects(),
            2,
            "a late answer must not be the next one's"
        );
    });
}

fn a_closed_port_is_no_connection<S: Subject>() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    run(async {
        let mut user = Visiting::<S>::new(address, LONG);
        assert_eq!(user.exchange().await.class, Err(ErrorClass::Connect));
        assert_eq!(user.connects(), 0);
    });
}

fn who_drops_an_exchange_ends_its_connection<S: Subject>() {
    with::<S>((LONG, &[&[Act::Silence]]), async |user, told| {
        let Visiting {
            client,
            mut session,
            mut scope,
            time,
        } = user;
        let deadline = time.timer();
        let heard = async {
            while told.try_recv() != Ok("heard") {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            exchange = client.exchange(&mut session, 0, &mut scope, &deadline) => {
                panic!("nobody answered: {exchange:?}")
            }
            () = heard => {}
        }
        drop(session);
        // The server's thread ends once the connection has.
    });
}

fn a_connection_that_ended_while_idle_is_no_error<S: Subject>() {
    let acts: &[&[Act]] = &[&[Act::Answer], &[Act::Answer]];
    with::<S>((LONG, acts), async |mut user, told| {
        assert_eq!(user.exchange().await.class, Ok(()));
        while told.try_recv() != Ok("ended") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Lets the runtime process it.
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(user.exchange().await.class, Ok(()));
        assert_eq!(user.connects(), 2);
    });
}

/// All tests, for one client.
macro_rules! conforms {
    ($name:ident, $subject:ty) => {
        mod $name {
            conforms!(@ $subject:
                one_operation_is_one_exchange,
                a_connection_is_used_again,
                what_is_not_of_the_protocol_is_no_answer,
                a_connection_that_breaks_is_a_reset,
                an_answer_that_is_late_is_none,
                a_closed_port_is_no_connection,
                who_drops_an_exchange_ends_its_connection,
                a_connection_that_ended_while_idle_is_no_error,
            );
        }
    };
    (@ $subject:ty: $($test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                super::$test::<$subject>();
            }
        )*
    };
}

conforms!(http, super::subjects::Web);
conforms!(redis, super::subjects::RedisLike);
conforms!(smtp, super::subjects::MailServer);
conforms!(imap, super::subjects::MailReader);
conforms!(postgres, super::subjects::Database);
conforms!(grpc, super::subjects::Calls);
/// A user on a shared connection ends a call, and not the connection.
mod grpc_shared {
    conforms!(@ super::subjects::SharedCalls:
        one_operation_is_one_exchange,
        a_connection_is_used_again,
        what_is_not_of_the_protocol_is_no_answer,
        a_connection_that_breaks_is_a_reset,
        a_closed_port_is_no_connection,
        a_connection_that_ended_while_idle_is_no_error,
    );
}
