//! Attachments in durable chunks, beside the same writes directly to the disk, and beside nginx, which stores whole
//! files and doesn't sync them.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::clock::now;
use crate::common::{Error, median};
use crate::nginx::Nginx;

const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS: usize = 8;
const AT_ONCE: usize = 4;
/// Attachments of a round, over all concurrent clients.
const PER_ROUND: usize = 100;
const ROUNDS: usize = 5;
const ADMIN_TOKEN: &str = "bench-admin-token-0123456789";

/// Prints the comparison. `base` must be on the disk to be measured.
pub(crate) fn compare(base: &Path) -> Result<(), Error> {
    let folder = tempfile::tempdir_in(base)?;
    let server = Plimsoll::start(&folder.path().join("plimsoll"))?;
    let dav = folder.path().join("dav");
    fs::create_dir(&dav)?;
    let nginx = Nginx::start_dav(&dav)?;
    let nginx_at = SocketAddr::from(([127, 0, 0, 1], nginx.port));
    let (mut disks, mut ours, mut nginxes) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up files and caches and is not counted.
    for round in 0..=ROUNDS {
        let raw = folder.path().join(format!("raw-{round}"));
        fs::create_dir(&raw)?;
        let disk = rate(|worker, number| write_raw(&raw, worker, number))?;
        fs::remove_dir_all(&raw)?;
        let our = server.rate(round)?;
        let nginx = rate_on(nginx_at, |connection, worker, number| {
            let path = format!("/{round}-{worker}-{number}");
            let body = chunks(round, worker, number).collect::<Vec<_>>().concat();
            connection.expect(&["201", "204"], "PUT", &path, "", &body)
        })?;
        fs::remove_dir_all(&dav)?;
        fs::create_dir(&dav)?;
        if round > 0 {
            disks.push(disk);
            ours.push(our);
            nginxes.push(nginx);
        }
    }
    print(&disks, &ours, &nginxes);
    Ok(())
}

fn print(disks: &[f64], ours: &[f64], nginxes: &[f64]) {
    let ratio = |rates: &[f64]| {
        median(
            rates
                .iter()
                .zip(disks)
                .map(|(rate, disk)| rate / disk)
                .collect(),
        )
    };
    let middle = |rates: &[f64]| median(rates.to_vec());
    println!("attachments: 2 MiB in 8 chunks, {AT_ONCE} at once, beside this disk");
    println!(
        "  disk, new files, fdatasync per chunk    {:>7.0} MiB/s",
        middle(disks)
    );
    println!(
        "  plimsoll, tus, durable chunk by chunk   {:>7.0} MiB/s   {:.2} x disk (target >= 0.60)",
        middle(ours),
        ratio(ours)
    );
    println!(
        "  nginx, WebDAV PUT, whole, not synced    {:>7.0} MiB/s   {:.2} x disk",
        middle(nginxes),
        ratio(nginxes)
    );
}

/// The chunks of an attachment, all different.
fn chunks(round: usize, worker: usize, number: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..CHUNKS).map(move |chunk| {
        let mut bytes = noise();
        for (at, mark) in [round, worker, number, chunk].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&mark.to_le_bytes());
        }
        bytes
    })
}

/// Bytes that don't compress.
fn noise() -> Vec<u8> {
    thread_local! {
        static NOISE: Vec<u8> = {
            let mut state = 0x9E37_79B9_7F4A_7C15_u64;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            (0..CHUNK_BYTES / 8).flat_map(|_| next().to_le_bytes()).collect()
        };
    }
    NOISE.with(Clone::clone)
}

/// Returns the MiB per second over all attachments of a round, `AT_ONCE` at a time.
fn rate(attach: impl Fn(usize, usize) -> Result<(), Error> + Sync) -> Result<f64, Error> {
    let begin = now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|worker| {
                let attach = &attach;
                scope.spawn(move || {
                    (0..PER_ROUND / AT_ONCE).try_for_each(|number| attach(worker, number))
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| Error::Thread)?)
    })?;
    let bytes = PER_ROUND * CHUNKS * CHUNK_BYTES;
    Ok(bytes as f64 / f64::from(1 << 20) / begin.elapsed().as_secs_f64())
}

/// As [`rate`], with a connection for each worker.
fn rate_on(
    address: SocketAddr,
    attach: impl Fn(&mut Connection, usize, usize) -> Result<(), Error> + Sync,
) -> Result<f64, Error> {
    let connections: Vec<_> = (0..AT_ONCE)
        .map(|_| Connection::open(address).map(std::sync::Mutex::new))
        .collect::<Result<_, _>>()?;
    rate(|worker, number| {
        let mut connection = connections[worker].lock().map_err(|_| Error::Thread)?;
        attach(&mut connection, worker, number)
    })
}

fn write_raw(folder: &Path, worker: usize, number: usize) -> Result<(), Error> {
    let path = folder.join(format!("{worker}-{number}"));
    let mut file = OpenOptions::new().create_new(true).write(true).open(path)?;
    for chunk in chunks(0, worker, number) {
        file.write_all(&chunk)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Our server as a child process, ended on drop.
struct Plimsoll {
    child: Child,
    address: SocketAddr,
    authorization: String,
}

impl Plimsoll {
    fn start(folder: &Path) -> Result<Self, Error> {
        let program: PathBuf = std::env::current_exe()?.with_file_name("plimsoll");
        fs::create_dir(folder)?;
        let port_file = folder.join("port");
        let child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(["--quota", "none", "--mail-quota", "none", "--data"])
            .arg(folder.join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .env("PLIMSOLL_ADMIN_TOKEN", ADMIN_TOKEN)
            .args(["--parent-pid", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let begin = now();
        let address = loop {
            let address = fs::read_to_string(&port_file).ok();
            match address.and_then(|text| text.trim().parse().ok()) {
                Some(address) => break address,
                None if begin.elapsed() > Duration::from_secs(20) => {
                    return Err(Error::Peer("plimsoll serve did not start".to_owned()));
                }
                None => std::thread::yield_now(),
            }
        };
        let mut server = Self {
            child,
            address,
            authorization: String::new(),
        };
        server.register()?;
        Ok(server)
    }

    fn register(&mut self) -> Result<(), Error> {
        let mut connection = Connection::open(self.address)?;
        let head = format!("authorization: Bearer {ADMIN_TOKEN}\r\n");
        let body = br#"{"users":[{"name":"ada"}],"app_passwords":true}"#;
        let answer = connection.request("POST", "/admin/users", &head, body)?;
        let password = answer.body.split("\"app_password\":\"").nth(1);
        let password = password.and_then(|rest| rest.split('"').next());
        let password =
            password.ok_or_else(|| Error::Peer(format!("no password in {}", answer.body)))?;
        let secret = BASE64_STANDARD.encode(format!("ada:{password}"));
        self.authorization = format!("authorization: Basic {secret}\r\n");
        Ok(())
    }

    /// Runs a round. Creating a document for each worker, and deleting it, is not timed.
    fn rate(&self, round: usize) -> Result<f64, Error> {
        let mut connection = Connection::open(self.address)?;
        let head = format!("{}content-type: application/json\r\n", self.authorization);
        let documents = (0..AT_ONCE).map(|_| {
            let path = "/docs/ada/bench/api/data/documents";
            let answer = connection.request("POST", path, &head, b"{}")?;
            answer.location()
        });
        let documents: Vec<String> = documents.collect::<Result<_, _>>()?;
        let rate = rate_on(self.address, |connection, worker, number| {
            self.attach(connection, &documents[worker], (round, worker, number))
        })?;
        for document in &documents {
            connection.expect(&["200"], "DELETE", document, &self.authorization, b"")?;
        }
        Ok(rate)
    }

    fn attach(
        &self,
        connection: &mut Connection,
        document: &str,
        (round, worker, number): (usize, usize, usize),
    ) -> Result<(), Error> {
        let unid = document.rsplit('/').next().unwrap_or_default();
        let name = BASE64_STANDARD.encode(format!("{number}.bin"));
        let head = format!(
            "{}tus-resumable: 1.0.0\r\nupload-length: {}\r\nupload-metadata: filename {name}\r\n",
            self.authorization,
            CHUNKS * CHUNK_BYTES
        );
        let path = format!("/tus/ada/bench/{unid}/Body");
        let upload = connection.request("POST", &path, &head, b"")?.location()?;
        for (at, chunk) in chunks(round, worker, number).enumerate() {
            let head = format!(
                "{}tus-resumable: 1.0.0\r\ncontent-type: application/offset+octet-stream\r\n\
                 upload-offset: {}\r\n",
                self.authorization,
                at * CHUNK_BYTES
            );
            connection.expect(&["204"], "PATCH", &upload, &head, &chunk)?;
        }
        Ok(())
    }
}

impl Drop for Plimsoll {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection(BufReader<TcpStream>);

struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    fn location(&self) -> Result<String, Error> {
        let location = self.header("location").map(str::to_owned);
        location.ok_or_else(|| Error::Peer(format!("no location in {}{}", self.head, self.body)))
    }
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn request(
        &mut self,
        method: &str,
        path: &str,
        head: &str,
        body: &[u8],
    ) -> Result<Answer, Error> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{head}content-length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.0.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(Error::Peer(format!(
                    "{method} {path}: the connection ended"
                )));
            }
        }
        let mut answer = Answer {
            head,
            body: String::new(),
        };
        let length = answer
            .header("content-length")
            .and_then(|it| it.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.0.read_exact(&mut body)?;
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Ok(answer)
    }

    fn expect(
        &mut self,
        statuses: &[&str],
        method: &str,
        path: &str,
        head: &str,
        body: &[u8],
    ) -> Result<(), Error> {
        let answer = self.request(method, path, head, body)?;
        let status = answer.head.split(' ').nth(1).unwrap_or_default();
        if statuses.contains(&status) {
            return Ok(());
        }
        let text = format!("{method} {path}: {}{}", answer.head, answer.body);
        Err(Error::Peer(text))
    }
}
