//! Asks a system during the hold what it counts: each ask on a thread of its own, so that a late answer delays no other
//! one. It understands no answer.

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_asked::{MOST_ANSWER_BYTES, Recorded, Recorder, WITHIN};
use lab_client::{BaseUrl, Resolve, Tls, TlsOptions};
use lab_driver::Clock;
use lab_host::clock::{Stopwatch, pause};
use lab_host::cores::{self, Pinned};
use lab_study::{AskSpec, By, Secrets};

use crate::child::Child;
use crate::http::{Ask, Client};
use crate::start;

/// Between two looks at what ends the asking.
const LOOK: Duration = Duration::from_millis(50);
/// Between two looks at a command that has answered and is about to end.
const END: Duration = Duration::from_millis(2);
/// Largest part of what a command complains about.
const MOST_COMPLAINT: usize = 4 << 10;
/// The maximum letters of a reported error.
const LETTERS: usize = 200;

/// What a system is asked with.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The environment of commands, beside that of this process.
    pub env: Vec<(String, String)>,
    /// The folder that they start in.
    pub folder: PathBuf,
    /// The cores that asking threads and their commands run on, at the usual priority; all if empty.
    pub cores: Vec<u32>,
    /// What is masked in answers.
    pub secrets: Secrets,
    /// The server that `tls` names, if it names one.
    pub base: BaseUrl,
    /// TLS as for the users of the system.
    pub tls: TlsOptions,
    /// Addresses of hosts as for the users of the system.
    pub resolve: Resolve,
}

/// Asks that go on.
#[derive(Debug)]
pub struct Asking {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Recorded>>,
}

impl Asking {
    /// Asks from the begin of the hold to its end on the trial's clock.
    #[must_use]
    pub fn start(asks: Vec<AskSpec>, asker: &Asker, clock: Clock, hold: &Range<Duration>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = asks.into_iter().map(|ask| {
            let (stop, asker, hold) = (Arc::clone(&stop), asker.clone(), hold.clone());
            std::thread::spawn(move || {
                // Fails if the cores are gone or none are named; the thread then stays on its cores.
                let _pinned = Pinned::to(&asker.cores);
                ask_until(&ask, &asker, clock, hold, &stop)
            })
        });
        Self {
            threads: threads.collect(),
            stop,
        }
    }

    /// Asks a last time, where the hold isn't over, and gives all answers.
    #[must_use]
    pub fn end(mut self) -> Vec<Recorded> {
        self.signal_stop();
        let ended = self.threads.drain(..).map(JoinHandle::join);
        // A thread that panicked has already printed its message.
        ended.filter_map(Result::ok).collect()
    }

    fn signal_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in &self.threads {
            thread.thread().unpark();
        }
    }
}

impl Drop for Asking {
    /// Those of a trial that has failed end on their own.
    fn drop(&mut self) {
        self.signal_stop();
    }
}

fn ask_until(
    ask: &AskSpec,
    asker: &Asker,
    clock: Clock,
    hold: Range<Duration>,
    stop: &AtomicBool,
) -> Recorded {
    let length = hold.end.saturating_sub(hold.start);
    let mut recorder = Recorder::new(&ask.name, ask.how.clone(), length);
    let every = ask.how.every(length);
    let mut client = None;
    let mut due = hold.start;
    let mut began = false;
    loop {
        while clock.now() < due && !stop.load(Ordering::Relaxed) {
            pause(due.saturating_sub(clock.now()).min(LOOK));
        }
        let is_over = stop.load(Ordering::Relaxed);
        if is_over && !began {
            return recorder.finish();
        }
        began = true;
        let is_last = is_over || due >= hold.end;
        let before = clock.now();
        let answer = match &ask.by {
            By::Command(argv) => by_command(argv, asker),
            By::Http(url) => by_http(url, asker, &mut client),
        };
        // What was counted is that of a moment in between.
        let at = before + clock.now().saturating_sub(before) / 2;
        let answer = answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let answer = match asker.secrets.is_empty() {
            true => answer,
            false => answer
                .map(|text| asker.secrets.masked(&text))
                .map_err(|problem| asker.secrets.masked(&problem)),
        };
        recorder.take(at, answer.as_deref().map_err(Clone::clone), is_last);
        if is_last {
            return recorder.finish();
        }
        due = (due + every).max(clock.now());
        // The last answer is that of the end.
        if due + every / 2 > hold.end {
            due = hold.end;
        }
    }
}

fn too_large() -> String {
    format!("its answer is larger than {} MiB", MOST_ANSWER_BYTES >> 20)
}

fn late() -> String {
    format!("no answer within {} s", WITHIN.as_secs())
}

fn by_http(
    url: &str,
    asker: &Asker,
    kept: &mut Option<(Client, String)>,
) -> Result<Vec<u8>, String> {
    let (mut client, path) = match kept.take() {
        Some(kept) => kept,
        None => client(url, asker)?,
    };
    let never = AtomicBool::new(false);
    let answer = client
        .exchange(&Ask::get(&path, WITHIN), &never)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => late(),
            _ => error.to_string(),
        })?;
    *kept = Some((client, path));
    if answer.status != 200 {
        return Err(format!("it answers with status {}", answer.status));
    }
    match answer.body.len() > MOST_ANSWER_BYTES {
        true => Err(too_large()),
        false => Ok(answer.body),
    }
}

fn client(url: &str, asker: &Asker) -> Result<(Client, String), String> {
    let wrong = || "its address is not of the form http://host:port/path".to_owned();
    let (server, path) = BaseUrl::split(url).map_err(|_| wrong())?;
    let path = if path.is_empty() { "/" } else { path }.to_owned();
    let addresses = asker.resolve.addresses(&server);
    let addresses = addresses.map_err(|error| error.to_string())?;
    let address = addresses.first().ok_or("its host has no address")?;
    let mut tls = asker.tls.clone();
    if server != asker.base {
        // Another server has the name of its host in its certificate.
        tls.server_name = None;
    }
    Ok((Client::new(server, *address, Tls::new(tls)), path))
}

/// What a command prints. It is killed with all that it started if it takes too long.
fn by_command(argv: &[String], asker: &Asker) -> Result<Vec<u8>, String> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err("it names no program".to_owned());
    };
    let watch = Stopwatch::start();
    let mut command = Command::new(program);
    start::without_own_environment(&mut command);
    command
        .args(arguments)
        .envs(asker.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&asker.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Those of this thread.
    let cores = cores::allowed().map_err(|error| error.to_string())?;
    let mut child = Child::start(command, &cores)
        .map_err(|error| format!("{program} can't be started: {error}"))?;
    let (output, errors) = child.pipes();
    let printed = bytes(output, MOST_ANSWER_BYTES);
    let complaint = bytes(errors, MOST_COMPLAINT);
    let left = || WITHIN.saturating_sub(watch.elapsed());
    let answer = printed.recv_timeout(left()).map_err(|_| late())?;
    if answer.len() > MOST_ANSWER_BYTES {
        return Err(too_large());
    }
    loop {
        match child.own_end() {
            Ok(Some(status)) if status.success() => return Ok(answer),
            Ok(Some(status)) => {
                let said = complaint.recv_timeout(left()).unwrap_or_default();
                let said = String::from_utf8_lossy(&said);
                let line = said.lines().map(str::trim).find(|line| !line.is_empty());
                let line: String = line.unwrap_or_default().chars().take(LETTERS).collect();
                let line = line.trim_end_matches('.');
                let end = format!("{program} ended with {status}");
                return Err(match line.is_empty() {
                    true => end,
                    false => format!("{end}: {line}"),
                });
            }
            Ok(None) => {}
            Err(error) => return Err(format!("{program} can't be watched: {error}")),
        }
        if left().is_zero() {
            return Err(late());
        }
        pause(END);
    }
}

/// The bytes of a pipe up to its end, and no more than one beyond the most. The thread ends with the pipe.
fn bytes(pipe: Option<impl Read + Send + 'static>, most: usize) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let mut read = Vec::new();
        if let Some(pipe) = pipe {
            // What was read up to a failure is what there is.
            let _ = pipe.take(most as u64 + 1).read_to_end(&mut read);
        }
        // Fails if nobody waits any more.
        let _ = sender.send(read);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use lab_asked::{How, Read as Form};
    use lab_client::PemFile;
    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;

    fn asker() -> Asker {
        Asker {
            env: vec![("WHO".to_owned(), "it".to_owned())],
            folder: "/".into(),
            cores: Vec::new(),
            secrets: Secrets::default(),
            base: "http://127.0.0.1:80".parse().unwrap(),
            tls: TlsOptions::default(),
            resolve: Resolve::new(&[("app.test".to_owned(), [127, 0, 0, 1].into())]),
        }
    }

    fn shell(script: &str) -> Result<Vec<u8>, String> {
        by_command(&["sh", "-c", script].map(str::to_owned), &asker())
    }

    #[test]
    fn a_command_answers_in_time_or_not_at_all() {
        assert_eq!(shell("echo $WHO: 1").unwrap(), b"it: 1\n");
        assert_eq!(
            shell("echo no server. >&2; exit 3").unwrap_err(),
            "sh ended with exit status: 3: no server"
        );
        assert_eq!(shell("exec sleep 600").unwrap_err(), "no answer within 1 s");
        assert_eq!(
            shell("exec head -c 5000000 /dev/zero").unwrap_err(),
            "its answer is larger than 4 MiB"
        );
        let none = by_command(&["/no/such/program".to_owned()], &asker()).unwrap_err();
        assert!(
            none.starts_with("/no/such/program can't be started"),
            "{none}"
        );
    }

    #[test]
    fn an_address_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // The study says where this host is.
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://app.test:{port}/stats?x=1");
        let server = std::thread::spawn(move || {
            for answer in [
                "200 OK\r\nContent-Length: 5\r\n\r\na: 1\n",
                "503 No\r\nContent-Length: 0\r\n\r\n",
            ] {
                let (mut socket, _) = listener.accept().unwrap();
                let mut request = [0; 1000];
                let read = socket.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /stats?x=1 HTTP/1.1"));
                let answer = format!(
                    "HTTP/1.1 {}",
                    answer.replacen("\r\n", "\r\nConnection: close\r\n", 1)
                );
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut kept = None;
        assert_eq!(by_http(&url, &asker(), &mut kept).unwrap(), b"a: 1\n");
        assert_eq!(
            by_http(&url, &asker(), &mut kept).unwrap_err(),
            "it answers with status 503"
        );
        server.join().unwrap();
        assert!(by_http(&url, &asker(), &mut None).is_err());
        assert!(
            by_http("ftp://x", &asker(), &mut None)
                .unwrap_err()
                .contains("not of the form")
        );
    }

    #[test]
    fn a_system_is_trusted_as_by_its_users() {
        let name = "app.internal".to_owned();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![name.clone()]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(session, socket.unwrap());
                // A client that does not trust it sends nothing.
                if stream.read(&mut [0; 1000]).is_ok() {
                    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na: 1\n";
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        let url = format!("https://app.test:{port}/stats");
        let ask = |asker: &Asker| by_http(&url, asker, &mut None);
        let untrusting = asker();
        assert!(ask(&untrusting).is_err());
        let other = Asker {
            tls: TlsOptions {
                authorities: vec![PemFile {
                    name: "own.pem".to_owned(),
                    text: certificate.pem(),
                }],
                server_name: Some(name),
                ..TlsOptions::default()
            },
            ..untrusting
        };
        // The name is that of the system's own server, and this is another one.
        assert!(ask(&other).is_err());
        let own = Asker {
            base: format!("https://app.test:{port}").parse().unwrap(),
            ..other
        };
        assert_eq!(ask(&own).unwrap(), b"a: 1\n");
    }

    #[test]
    fn it_is_asked_at_the_begin_and_at_the_end() {
        let ask = AskSpec {
            name: "it".to_owned(),
            by: By::Command(["echo", "a: 1"].map(str::to_owned).to_vec()),
            how: How::of(Form::Lines),
        };
        let clock = Clock::start();
        let hold = Duration::from_millis(200)..Duration::from_millis(700);
        let asking = Asking::start(vec![ask.clone()], &asker(), clock, &hold);
        while clock.now() < hold.end {
            pause(LOOK);
        }
        let recorded = asking.end().remove(0);
        assert_eq!((recorded.asked, recorded.missed), (2, 0));
        assert!(recorded.answers[0].t_ms >= 200.0);
        // One that never began has no answers; one that ends early asks once more.
        let far = Duration::from_secs(600)..Duration::from_secs(700);
        let asking = Asking::start(vec![ask.clone()], &asker(), clock, &far);
        assert_eq!(asking.end().remove(0).asked, 0);
        let long = Duration::ZERO..Duration::from_secs(600);
        let asking = Asking::start(vec![ask], &asker(), clock, &long);
        pause(Duration::from_millis(300));
        let asked = asking.end().remove(0).asked;
        assert!((1..=2).contains(&asked), "{asked}");
    }
}
