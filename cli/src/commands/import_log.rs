//! `plimsoll import log`: the log of a server as load.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lab_import::log::{self, FORMATS, LogError, LogOptions, Scratch};

use crate::beginning::LogArgs;
use crate::commands::{print, written};
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

/// The bytes that are read at a time.
const BUFFER: usize = 256 << 10;

pub(crate) fn run(args: &LogArgs, name: &str) -> Result<Exit, Failure> {
    let shown = match args.file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => args.file.display().to_string(),
    };
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(name));
    let name = out
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = lab_import::yaml::short_name(&name.unwrap_or_default(), "imported");
    let [rows, workload, study] = ["jsonl", "workload.yaml", "study.yaml"]
        .map(|end| out.with_file_name(format!("{name}.{end}")));
    if !args.force {
        for path in [&rows, &workload, &study] {
            written::is_free(path)?;
        }
    }
    let options = options(args, name, &shown)?;
    let imported = rows_of(args, &options, &rows).map_err(|error| match error {
        Fault::Log(error) => failure(&shown, &error),
        Fault::Rows(error) => written::failure(&rows, &error),
    })?;
    written::write(&workload, &imported.workload)?;
    written::write(&study, &imported.study)?;
    for said in &imported.said {
        say(format_args!("{said}"));
    }
    let (rows, workload, study) = (rows.display(), workload.display(), study.display());
    say(format_args!(
        "{rows}: the requests; {workload}: how each is sent; {study}: when"
    ));
    print(&format!(
        "next:\n  plimsoll plan {study}\n  plimsoll run {study}\n"
    ))
}

fn options(args: &LogArgs, name: String, shown: &str) -> Result<LogOptions, Failure> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt)
        .map_err(|error| Failure::text(Exit::BadInput, format!("no random bits: {error}")))?;
    Ok(LogOptions {
        name,
        shown: shown.to_owned(),
        format: args.format.clone(),
        fields: args.fields.clone(),
        hosts: args.host.clone(),
        methods: args.methods.clone(),
        url: args.url.clone(),
        exact_status: args.exact_status,
        seed: args.seed,
        salt,
    })
}

/// A failure of the log or of the file of rows.
enum Fault {
    Log(LogError),
    Rows(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Rows(error)
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Rows(error) => Self::Rows(error),
            other => Self::Log(other),
        }
    }
}

/// Writes all rows, or keeps the previous file.
fn rows_of(args: &LogArgs, options: &LogOptions, path: &Path) -> Result<log::ImportedLog, Fault> {
    let mut log = open(&args.file).map_err(|error| Fault::Log(error.into()))?;
    written::replace_by(path, |file| {
        let mut rows = BufWriter::with_capacity(BUFFER, file);
        if !args.sessions {
            return Ok(log::import(&mut *log, options, &mut rows)?);
        }
        let mut scratch = tempfile::tempfile_in(written::folder_of(path))?;
        let to: (&mut dyn Write, &mut dyn Scratch) = (&mut rows, &mut scratch);
        Ok(log::import_sessions(&mut *log, options, to)?)
    })
}

/// Opens a log, and decompresses it if needed (RFC 1952, section 2.3.1).
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut reader: Box<dyn BufRead> = match path.as_os_str() == "-" {
        true => Box::new(BufReader::with_capacity(BUFFER, io::stdin())),
        false => Box::new(BufReader::with_capacity(BUFFER, File::open(path)?)),
    };
    Ok(match reader.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        true => Box::new(BufReader::with_capacity(
            BUFFER,
            MultiGzDecoder::new(reader),
        )),
        false => reader,
    })
}

fn failure(shown: &str, error: &LogError) -> Failure {
    let failure = Failure::text(Exit::BadInput, format!("{shown}: {error}"));
    match error {
        LogError::Unknown => failure.hint(format!(
            "--format takes a name ({}), or the format as the server's configuration has it",
            FORMATS.join(", ")
        )),
        LogError::Nothing { .. } => {
            failure.hint("--methods and --host say which requests are taken")
        }
        LogError::Io(_) | LogError::Rows(_) | LogError::Format(_) => failure,
    }
}
