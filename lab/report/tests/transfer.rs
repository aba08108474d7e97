//! Transfers of a sequence's sessions, beside the disk alone and beside published figures.

use crate::support::{Made, Shape};
use lab_analysis::model::{Analysis, Measure};
use lab_archive::RawBaseline;
use lab_report::write::{html, markdown, terminal};

const STUDY: &str = "\
study: tiny
title: Attachments at two settings
workload: tiny
matrix: { knob: [1, 0] }
system: { groupware: {} }
load: { sequence: { sessions: 10 }, hold: \"{{ 6 + 0 * knob }}s\" }
order: listed
trials: 6
raw_baseline: true
published: load.csv
";

const WORKLOAD: &str = "\
workload: tiny
parameters: { database: letters }
session:
  steps:
    - step: Write
      wait: 10ms
      request: PUT /file
transfer: { place: \"{{ database }}\", bytes: 2 MiB, chunk: 256 KiB }
";

const PUBLISHED: &str = "\
# Made up.
slice_ns,count,total_ms,minimum_ms,maximum_ms,average_ms,mb_per_s
12000000,10,814,19,194,81,25.3
4000000,10,192,16,35,19,107.8
";

/// Six trials at each setting, one of which is a fifth slower, on a disk of 50 MB/s.
pub(crate) fn analysis(with_raw: bool) -> Analysis {
    let shape = |trial: u64| Shape {
        session_us: if trial.is_multiple_of(2) {
            80_400
        } else {
            100_400
        } + trial * 10,
        raw: with_raw.then(|| RawBaseline {
            files: 10,
            file_bytes: 2 << 20,
            chunk_bytes: 256 << 10,
            passes_ms: vec![400.0, 438.860_8],
        }),
        ..Shape::default()
    };
    Made {
        study: STUDY.to_owned(),
        workload: WORKLOAD.to_owned(),
        load_csv: PUBLISHED.to_owned(),
        shapes: (0..12).map(shape).collect(),
        ..Made::default()
    }
    .analysis()
}

#[test]
fn the_table_of_report_002_stands_in_all_reports() {
    let analysis = analysis(true);
    let text = terminal(&analysis, 80);
    let begin = text.find("What the sessions carried").unwrap();
    let end = text.find("Per level").unwrap();
    insta::assert_snapshot!(&text[begin..end]);
    for report in [html(&analysis), markdown(&analysis)] {
        for part in [
            "letters",
            "2,097,152",
            "262,144",
            "107.8",
            "of the disk, %",
            "25.3",
        ] {
            assert!(report.contains(part), "{part}");
        }
    }
}

#[test]
fn the_rate_is_compared_and_set_beside_the_disk() {
    let analysis = analysis(true);
    let rate = |one: &&lab_analysis::model::Comparison| one.metric == Measure::Transfer;
    let one = analysis.comparisons.iter().find(rate).unwrap();
    assert!((one.ratio - 0.8).abs() < 0.01, "{one:?}");
    assert_eq!(one.verdict.unwrap().name(), "slower");
    let of_disk = analysis
        .findings
        .iter()
        .find(|text| text.contains("disk alone"));
    insta::assert_snapshot!(of_disk.unwrap());
}

#[test]
fn without_a_baseline_there_is_none() {
    let analysis = analysis(false);
    let text = terminal(&analysis, 80);
    assert!(text.contains("What the sessions carried") && !text.contains("disk alone"));
    assert!(
        analysis
            .cells
            .iter()
            .all(|cell| cell.transfer.as_ref().unwrap().of_raw.is_none())
    );
}
