//! Any bytes as a server's log, behind a line with its format: rows in order that load, or an error.

use std::io::{self, Cursor};

use lab_import::log::{self, LogOptions, SAFE_METHODS};
use lab_study::{Files, load_workload};

struct Two {
    workload: String,
    rows: Vec<u8>,
}

impl Files for Two {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        Ok(match path.ends_with(".yaml") {
            true => self.workload.clone().into_bytes(),
            false => self.rows.clone(),
        })
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (format, rest) = bytes.split_at(end);
    let Ok(format) = std::str::from_utf8(format) else {
        return;
    };
    let methods = SAFE_METHODS.iter().chain(&["POST"]);
    let options = LogOptions {
        name: "fuzzed".to_owned(),
        shown: "fuzzed.log".to_owned(),
        format: (!format.is_empty()).then(|| format.to_owned()),
        fields: vec![],
        hosts: vec![],
        methods: methods.map(|method| (*method).to_owned()).collect(),
        url: "http://127.0.0.1:1".to_owned(),
        exact_status: false,
        seed: 1,
        salt: [0; 16],
    };
    let mut rows = Vec::new();
    let log = rest.strip_prefix(b"\n").unwrap_or(rest);
    let Ok(imported) = log::import(&mut Cursor::new(log), &options, &mut rows) else {
        return;
    };
    let mut last = i64::MIN;
    for row in rows
        .split(|byte| *byte == b'\n')
        .filter(|row| !row.is_empty())
    {
        let row: serde_json::Value = serde_json::from_slice(row).expect("a row");
        let moment = row["time_us"].as_i64().expect("a moment");
        assert!(moment >= last, "{moment} after {last}");
        last = moment;
        let path = row["path"].as_str().expect("a path");
        let is_visible = path.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(path.starts_with('/') && is_visible, "{path}");
    }
    let workload = imported.workload;
    let loaded = load_workload("fuzzed.workload.yaml", &Two { workload, rows });
    loaded.expect("a workload that loads");
}
