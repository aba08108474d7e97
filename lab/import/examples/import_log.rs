//! Imports a log and writes its rows, as `plimsoll import log` does, for measurements of time and memory:
//! `import_log LOG ROWS [SCRATCH]`, which is a file for the rows of sessions.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

use lab_import::log::{LogOptions, SAFE_METHODS, Scratch, import, import_sessions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args().skip(1);
    let (log, rows) = (
        paths.next().ok_or("no log")?,
        paths.next().ok_or("no rows")?,
    );
    let options = LogOptions {
        name: "measured".to_owned(),
        shown: log.clone(),
        format: None,
        fields: vec![],
        hosts: vec![],
        methods: SAFE_METHODS.map(str::to_owned).to_vec(),
        url: "http://127.0.0.1:8080".to_owned(),
        exact_status: false,
        seed: 1,
        salt: [7; 16],
    };
    let mut log = BufReader::with_capacity(256 << 10, File::open(log)?);
    let mut rows = BufWriter::with_capacity(256 << 10, File::create(rows)?);
    let imported = match paths.next() {
        Some(path) => {
            let mut scratch = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)?;
            let to: (&mut dyn Write, &mut dyn Scratch) = (&mut rows, &mut scratch);
            import_sessions(&mut log, &options, to)?
        }
        None => import(&mut log, &options, &mut rows)?,
    };
    for said in imported.said {
        println!("{said}");
    }
    Ok(())
}
