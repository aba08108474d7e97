//! Any bytes as the description of a workload's services, as a `.proto` file and as a compiled set: a load ends in a
//! workload or an error that can be shown.

use lab_study::{Files, load_workload};

const AS_SOURCE: &[u8] = b"workload: it
protocol: { name: grpc, descriptors: it.proto }
session:
  steps:
    - { step: Call, request: a.B/C, json: { d: 1, e: { f: [] } } }
";

/// The input is each file but the workload.
struct Folder<'a> {
    workload: &'a [u8],
    described: &'a [u8],
}

impl Files for Folder<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        let bytes = match path.ends_with(".workload.yaml") {
            true => self.workload,
            false => self.described,
        };
        Ok(bytes.to_vec())
    }
}

pub(crate) fn run(data: &[u8]) {
    let as_set = String::from_utf8_lossy(AS_SOURCE).replace("it.proto", "it.binpb");
    for workload in [AS_SOURCE, as_set.as_bytes()] {
        let folder = Folder {
            workload,
            described: data,
        };
        if let Err(error) = load_workload("it.workload.yaml", &folder) {
            let mut out = String::new();
            miette::NarratableReportHandler::new()
                .render_report(&mut out, &error)
                .expect("an error can be shown");
            assert!(!error.problems().is_empty());
        }
    }
}
