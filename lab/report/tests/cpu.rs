//! Reports on CPU profiles.

use lab_analysis::{Analysis, analyse};
use lab_archive::Run;
use lab_profile::{Builder, Function, Line, Location, Mapping, Profile, Sample};
use lab_report::write::{html, markdown, terminal};

use crate::support::Made;

/// A profile of a server of 40 functions with this much more work in one of them, in each second from the first on.
fn profile(extra: u64, seconds: u32) -> Profile {
    let mut builder = Builder::default();
    let mapping = builder.mapping(Mapping {
        file: "/srv/server".to_owned(),
        build_id: "0badcafe".to_owned(),
    });
    let mut locate = |name: &str| {
        let function = builder.function(Function {
            name: name.to_owned(),
            file: "/src/server.rs".to_owned(),
        });
        let location = Location {
            mapping: Some(mapping),
            address: 0x1000 + function as u64,
            lines: vec![Line { function, line: 7 }],
        };
        builder.location(location)
    };
    let outer = ["std::thread::spawn", "server::serve<T>", "server::handle"].map(&mut locate);
    let work: Vec<usize> = (0..40)
        .map(|n| locate(&format!("server::work_{n:02}")))
        .collect();
    let mixing = locate(
        "<server::Mixer as core::hash::Hasher>::write::{{closure}}::with_a_name_that_is_long",
    );
    let store = ["store::write_loop", "fdatasync<script>alert(1)</script>"].map(&mut locate);
    let broken = builder.placeholder(Profile::BROKEN);
    let (http, writer) = (["http-0", "http-1"], builder.thread("store-writer"));
    let http = http.map(|name| builder.thread(name));
    for second in 0..seconds {
        let mut add = |thread, stack: Vec<usize>, count: u64| {
            builder.add(Sample {
                stack: stack.into_iter().rev().collect(),
                thread,
                second,
                count,
                ns: count * 5_000_000,
                wait: None,
            });
        };
        for (n, at) in work.iter().enumerate() {
            let more = if n == 17 { extra } else { 0 };
            let stack = outer.iter().copied().chain([*at]).collect();
            add(http[n % 2], stack, 3 + more);
            let stack = outer.iter().copied().chain([*at, mixing]).collect();
            add(http[n % 2], stack, 1);
        }
        add(writer, store.to_vec(), 12);
        add(writer, vec![broken, store[1]], 15);
    }
    builder.finish()
}

/// The usual run, each of whose trials has a profile.
pub(crate) fn profiled() -> Run {
    let mut run = Made::default().run();
    for (at, trial) in run.trials.iter_mut().enumerate() {
        trial.cpu_profile = Some(Ok(profile(at as u64 * 9, 30).to_pprof().bytes));
    }
    run
}

pub(crate) fn analysis() -> Analysis {
    analyse(&profiled()).unwrap()
}

#[test]
fn own_time_adds_up_to_the_cpu_per_transaction_of_the_report() {
    for (profile, cell) in analysis().cpu_profiles.iter().zip(&analysis().cells) {
        let own: f64 = profile.functions.iter().filter_map(|one| one.own_us).sum();
        let reported = 1000.0 * cell.system["cpu_ms_per_transaction"].unwrap();
        assert!((own / reported - 1.0).abs() < 1e-9, "{own} {reported}");
        let percent: f64 = profile.functions.iter().map(|one| one.own_percent).sum();
        assert!((percent - 100.0).abs() < 1e-9);
        let threads: f64 = profile.threads.iter().map(|one| one.percent).sum();
        assert!((threads - 100.0).abs() < 1e-9);
    }
}

#[test]
fn the_ramp_and_the_warm_up_do_not_count() {
    let analysis = analysis();
    for (profile, trial) in analysis.cpu_profiles.iter().zip(&analysis.trials) {
        let begin = (trial.ramp_ms as f64 + trial.warmup_cut_ms) / 1000.0;
        let seconds = (trial.ramp_ms + trial.hold_ms) as f64 / 1000.0 - begin.ceil();
        let each = profile.samples as f64 / seconds;
        assert_eq!(
            each.fract(),
            0.0,
            "{} samples, {seconds} s",
            profile.samples
        );
        assert!(each >= 187.0);
    }
}

#[test]
fn a_terminal_has_ten_functions_of_each_cell() {
    let text = terminal(&analysis(), 80);
    let (_, section) = text
        .split_once("Where the CPU time goes")
        .expect("the section");
    insta::assert_snapshot!(section.split("\nPublished").next().unwrap());
    let markdown = markdown(&analysis());
    let rows = markdown
        .lines()
        .filter(|line| line.contains("server::work"));
    assert!(rows.count() >= 16, "{markdown}");
    assert!(markdown.contains("## Where the CPU time goes"));
    assert!(!markdown.contains("<script>"));
}

#[test]
fn a_page_has_a_flame_graph_in_which_names_are_escaped() {
    let (with, without) = (html(&analysis()), html(&Made::default().analysis()));
    assert!(
        with.contains("<figure class=\"flame\">") && !without.contains("<figure class=\"flame\">")
    );
    assert!(with.contains("fdatasync&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!with.contains("alert(1)</script>"));
    assert!(with.contains("<title>server::work_17\n") && with.contains("; in server.rs"));
    let more = with.len() - without.len();
    assert!(more < 400_000, "{more} bytes more");
}

#[test]
fn a_damaged_profile_is_a_note_and_the_rest_stands() {
    for (damaged, why) in [
        (Ok(b"nonsense".to_vec()), "not in the pprof format"),
        (Ok(vec![0x1f, 0x8b, 8]), "its compression (gzip) is damaged"),
        (
            Err("cpu.pb.gz is damaged: it has 3 bytes and should have 9".to_owned()),
            "should have 9",
        ),
    ] {
        let mut run = profiled();
        run.trials[0].cpu_profile = Some(damaged);
        let analysis = analyse(&run).unwrap();
        assert_eq!(analysis.cpu_profiles.len(), 1, "that of the other cell");
        assert_eq!(analysis.summary.valid, 2);
        let text = markdown(&analysis);
        assert!(
            text.contains("The CPU profile can't be read")
                && text.contains(&why.replace('_', "\\_")),
            "{text}"
        );
    }
}

#[test]
fn invalid_trials_have_no_part() {
    let mut made = Made::default();
    made.shapes[1].late_few = (100_000, 900_000);
    let mut run = made.run();
    for trial in &mut run.trials {
        trial.cpu_profile = Some(Ok(profile(0, 30).to_pprof().bytes));
    }
    let analysis = analyse(&run).unwrap();
    assert_eq!(analysis.summary.valid, 1);
    assert_eq!(analysis.cpu_profiles.len(), 1);
}
