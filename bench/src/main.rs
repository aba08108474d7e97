//! Side-by-side benchmarks against peers, reported as ratios: `make bench`.
//!
//! Each pair alternates in one run; the machine's drift affects both sides. Pass the name of a part (`monitor`,
//! `store`, `driver`, `sessions`, `memory`, `merger`, `attachments`) to run only that. Some parts run only by name:
//! `mail`, which needs Dovecot and root (`bench/mail.sh`); `meetings` and `growth`, which need root for a separate
//! disk; `admission`, which needs two programs (`bench/admission.sh`); `instructions`, which needs valgrind and a
//! program (`bench/instructions.sh`); `fronts`, which needs PostgreSQL; and `archive`, which writes half a gigabyte.
//! Only `bench/agents.sh` measures the cost of agents on a hub, with the released programs.

mod admission;
mod archive;
mod attachments;
mod clock;
mod common;
mod disk;
mod driver;
mod etcd;
mod fronts;
mod growth;
mod instructions;
mod loop_disk;
mod mail;
mod meetings;
mod memory;
mod merger;
mod monitor;
mod nginx;
mod sessions;
mod store;

use std::path::Path;
use std::process::ExitCode;

use common::Error;

/// The allocator of the measured program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if parts.first().map(String::as_str) == Some(driver::CHILD) {
        return done(driver::child(&parts[1..]));
    }
    if parts.first().map(String::as_str) == Some(sessions::CHILD) {
        return done(sessions::child(&parts[1..]));
    }
    if parts.first().map(String::as_str) == Some(merger::CHILD) {
        return done(merger::generate());
    }
    if let [first, with, without] = parts.as_slice()
        && first == "admission"
    {
        return done(admission::compare(Path::new(with), Path::new(without)));
    }
    if let [first, program] = parts.as_slice()
        && first == "instructions"
    {
        return done(instructions::measure(Path::new(program)));
    }
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    let result = (|| {
        if wanted("monitor") {
            monitor::measure();
        }
        if wanted("store") {
            print_store(&store::run(Path::new("target"))?);
        }
        if wanted("driver") {
            driver::compare()?;
        }
        if wanted("sessions") {
            sessions::compare()?;
        }
        if wanted("attachments") {
            attachments::compare(Path::new("target"))?;
        }
        if wanted("memory") {
            memory::measure()?;
        }
        if wanted("merger") {
            merger::measure()?;
        }
        if parts.iter().any(|part| part == "mail") {
            mail::compare()?;
        }
        if parts.iter().any(|part| part == "fronts") {
            fronts::compare()?;
        }
        if parts.iter().any(|part| part == "archive") {
            archive::measure(Path::new("target"))?;
        }
        if parts.iter().any(|part| part == "meetings") {
            meetings::measure(Path::new("target"))?;
        }
        for last in parts.iter().filter_map(|part| part.strip_prefix("growth")) {
            growth::measure(Path::new("target"), growth::last(last)?)?;
        }
        Ok(())
    })();
    done(result)
}

fn done(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_store(result: &store::Result) {
    println!("store: durable commits of one 512-byte record, SQLite, beside this disk");
    println!(
        "  disk, append 4 KiB + fdatasync   {:>9.0} /s",
        result.disk_per_s
    );
    println!(
        "  store, 1 writer                  {:>9.0} /s   {:.2} x disk (target >= 0.60)",
        result.one_writer_per_s, result.one_writer_ratio
    );
    println!(
        "  store, 64 writers                {:>9.0} /s   {:.2} x disk (target >= 4.00)",
        result.many_writers_per_s, result.many_writers_ratio
    );
}
