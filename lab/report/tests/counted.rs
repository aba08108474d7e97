//! Reports on the system's own counters.

use lab_analysis::model::TrialAnalysis;
use lab_analysis::{Analysis, analyse};
use lab_asked::{Answer, Recorded, Series, to_jsonl};
use lab_report::write::{html, markdown, terminal};

use crate::answers;

fn series(column: &str, query: &str) -> Series {
    Series {
        column: column.to_owned(),
        labels: vec![("query".to_owned(), query.to_owned())],
    }
}

/// Ten statements, of which one takes three times as long after the change. `trial` makes the noise.
fn recorded(trial: u32, is_after: bool, ends: (f64, f64)) -> Recorded {
    let mut counters = Vec::new();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for n in 0..10_u32 {
        let query = format!("select {n} from <things> where owner = $1");
        let noise = 1.0 + f64::from((trial * 7_919 + n * 31) % 101) / 2_000.0;
        let slow = if is_after && n == 4 { 3.0 } else { 1.0 };
        counters.push((series("calls", &query), None));
        counters.push((series("total_exec_time", &query), Some("ms".to_owned())));
        first.extend([Some(1_000.0), Some(50.0)]);
        last.extend([
            Some(1_000.0 + (4_000.0 * noise).round()),
            Some(50.0 + 400.0 * f64::from(n + 1) * slow * noise),
        ]);
    }
    let answer = |t_ms, values| Answer {
        t_ms,
        values: Ok(values),
    };
    Recorded {
        name: "db.statements".to_owned(),
        series: counters,
        left_out: 0,
        asked: 2,
        missed: 0,
        answers: vec![answer(ends.0, first), answer(ends.1, last)],
    }
}

/// Two variants in this many blocks, whose systems were asked.
fn made(blocks: usize) -> Analysis {
    let mut run = answers::made(answers::VARIANTS, blocks, 1.0, 0.01).run();
    let bare = analyse(&run).unwrap();
    for (at, trial) in run.trials.iter_mut().enumerate() {
        let is_it = |one: &&TrialAnalysis| one.id == trial.record.id;
        let of = bare.trials.iter().find(is_it).unwrap();
        let ramp = of.ramp_ms as f64;
        let ends = (ramp + of.warmup_cut_ms, ramp + of.hold_ms as f64);
        let recorded = recorded(at as u32, of.label == "variant after", ends);
        trial.asked = Some(Ok(to_jsonl(vec![recorded]).into_bytes()));
    }
    run.trials[0].asked = match blocks {
        8.. => run.trials[0].asked.take(),
        _ => Some(Err("asked.jsonl is cut off".to_owned())),
    };
    analyse(&run).unwrap()
}

/// A run in which a statement differs, and one in which blocks are missing.
pub(crate) fn analyses() -> [Analysis; 2] {
    [made(8), made(6)]
}

#[test]
fn the_statement_that_takes_longer_is_named() {
    let analysis = made(8);
    let [found] = &analysis.counting.ask_differences[..] else {
        panic!("{:#?}", analysis.counting.ask_differences);
    };
    // Equal counters are one test.
    assert!(found.blocks == 8 && (15..=20).contains(&found.tested));
    let [one] = &found.findings[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(one.column, "total_exec_time");
    let said = "variant after against variant before, `db.statements`: `select 4 from <things> where owner = $1` takes ";
    assert!(
        analysis.findings.iter().any(|one| one.starts_with(said)),
        "{:?}",
        analysis.findings
    );
    let text = terminal(&analysis, 80);
    let (_, section) = text
        .split_once("What the system counted\n")
        .expect("the section");
    insta::assert_snapshot!(section.split("\nChecks").next().unwrap());
    assert!(markdown(&analysis).contains("## What the system counted"));
    let page = html(&analysis);
    assert!(page.contains("`select 4 from &lt;things&gt;") && !page.contains("<things>"));
    let measure = r#""measure": "ask.db.statements.calls{query=\"select 9 from <things> where owner = $1\"}""#;
    let json = serde_json::to_string_pretty(&analysis).unwrap();
    assert!(json.contains(measure));
}

#[test]
fn few_blocks_and_damaged_files_are_said() {
    let analysis = made(6);
    let found = &analysis.counting.ask_differences[0];
    assert!(found.findings.is_empty());
    assert!(
        found
            .reason
            .as_ref()
            .unwrap()
            .starts_with("only 5 blocks have")
    );
    let notes = &analysis.trials[0].notes;
    assert!(
        notes.iter().any(|note| note
            == "What the system counts can't be read and is left out. asked.jsonl is cut off"),
        "{notes:?}"
    );
    assert!(terminal(&analysis, 200).contains("not compared: only 5 blocks have"));
}
