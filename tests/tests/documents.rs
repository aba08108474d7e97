//! Uploads against the real program: killed under load, many at once, and a check of the stored content.
//!
//! `PLIMSOLL_SEED=N` repeats the choices of the run with the kills; what is under way at each kill depends on the
//! machine all the same.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_tests::server::{Client, ServerProcess};
use plimsoll_tests::{program, wait_until};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

const KILLS: u32 = 12;
const WRITERS: usize = 4;
/// The maximum number of chunks that the server acknowledges before it is killed.
const MOST_CHUNKS: u32 = 60;
const LIMIT: Duration = Duration::from_secs(120);
const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");

fn register(address: SocketAddr) -> String {
    let body = json!({ "users": [{ "name": "ada" }], "app_passwords": true });
    let mut admin = Client::admin(address).unwrap();
    let answer = admin.request("POST", "/admin/users", &body).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let password = answer.body["users"][0]["app_password"].as_str().unwrap();
    password.to_owned()
}

/// Creates a document; returns its path.
fn document(client: &mut Client) -> String {
    let path = "/docs/ada/notes/api/data/documents";
    let answer = client.request("POST", path, &json!({})).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.location.unwrap()
}

/// Bytes that depend on their position: from `at` on in the content with this seed.
fn content(seed: u64, at: usize, length: usize) -> Vec<u8> {
    (at..at + length)
        .map(|at| {
            let block = (at as u64 / 8) ^ seed;
            let mixed = (block.wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(31);
            mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9).to_le_bytes()[at % 8]
        })
        .collect()
}

/// The expected state of an upload.
#[derive(Debug, Clone)]
struct Upload {
    path: String,
    /// The attachment's path.
    attachment: String,
    seed: u64,
    length: usize,
    /// The acknowledged bytes.
    sure: usize,
    /// The sent bytes.
    sent: usize,
}

impl Upload {
    fn create(
        client: &mut Client,
        document: &str,
        random: &mut Xoshiro256PlusPlus,
    ) -> std::io::Result<Self> {
        let seed = random.next_u64();
        let length = usize::try_from(random.next_u32() % 1_500_000).unwrap();
        let name = format!("{seed:016x}");
        let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &name);
        let metadata = format!("filename {encoded}");
        let unid = document.rsplit('/').next().unwrap();
        let headers = [
            VERSION,
            ("upload-length", &*length.to_string()),
            ("upload-metadata", &metadata),
        ];
        let path = format!("/tus/ada/notes/{unid}/Body");
        let answer = client.send("POST", &path, &headers, b"")?;
        assert_eq!(answer.status, 201, "{answer:?}");
        Ok(Self {
            path: answer.header("location").unwrap().to_owned(),
            attachment: format!("{document}/Body/{name}"),
            seed,
            length,
            sure: 0,
            sent: 0,
        })
    }

    fn send_chunk(&mut self, client: &mut Client, bytes: usize) -> std::io::Result<()> {
        let chunk = content(self.seed, self.sure, bytes.min(self.length - self.sure));
        self.sent = self.sure + chunk.len();
        let headers = [
            VERSION,
            ("content-type", "application/offset+octet-stream"),
            ("upload-offset", &*self.sure.to_string()),
        ];
        let answer = client.send("PATCH", &self.path, &headers, &chunk)?;
        assert_eq!(answer.status, 204, "{self:?} {answer:?}");
        assert_eq!(
            answer.header("upload-offset"),
            Some(&*self.sent.to_string())
        );
        self.sure = self.sent;
        Ok(())
    }

    /// The stored bytes must be the acknowledged ones or, of the chunk under way, more.
    fn look(&mut self, client: &mut Client) {
        let answer = client.send("HEAD", &self.path, &[VERSION], b"").unwrap();
        assert_eq!(answer.status, 200, "{self:?} {answer:?}");
        let offset: usize = answer.header("upload-offset").unwrap().parse().unwrap();
        assert!(
            (self.sure..=self.sent).contains(&offset),
            "{offset} {self:?}"
        );
        self.sure = offset;
        let there = client.send("GET", &self.attachment, &[], b"").unwrap();
        let status = if offset == self.length { 200 } else { 404 };
        assert_eq!(there.status, status, "{offset} {self:?}");
    }

    fn check_content(&self, client: &mut Client) {
        let answer = client.send("GET", &self.attachment, &[], b"").unwrap();
        assert_eq!(answer.status, 200, "{self:?}");
        assert!(
            answer.body == content(self.seed, 0, self.length),
            "{self:?}"
        );
    }
}

/// Uploads until the server dies; returns all acknowledged uploads.
fn write(
    address: SocketAddr,
    password: &str,
    mut random: Xoshiro256PlusPlus,
    (chunks, killed): (&AtomicU32, &AtomicBool),
) -> Vec<Upload> {
    let mut uploads: Vec<Upload> = Vec::new();
    let mut work = || -> std::io::Result<()> {
        let mut client = Client::user(address, "ada", password)?;
        let path = "/docs/ada/notes/api/data/documents";
        let answer = client.request("POST", path, &json!({}))?;
        assert_eq!(answer.status, 201, "{answer:?}");
        let document = answer.location.unwrap();
        loop {
            uploads.push(Upload::create(&mut client, &document, &mut random)?);
            let upload = uploads.last_mut().unwrap();
            while upload.sure < upload.length {
                let bytes = 1 + usize::try_from(random.next_u32() % 400_000).unwrap();
                upload.send_chunk(&mut client, bytes)?;
                chunks.fetch_add(1, Relaxed);
            }
        }
    };
    let error = work().unwrap_err();
    assert!(killed.load(Relaxed), "the server failed early: {error}");
    uploads
}

fn seed() -> u64 {
    match std::env::var("PLIMSOLL_SEED") {
        Ok(seed) => seed.parse().expect("PLIMSOLL_SEED is a number"),
        Err(_) => {
            let mut bytes = [0; 8];
            let mut source = std::fs::File::open("/dev/urandom").unwrap();
            std::io::Read::read_exact(&mut source, &mut bytes).unwrap();
            u64::from_le_bytes(bytes)
        }
    }
}

fn live_and_die(
    server: ServerProcess,
    password: &str,
    random: &mut Xoshiro256PlusPlus,
) -> Vec<Upload> {
    let address = server.address();
    let (chunks, killed) = (AtomicU32::new(0), AtomicBool::new(false));
    let life = 1 + random.next_u32() % MOST_CHUNKS;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                random.jump();
                let (random, seen) = (random.clone(), (&chunks, &killed));
                scope.spawn(move || write(address, password, random, seen))
            })
            .collect();
        // A life ends by work, not by time, in which a slow machine may have done nothing.
        wait_until(LIMIT, "uploads under way", || chunks.load(Relaxed) >= life);
        killed.store(true, Relaxed);
        server.kill();
        let uploads = writers.into_iter().map(|writer| writer.join().unwrap());
        uploads.flatten().collect()
    })
}

#[test]
fn uploads_go_on_at_their_true_offset_after_kills() {
    let seed = seed();
    println!("seed: PLIMSOLL_SEED={seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut server = ServerProcess::start(folder.path());
    let password = register(server.address());
    let (mut done, mut resumed): (Vec<Upload>, u32) = (Vec::new(), 0);
    for _ in 0..KILLS {
        let uploads = live_and_die(server, &password, &mut random);
        server = ServerProcess::start(folder.path());
        let mut client = Client::user(server.address(), "ada", &password).unwrap();
        for mut upload in uploads {
            upload.look(&mut client);
            if upload.sure < upload.length {
                resumed += 1;
                let rest = upload.length - upload.sure;
                upload.send_chunk(&mut client, rest).unwrap();
            }
            upload.check_content(&mut client);
            done.push(upload);
        }
    }
    println!(
        "{} uploads, {resumed} of them resumed after a kill",
        done.len()
    );
    assert!(resumed > 0, "no kill hit an upload under way");
    let mut client = Client::user(server.address(), "ada", &password).unwrap();
    for upload in &done {
        upload.check_content(&mut client);
    }
    server.kill();
    let (code, text) = check(&folder.path().join("data"));
    assert_eq!(code, 0, "{text}");
    println!("{text}");
}

/// Runs `serve --check`; returns its exit code and its output.
fn check(data: &Path) -> (i32, String) {
    let mut command = Command::new(program());
    let output = command
        .args(["serve", "--check", "--data"])
        .arg(data)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

/// The only piece of content in a data folder.
fn only_content(data: &Path) -> PathBuf {
    let folders = std::fs::read_dir(data.join("content")).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    files[0].clone()
}

#[test]
fn a_look_through_the_store_finds_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = ServerProcess::start(folder.path());
    let password = register(server.address());
    let mut client = Client::user(server.address(), "ada", &password).unwrap();
    let attachment = format!("{}/Body/report.txt", document(&mut client));
    let answer = client.send("PUT", &attachment, &[], &[7; 100_000]).unwrap();
    assert_eq!(answer.status, 201);
    let (code, text) = check(&data);
    assert!(code == 1 && text.contains("in use"), "{code} {text}");
    server.kill();
    let (code, text) = check(&data);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains(
            "1 users, 1 documents, 0 messages with 0 bytes\n\
             1 pieces of content with 100000 bytes, 0 that nothing"
        ),
        "{text}"
    );

    let file = only_content(&data);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[50_000] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let (code, text) = check(&data);
    assert!(
        code == 1 && text.contains("report.txt: its content") && text.contains("is damaged"),
        "{code} {text}"
    );
    std::fs::write(&file, &bytes[..99_999]).unwrap();
    assert!(check(&data).1.contains("is damaged"));
    std::fs::remove_file(&file).unwrap();
    let (code, text) = check(&data);
    assert!(
        code == 1 && text.contains("is missing") && text.contains("1 faults"),
        "{code} {text}"
    );

    let (code, text) = check(&folder.path().join("nowhere"));
    assert!(
        code == 104 && text.contains("no data folder"),
        "{code} {text}"
    );
}

/// A line of `/proc/PID/status`, in KiB.
fn memory_kib(server: &ServerProcess, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap()
        .trim_matches([':', ' ', '\t', 'k', 'B'])
        .parse()
        .unwrap()
}

#[test]
fn a_hundred_uploads_and_downloads_at_once_take_bounded_memory() {
    const AT_ONCE: usize = 100;
    const BYTES: usize = 5 << 20;
    /// The limit of all buffers, as the server states it, and half as much for the allocator.
    const BUFFERS_KIB: u64 = (64 + 32) << 10;
    let folder = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(folder.path());
    let password = register(server.address());
    let mut client = Client::user(server.address(), "ada", &password).unwrap();
    let document = document(&mut client);
    // Connections and threads exist, and have done something, before memory is measured.
    let small = |number: usize| format!("{document}/Body/small-{number}");
    let all = |work: &(dyn Fn(usize, &mut Client) + Sync)| {
        std::thread::scope(|scope| {
            for number in 0..AT_ONCE {
                let (password, address) = (&password, server.address());
                scope.spawn(move || {
                    let mut client = Client::user(address, "ada", password).unwrap();
                    work(number, &mut client);
                });
            }
        });
    };
    all(&|number, client| {
        let answer = client.send("PUT", &small(number), &[], b"x").unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    });
    let before = memory_kib(&server, "VmRSS");
    let block = content(1, 0, 1 << 20);
    let path = |number: usize| format!("{document}/Large/{number}");
    all(&|number, client| {
        let blocks = (0..BYTES >> 20).map(|at| {
            let mut block = block.clone();
            block[..16].copy_from_slice(&[number.to_le_bytes(), at.to_le_bytes()].concat());
            block
        });
        let answer = client
            .send_stream("PUT", &path(number), BYTES, blocks)
            .unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    });
    let after_up = memory_kib(&server, "VmHWM");
    all(&|number, client| {
        let answer = client.send("GET", &path(number), &[], b"").unwrap();
        assert!(answer.status == 200 && answer.body.len() == BYTES);
        assert!(answer.body[16..1 << 20] == block[16..]);
    });
    let after_down = memory_kib(&server, "VmHWM");
    println!(
        "{AT_ONCE} x {} MiB: {} KiB before, {} more for uploads, {} more with downloads",
        BYTES >> 20,
        before,
        after_up - before,
        after_down - before
    );
    assert!(
        after_down - before < BUFFERS_KIB,
        "{before} {after_up} {after_down}"
    );
}
