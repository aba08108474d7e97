//! Any bytes as a study or workload file: a load ends in a value or an error that can be shown.

use lab_study::{Files, LoadError, load_any, load_study, load_workload};

const WORKLOAD: &[u8] = include_bytes!("../../../workloads/calendar.workload.yaml");
const STUDY: &[u8] = include_bytes!("../../../studies/calendar.study.yaml");

/// The input replaces one file; the others are valid.
struct Folder<'a> {
    study: &'a [u8],
    workload: &'a [u8],
}

impl Files for Folder<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        let bytes = match path {
            _ if path.ends_with(".study.yaml") => self.study,
            _ if path.ends_with(".workload.yaml") => self.workload,
            _ if path.ends_with(".csv") => b"users,response_ms\n1,1\n",
            _ => return Err(std::io::ErrorKind::NotFound.into()),
        };
        Ok(bytes.to_vec())
    }
}

fn show<T>(result: Result<T, LoadError>) {
    if let Err(error) = result {
        let mut out = String::new();
        miette::NarratableReportHandler::new()
            .render_report(&mut out, &error)
            .expect("an error can be shown");
        assert!(!error.problems().is_empty());
    }
}

pub(crate) fn run(data: &[u8]) {
    let as_study = Folder {
        study: data,
        workload: WORKLOAD,
    };
    show(load_study("studies/x.study.yaml", &as_study, &[]));
    show(load_any("studies/x.study.yaml", &as_study));
    let as_workload = Folder {
        study: STUDY,
        workload: data,
    };
    show(load_workload("workloads/x.workload.yaml", &as_workload));
    if let Ok(text) = std::str::from_utf8(data)
        && let Some((key, value)) = text.split_once('=')
    {
        let set = [(key.to_owned(), value.to_owned())];
        show(load_study(
            "studies/x.study.yaml",
            &Folder {
                study: STUDY,
                workload: WORKLOAD,
            },
            &set,
        ));
    }
}
