//! Reports on waits and scheduling.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use lab_analysis::model::TrialAnalysis;
use lab_analysis::{Analysis, analyse};
use lab_archive::{Run, ThreadsLine, Waits};
use lab_profile::waits::{Class, ThreadGroup};
use lab_profile::{Builder, Function, Kind, Line, Location, Mapping, Profile, Sample, Wait};
use lab_report::write::{html, markdown, terminal};

use crate::answers;

/// The waits of a thread in a second of a trial, in ms, before and after the change.
const LOCK: [u64; 2] = [60, 180];
const NO_CORE: [u64; 2] = [40, 240];

/// A profile of waits in which `under_the_lock` waits three times as long after the change. `trial` makes the noise.
fn profile(trial: u64, is_after: bool) -> Profile {
    let mut builder = Builder::of(Kind::Off);
    let mut locate = |name: &str| {
        let (file, name) = match name.strip_prefix('~') {
            Some(name) => ("[kernel]", name),
            None => ("/srv/server", name),
        };
        let mapping = builder.mapping(Mapping {
            file: file.to_owned(),
            build_id: String::new(),
        });
        let function = builder.function(Function {
            name: name.to_owned(),
            file: String::new(),
        });
        builder.location(Location {
            mapping: Some(mapping),
            address: 0x1000 + function as u64,
            lines: vec![Line { function, line: 0 }],
        })
    };
    let mut stack = |names: &str| -> Vec<usize> { names.rsplit(' ').map(&mut locate).collect() };
    let stacks = [
        (
            "http-1",
            stack(
                "main serve handle under_the_lock pthread_mutex_lock ~__x64_sys_futex ~futex_do_wait",
            ),
            Class::Lock,
            LOCK,
        ),
        (
            "http-1",
            stack(
                "main serve handle other_lock pthread_mutex_lock ~__x64_sys_futex ~futex_do_wait",
            ),
            Class::Lock,
            [30; 2],
        ),
        (
            "http-2",
            stack("main serve handle work"),
            Class::NoCore,
            NO_CORE,
        ),
        (
            "store-writer",
            stack(
                "main commit_all<script>alert(1)</script> fdatasync ~__x64_sys_fdatasync ~do_fsync",
            ),
            Class::Disk,
            [20; 2],
        ),
        (
            "http-1",
            stack("main serve epoll_wait ~__x64_sys_epoll_wait ~ep_poll"),
            Class::Poll,
            [700; 2],
        ),
    ];
    let waker = builder.waker("http-* in handle");
    for second in 0..30 {
        for (at, (thread, stack, class, ms)) in stacks.iter().enumerate() {
            let key = (trial * 1_009 + u64::from(second) * 31 + at as u64 * 17)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                >> 48;
            let ms = ms[usize::from(is_after)];
            let thread = builder.thread(thread);
            builder.add(Sample {
                stack: stack.clone(),
                thread,
                second,
                count: ms / 2,
                ns: (ms * 1_000_000) * (950 + key % 100) / 1_000,
                wait: Some(Wait {
                    class: *class,
                    waker: (*class == Class::Lock).then_some(waker),
                }),
            });
        }
    }
    builder.finish()
}

/// The states of threads in each second.
fn threads(trial: u64, is_after: bool) -> Vec<ThreadsLine> {
    let at = usize::from(is_after);
    let ms = |ms: u64| ms * 1_000_000;
    let second = |second: u64| {
        let noise = (trial * 7 + second * 3) % 5;
        let no_core = ms(NO_CORE[at] + noise);
        let http = BTreeMap::from([
            (Class::Lock, ms(LOCK[at] + 30)),
            (Class::Poll, ms(1_700 - LOCK[at]) - no_core),
        ]);
        let group = |name: &str, threads: u32, on_cpu_ns, no_core_ns, blocked| ThreadsLine {
            t_ms: 1000.0 * (second + 1) as f64,
            group: ThreadGroup {
                name: name.to_owned(),
                threads,
                wall_ns: ms(1_000) * u64::from(threads),
                on_cpu_ns,
                no_core_ns,
                blocked_ns: blocked,
            },
        };
        let writer = BTreeMap::from([(Class::Disk, ms(20)), (Class::Idle, ms(960))]);
        [
            group("http-*", 2, ms(270), no_core, Some(http)),
            group("store-writer", 1, ms(15), ms(5), Some(writer)),
            group("tokio-blocking", 1, ms(1), 0, None),
        ]
    };
    (0..30).flat_map(second).collect()
}

fn waits(trial: u64, is_after: bool) -> Waits {
    let mut http = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    let longest = if is_after { 20 } else { 2 };
    for n in 1..=500 {
        http.record(longest * n * 2 + trial).unwrap();
    }
    let mut few = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    few.record(70).unwrap();
    Waits {
        profile: Some(Ok(profile(trial, is_after).to_pprof().bytes)),
        threads: Some(Ok(threads(trial, is_after))),
        latency: Some(Ok(BTreeMap::from([
            ("http-*".to_owned(), http),
            ("store-writer".to_owned(), few),
        ]))),
    }
}

/// Two variants in this many blocks, the second of which responds `times` as long as the first.
fn run(blocks: usize, times: f64) -> Run {
    // The variants run one after the other.
    let study = format!("{}duet: false\n", answers::VARIANTS);
    let mut run = answers::made(&study, blocks, times, 0.01).run();
    let bare = analyse(&run).unwrap();
    for (at, trial) in run.trials.iter_mut().enumerate() {
        let is_it = |one: &&TrialAnalysis| one.id == trial.record.id;
        let label = &bare.trials.iter().find(is_it).unwrap().label;
        trial.waits = waits(at as u64, label == "variant after");
    }
    run
}

pub(crate) fn analysis() -> Analysis {
    analyse(&run(8, 1.2)).unwrap()
}

/// Too few blocks to compare.
pub(crate) fn few() -> Analysis {
    analyse(&run(5, 1.2)).unwrap()
}

#[test]
fn times_are_those_of_the_archive_by_transaction() {
    let analysis = analysis();
    let [before, after] = &analysis.waiting.waits[..] else {
        panic!("{} cells", analysis.waiting.waits.len());
    };
    assert_eq!((before.trials, after.trials), (8, 8));
    for (at, cell) in [before, after].into_iter().enumerate() {
        let rate: Vec<f64> = analysis
            .trials
            .iter()
            .filter(|one| one.label == cell.label)
            .filter_map(|one| one.throughput_per_s)
            .collect();
        let rate = rate.iter().sum::<f64>() / rate.len() as f64;
        let of = |function: &str| {
            cell.summary
                .waits
                .iter()
                .find(|one| one.function == function)
                .unwrap()
        };
        let lock = of("under_the_lock");
        let expected = LOCK[at] as f64 * 1e3 / rate;
        assert!(
            (lock.us / expected - 1.0).abs() < 0.03,
            "{lock:?} {expected}"
        );
        assert_eq!(lock.wakers[0].name, "http-* in handle");
        let http = &cell.summary.groups[0];
        assert_eq!((http.group.as_str(), http.threads), ("http-*", 2.0));
        let on_cpu = 270e3 / rate;
        assert!(
            (http.on_cpu_us / on_cpu - 1.0).abs() < 0.01,
            "{http:?} {on_cpu}"
        );
        let all = http.on_cpu_us
            + http.no_core_us
            + http.unknown_us
            + http.blocked_us.as_ref().unwrap().values().sum::<f64>();
        assert!((all / (2e6 / rate) - 1.0).abs() < 0.001, "{all}");
        let blocking = cell
            .summary
            .groups
            .iter()
            .find(|one| one.group == "tokio-blocking")
            .unwrap();
        assert!(blocking.blocked_us.is_none() && blocking.unknown_us > 0.9e6 / rate);
    }
}

#[test]
fn the_wait_and_the_reason_are_named() {
    let analysis = analysis();
    let [found] = &analysis.waiting.wait_differences[..] else {
        panic!("{:#?}", analysis.waiting.wait_differences);
    };
    let names: Vec<(&str, Class)> = found
        .findings
        .iter()
        .map(|one| (one.function.as_str(), one.class))
        .collect();
    assert_eq!(
        names,
        [
            ("[any code]", Class::NoCore),
            ("under_the_lock", Class::Lock)
        ]
    );
    let [scheduling] = &analysis.waiting.scheduling_differences[..] else {
        panic!("{:#?}", analysis.waiting.scheduling_differences);
    };
    let differing = scheduling.latencies.iter().filter(|one| one.differs);
    let differing: Vec<(&str, &str)> = differing
        .map(|one| (one.group.as_str(), one.quantile.as_str()))
        .collect();
    assert_eq!(differing, [("http-*", "p50"), ("http-*", "p99")]);
    let text = terminal(&analysis, 80);
    let (_, section) = text
        .split_once("What threads wait for\n")
        .expect("the section");
    insta::assert_snapshot!(
        section
            .split("\nThrough the trials")
            .next()
            .unwrap()
            .split("\nChecks")
            .next()
            .unwrap()
    );
    let markdown = markdown(&analysis);
    assert!(markdown.contains("## What threads wait for") && markdown.contains("## Scheduling"));
    assert!(!markdown.contains("<script>"));
    assert!(
        analysis
            .findings
            .iter()
            .any(|one| one.starts_with("Responses are longer because threads that were ready")),
        "{:#?}",
        analysis.findings
    );
}

#[test]
fn equal_responses_have_no_reason() {
    let analysis = analyse(&run(8, 1.0)).unwrap();
    let said = &analysis.waiting.scheduling_differences[0].sentences[0];
    assert!(
        said.starts_with("Ready, but without a core, variant after against variant before"),
        "{said}"
    );
    let few = few();
    assert!(few.waiting.wait_differences[0].findings.is_empty());
    assert!(few.waiting.wait_differences[0].reason.is_some());
    assert!(
        few.waiting.scheduling_differences[0]
            .no_core
            .unwrap()
            .us_interval
            .is_none()
    );
    assert!(!few.findings.iter().any(|one| one.contains("because")));
}

#[test]
fn a_page_has_bars_and_a_flame_graph_without_waits_for_work() {
    let page = html(&analysis());
    assert!(page.contains("<svg class=\"spent\"") && page.contains("What threads wait for"));
    let (_, graph) = page
        .split_once("aria-label=\"Waits by call path, variant after")
        .expect("the graph");
    let graph = graph.split("</figure>").next().unwrap();
    assert!(graph.contains("<title>under_the_lock\n") && !graph.contains("ep_poll"));
    assert!(page.contains("commit_all&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("alert(1)</script>"));
    assert!(page.contains("class=\"muted\""));
    if let Some(folder) = std::env::var_os("PAGES") {
        std::fs::write(std::path::Path::new(&folder).join("waits.html"), &page).unwrap();
    }
}

#[test]
fn without_stacks_there_is_the_time_of_threads() {
    let mut run = run(8, 1.2);
    for trial in &mut run.trials {
        trial.waits.profile = None;
        trial.waits.latency = None;
        if let Some(Ok(lines)) = &mut trial.waits.threads {
            lines
                .iter_mut()
                .for_each(|line| line.group.blocked_ns = None);
        }
    }
    let analysis = analyse(&run).unwrap();
    let waiting = &analysis.waiting;
    assert!(waiting.wait_differences.is_empty() && waiting.scheduling.is_empty());
    let [cell, _] = &waiting.waits[..] else {
        panic!("{} cells", waiting.waits.len());
    };
    assert!(cell.summary.waits.is_empty() && cell.summary.tree.is_none());
    assert!(waiting.scheduling_differences[0].is_reason);
    let text = terminal(&analysis, 80);
    let (_, section) = text
        .split_once("What threads wait for\n")
        .expect("the section");
    assert!(
        section.contains("threads, µs       threads  on CPU  no core  blocked\n"),
        "{section}"
    );
    assert!(
        section.contains("Responses are longer because threads that were ready waited"),
        "{section}"
    );
    assert!(!html(&analysis).contains("Waits by call path"));
}

#[test]
fn damaged_files_are_notes_and_the_rest_stands() {
    let mut run = run(6, 1.0);
    run.trials[0].waits.profile = Some(Ok(b"nonsense".to_vec()));
    run.trials[1].waits.threads = Some(Err("threads.csv is damaged".to_owned()));
    run.trials[2].waits.latency = Some(Err("latency.hlog is damaged".to_owned()));
    let analysis = analyse(&run).unwrap();
    assert_eq!(analysis.summary.valid, 12);
    let text = markdown(&analysis);
    for problem in [
        "waits.pb.gz",
        "threads.csv is damaged",
        "latency.hlog is damaged",
    ] {
        assert!(text.contains(problem), "{text}");
    }
    assert_eq!(analysis.waiting.wait_differences[0].blocks, 5);
    assert_eq!(analysis.waiting.waits.len(), 2);
}
