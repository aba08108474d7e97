//! The figures: recomputed from the archive's histograms, cut to the hold, null where unsupported.

use crate::support::{Made, Shape};
use hdrhistogram::Histogram;
use lab_analysis::analyse;
use lab_analysis::model::Outcome as Comes;
use lab_archive::{Kind, Outcome, Series};

#[test]
fn times_are_those_of_the_holds_histograms() {
    let run = Made::default().run();
    let analysis = analyse(&run).unwrap();
    let (data, trial) = (&run.trials[1], &analysis.trials[1]);
    let (ramp, end) = (
        data.record.ramp_ms,
        data.record.ramp_ms + data.record.hold_ms,
    );
    let mut all = Histogram::<u64>::new(3).unwrap();
    let mut count_whole = 0;
    for interval in &data.hlog {
        let Series::Step {
            outcome: Outcome::Ok,
            kind: Kind::Response,
            ..
        } = interval.series
        else {
            continue;
        };
        count_whole += interval.histogram().len();
        let from = ramp + trial.warmup_cut_ms as u64;
        if interval.start_ms >= from && interval.end_ms <= end {
            interval.add_to(&mut all);
        }
    }
    let ms = |us: u64| Some(us as f64 / 1000.0);
    assert_eq!(trial.response_ms.count, all.len());
    assert_eq!(trial.response_ms.p95, ms(all.value_at_quantile(0.95)));
    assert_eq!(trial.response_ms.p99, ms(all.value_at_quantile(0.99)));
    assert_eq!(trial.response_ms.max, ms(all.max()));
    assert_eq!(trial.response_ms.mean, Some(all.mean() / 1000.0));
    assert_eq!(
        trial.service_ms, trial.response_ms,
        "a closed loop keeps one histogram"
    );
    // Transactions count the ramp, too.
    assert_eq!(trial.transactions, count_whole);
    assert!(trial.transactions > trial.response_ms.count);
    let hold_s = (data.record.hold_ms as f64 - trial.warmup_cut_ms) / 1000.0;
    let per_s = trial.throughput_per_s.unwrap();
    assert!((per_s - all.len() as f64 / hold_s).abs() < 1e-9);
}

#[test]
fn quantiles_without_support_are_null() {
    let overrides = vec![("matrix.users".to_owned(), "[2]".to_owned())];
    let made = Made {
        overrides,
        shapes: vec![Shape::default()],
        ..Made::default()
    };
    let analysis = made.analysis();
    let times = analysis.trials[0].response_ms;
    assert!((5..59).contains(&times.count), "{}", times.count);
    assert!(times.mean.is_some() && times.p50.is_some() && times.max.is_some());
    assert_eq!((times.p95, times.p99, times.p999), (None, None, None));
    let json = lab_report::write::json(&analysis).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["trials"][0]["response_ms"]["p95"].is_null());
    assert!(json["cells"][0]["response_ms"]["p99"].is_null());
    // A threshold on it can't be judged, so it doesn't hold.
    let threshold = &analysis.trials[0].thresholds[0];
    assert!(!threshold.holds && threshold.value.is_none());
    assert!(threshold.reason.as_ref().unwrap().contains("59 needed"));
    assert_eq!(analysis.summary.outcome, Comes::ThresholdFailed);
}

#[test]
fn counters_count_the_hold() {
    let analysis = Made::default().analysis();
    let trial = &analysis.trials[0];
    // 20 % in the hold and 5 % in the ramp; the row that straddles its end counts for neither.
    assert_eq!(trial.host["cpu_percent"], Some(20.0));
    assert_eq!(trial.system["cpu_percent"], Some(30.0));
    assert_eq!(trial.system["rss_mb_max"], Some(90.0));
    let demand = trial.system["cpu_ms_per_transaction"].unwrap();
    assert!((demand - 300.0 / trial.throughput_per_s.unwrap()).abs() < 1e-9);
    assert_eq!(
        trial.host["network_kb_per_s"], None,
        "never sampled, always named"
    );
}

#[test]
fn several_trials_give_an_interval() {
    let mut made = Made::default();
    made.study.push_str("trials: 2\n");
    let slower = Shape {
        response_us: 5_000,
        ..Shape::default()
    };
    made.shapes = vec![Shape::default(), Shape::default(), slower, Shape::default()];
    let analysis = made.analysis();
    let mean = analysis.cells[0].response_ms.mean.unwrap();
    let trials: Vec<f64> = [0, 2]
        .iter()
        .map(|at| analysis.trials[*at].response_ms.mean.unwrap())
        .collect();
    assert!((mean.mean - (trials[0] + trials[1]) / 2.0).abs() < 1e-9);
    assert!(mean.low.unwrap() < trials[0] && trials[1] < mean.high.unwrap());
}

#[test]
fn published_figures_stand_beside_ours() {
    let analysis = Made::default().analysis();
    let load = &analysis.published[0];
    assert_eq!(load.source, ["A report of long ago."]);
    assert_eq!(load.left_out, ["users 300: not among this run's trials"]);
    let entry = |metric: &str| {
        load.entries
            .iter()
            .find(|entry| entry.metric == metric)
            .unwrap()
    };
    let transactions = entry("transactions");
    assert_eq!(transactions.published, Some(1800.0));
    assert_eq!(
        transactions.ours,
        Some(analysis.trials[0].transactions as f64)
    );
    assert!((transactions.ratio.unwrap() - transactions.ours.unwrap() / 1800.0).abs() < 1e-12);
    assert_eq!(entry("elapsed").published, Some(27.0));
    assert_eq!(entry("elapsed").ours, Some(30.0));
    for metric in ["elapsed", "tps"] {
        let note = entry(metric).note.as_ref().unwrap();
        assert!(
            note.contains("by construction") && note.contains("30 s"),
            "{note}"
        );
    }
    assert!(
        entry("disk_split_io_per_s")
            .note
            .as_ref()
            .unwrap()
            .contains("merged")
    );
    assert_eq!(entry("disk_split_io_per_s").ours, None);

    let steps = &analysis.published[1];
    let log_in = steps
        .entries
        .iter()
        .find(|e| e.step.as_deref() == Some("Log in"))
        .unwrap();
    assert_eq!(log_in.ours, analysis.trials[0].steps[0].response_ms.mean);
    let remove = steps
        .entries
        .iter()
        .find(|e| e.step.as_deref() == Some("Remove"))
        .unwrap();
    assert_eq!(
        remove.note.as_deref(),
        Some("the workload has no such step")
    );
}

#[test]
fn a_run_that_was_sped_up_says_so_beside_published_figures() {
    let analysis = Made {
        speed: 3.0,
        ..Made::default()
    }
    .analysis();
    let note = "at --speed 3: load per user is 3 times the report's";
    assert!(analysis.published.iter().all(|table| table.notes == [note]));
    for text in [
        lab_report::write::terminal(&analysis, 200),
        lab_report::write::markdown(&analysis),
        lab_report::write::html(&analysis).replace("&#39;", "'"),
    ] {
        assert!(
            text.matches("load per user is 3 times").count() >= 3,
            "{text}"
        );
    }
    assert!(Made::default().analysis().speed_note().is_none());
}

#[test]
fn the_same_archive_gives_the_same_report() {
    let run = Made::default().run();
    let (one, two) = (analyse(&run).unwrap(), analyse(&run).unwrap());
    assert_eq!(
        lab_report::write::json(&one).unwrap(),
        lab_report::write::json(&two).unwrap()
    );
    assert_eq!(lab_report::write::html(&one), lab_report::write::html(&two));
}

#[test]
fn a_run_that_was_cut_short_says_what_is_missing() {
    let mut made = Made::default();
    made.shapes.truncate(1);
    let analysis = made.analysis();
    assert_eq!(
        (analysis.summary.planned, analysis.summary.complete),
        (2, 1)
    );
    assert!(
        analysis
            .findings
            .iter()
            .any(|finding| finding.contains("1 of 2 trials"))
    );
    made.shapes.clear();
    let empty = made.analysis();
    assert_eq!(empty.summary.outcome, Comes::TooFewValidTrials);
    assert!(empty.headline.contains("nothing to report"));
    assert!(lab_report::write::html(&empty).contains("nothing to report"));
    assert!(lab_report::write::terminal(&empty, 80).contains("nothing to report"));
}

#[test]
fn a_damaged_plan_is_an_error_in_words() {
    let mut run = Made::default().run();
    run.plan = serde_json::json!({"schema": "plimsoll.plan/2"});
    let error = analyse(&run).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the archive's plan.json can't be read as a plan"
    );
    run.plan = serde_json::json!({"schema": "plimsoll.plan/1"});
    let error = analyse(&run).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the archive's plan is `plimsoll.plan/1`, which this version can't judge by"
    );
    let mut run = Made::default().run();
    run.trials[0].record.id = 99;
    let error = analyse(&run).unwrap_err();
    assert_eq!(
        error.to_string(),
        "trial 99 is in the archive but not in its plan"
    );
}

#[test]
fn each_side_is_held_against_its_own_cores() {
    let finding = |users: &str, shape: &Shape| {
        let made = Made {
            overrides: vec![("matrix.users".to_owned(), users.to_owned())],
            ..Made::both(shape)
        };
        let findings = made.analysis().findings;
        let found = findings.into_iter().find(|text| text.contains("of its"));
        found.unwrap()
    };
    let healthy = Shape::default();
    // The host is 54 % busy, because the other core is the generator's.
    assert_eq!(
        finding("[100, 270]", &healthy),
        "At 270 users the system used 81.0 % of its one core, the generator 15.5 % of its own: \
         little CPU is left to the system; the bottleneck is the \
         system's CPU, 4.50 ms per transaction, which would be full at 222 transactions per s."
    );
    assert!(finding("[100, 300]", &healthy).contains("its CPU is the limit;"));
    assert!(finding("[100, 200]", &healthy).contains("neither side ran out of CPU;"));
    let unknown = Shape {
        scheduling: false,
        ..healthy
    };
    let text = finding("[100, 200]", &unknown);
    assert!(
        text.contains("the system did not run out of CPU;"),
        "{text}"
    );
}

/// Users and threads vary, and threads have the larger effect.
fn two_factors() -> Made {
    let mut made = Made::default();
    made.study = made
        .study
        .replace(
            "matrix: { users: [100, 200] }",
            "matrix: { users: [100, 200], threads: [2, 4] }",
        )
        .replace("http_threads: 2", "http_threads: \"{{ threads }}\"");
    made.shapes = [4_000, 8_000, 4_000, 16_000]
        .map(|response_us| Shape {
            response_us,
            ..Shape::default()
        })
        .to_vec();
    made
}

#[test]
fn growth_compares_cells_that_differ_in_users_only() {
    let findings = two_factors().analysis().findings;
    let growth = findings
        .iter()
        .find(|text| text.contains("times the users"));
    let growth = growth.unwrap();
    assert!(
        growth.contains("at users 100 · threads 4,"),
        "{growth}, of {findings:?}"
    );
    let demand = findings.iter().find(|t| t.contains("A transaction cost"));
    assert!(
        demand.unwrap().contains("at users 100 · threads 4 and"),
        "{demand:?}"
    );
}

#[test]
fn counts_of_a_cell_are_means_over_its_trials() {
    let mut made = Made::default();
    made.study.push_str("trials: 2\n");
    let fails = |fails_every| Shape {
        fails_every,
        skips_every: 500,
        ..Shape::default()
    };
    made.shapes = vec![fails(40), Shape::default(), fails(25), Shape::default()];
    let analysis = made.analysis();
    let cell = &analysis.cells[0];
    assert_eq!(cell.valid_trials, 2, "{:#?}", analysis.trials);
    let (one, two) = (analysis.trials[0].errors, analysis.trials[2].errors);
    assert!(one > 0 && one < two);
    assert_eq!(cell.errors, one + two);
    let mean = (one + two) as f64 / 2.0;
    assert_eq!(cell.errors_per_trial, Some(mean));
    assert_eq!(cell.skipped_per_trial, Some(cell.skipped as f64 / 2.0));
    let by_step: f64 = cell.steps.iter().filter_map(|s| s.errors_per_trial).sum();
    assert!((by_step - mean).abs() < 1e-9);
    let text = lab_report::write::terminal(&analysis, 80);
    let row = text
        .lines()
        .find(|line| line.starts_with("errors"))
        .unwrap();
    let shown = row.split_whitespace().nth(1).unwrap();
    assert_eq!(shown.parse::<f64>().unwrap(), mean, "{row}");
}

#[test]
fn the_report_says_how_the_system_was_set_up() {
    let mut made = two_factors();
    made.overrides = vec![("load.hold".to_owned(), "24s".to_owned())];
    let mut analysis = made.analysis();
    assert_eq!(
        analysis.trials[0].system_settings["http_threads"], "2",
        "the record's"
    );
    for trial in &mut analysis.trials {
        let settings = &mut trial.system_settings;
        settings.insert("engine".to_owned(), "memory".to_owned());
    }
    let two = "and with http_threads 2 (at users 100 · threads 2 and users 200 · threads 2)";
    for text in [
        lab_report::write::terminal(&analysis, 200),
        lab_report::write::markdown(&analysis).replace('\\', ""),
        lab_report::write::html(&analysis),
    ] {
        assert_eq!(text.matches(two).count(), 1, "{text}");
        assert_eq!(text.matches("and with http_threads ").count(), 2, "{text}");
        let all = "system set up with: engine memory";
        assert_eq!(text.matches(all).count(), 1, "{text}");
        assert_eq!(text.matches("changed by --set: load.hold=24s").count(), 1);
        assert_eq!(text.matches("Mailboxes are not padded.").count(), 1);
    }
    let json = lab_report::write::json(&analysis).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["trials"][0]["system_settings"]["http_threads"], "2");
    assert_eq!(json["trials"][0]["notes"][0], "Mailboxes are not padded.");
}

#[test]
fn committed_memory_is_said_to_be_reserved() {
    let analysis = Made {
        load_csv: "# A.\nusers,memory_committed_percent\n100,11\n".to_owned(),
        ..Made::default()
    }
    .analysis();
    let entry = &analysis.published[0].entries[0];
    assert_eq!(
        entry.note.as_deref(),
        Some("Linux's Committed_AS; counts reserved, not used")
    );
}

#[test]
fn a_server_that_took_a_part_of_the_load_did_not_carry_it() {
    let slow = Shape {
        delivered: 0.62,
        response_us: 920_000,
        ..Shape::default()
    };
    let mut made = Made::default();
    made.study = made.study.replace("p(95) < 300ms", "p(95) < 30s");
    made.shapes[1] = slow.clone();
    let analysis = made.analysis();
    assert_eq!(analysis.summary.outcome, Comes::Ok);
    assert!(
        analysis
            .headline
            .starts_with("The server took only 62 % of the planned load at 200 users, without"),
        "{}",
        analysis.headline
    );
    assert!(!analysis.headline.contains("carried"));
    let verdict = "A valid measurement, but the server took only 62 % of the planned load.";
    assert!(lab_report::write::markdown(&analysis).contains(verdict));
    assert!(lab_report::write::html(&analysis).contains("class=\"pill warn\""));
    assert!(lab_report::write::html(&Made::default().analysis()).contains("class=\"pill good\""));
    // The same beside a threshold that failed.
    let failed = Made::both(&slow).analysis();
    assert_eq!(failed.summary.outcome, Comes::ThresholdFailed);
    let took =
        "the server took only 62 % of the planned load at 100 users and only 62 % at 200 users";
    assert!(failed.headline.contains(took), "{}", failed.headline);
}
