//! Reports on functions that differ between variants.

use lab_analysis::model::{Difference, SamplesOf, TrialAnalysis};
use lab_analysis::{Analysis, analyse};
use lab_profile::{Builder, Profile, Sample};
use lab_report::write::{html, markdown, terminal};

use crate::answers;

/// A function of *before* that *after* knows by another name.
const RENAMED: usize = 30;

/// Forty functions with a third of their time in their own code and two in `mixing`. After the change `work_17` takes
/// three times as much. `trial` makes the noise.
fn profile(trial: u64, is_after: bool) -> Profile {
    let mut builder = Builder::default();
    let thread = builder.thread("http-1");
    let mut locate = |name: &str| builder.placeholder(name);
    let outer = ["main", "serve", "handle"].map(&mut locate);
    let mixing = locate("mixing");
    let name = |n: usize| match is_after && n == RENAMED {
        true => "worked".to_owned(),
        false => format!("work_{n}"),
    };
    let work: Vec<usize> = (0..40).map(|n| locate(&name(n))).collect();
    for (n, at) in work.into_iter().enumerate() {
        let times = if is_after && n == 17 { 3 } else { 1 };
        for (kind, mean) in [(0, 21_u64), (1, 42)] {
            let key = trial * 1_009 + n as u64 * 31 + kind * 17 + u64::from(is_after) * 7_919;
            let noise = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
            let count = times * mean + noise % (mean / 2) - mean / 4;
            let mut stack = outer.to_vec();
            stack.push(at);
            stack.extend((kind == 1).then_some(mixing));
            stack.reverse();
            builder.add(Sample {
                stack,
                thread,
                second: 25,
                count,
                ns: count * 5_000_000,
                wait: None,
            });
        }
    }
    builder.finish()
}

/// Two variants in this many blocks, whose trials have profiles.
fn made(blocks: usize) -> Analysis {
    let mut run = answers::made(answers::VARIANTS, blocks, 1.0, 0.01).run();
    let bare = analyse(&run).unwrap();
    for (at, trial) in run.trials.iter_mut().enumerate() {
        let is_it = |one: &&TrialAnalysis| one.id == trial.record.id;
        let label = &bare.trials.iter().find(is_it).unwrap().label;
        let is_after = label == "variant after";
        let profile = profile(at as u64, is_after);
        trial.cpu_profile = Some(Ok(profile.to_pprof().bytes));
        let cpu = trial.monitor.column("system.cpu_percent").unwrap();
        let percent = if is_after { 31.5 } else { 30.0 } + 0.01 * (at * 7_919 % 13) as f64;
        for (_, row) in &mut trial.monitor.rows {
            row[cpu] = Some(percent);
        }
    }
    analyse(&run).unwrap()
}

pub(crate) fn analysis() -> Analysis {
    made(8)
}

#[test]
fn the_function_is_named_in_result_and_report() {
    let analysis = analysis();
    let [found] = &analysis.profile_differences[..] else {
        panic!("{:#?}", analysis.profile_differences);
    };
    assert_eq!((found.a.as_str(), found.blocks), ("variant before", 8));
    let [one] = &found.findings[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(
        (one.function.as_str(), one.of),
        ("work_17", SamplesOf::Total)
    );
    assert_eq!(one.called_by.as_deref(), Some("handle"));
    assert_eq!(found.moved[0].to, "worked");
    assert_eq!(found.rest.unwrap().verdict, Difference::Equal);
    let said = "variant after against variant before: `work_17`, called by `handle`, uses ";
    assert!(analysis.findings.iter().any(|one| one.starts_with(said)));
    let text = terminal(&analysis, 80);
    let (_, section) = text.split_once("What differs\n").expect("the section");
    insta::assert_snapshot!(section.split("\nChecks").next().unwrap());
    assert!(markdown(&analysis).contains("## What differs"));
}

#[test]
fn the_flame_graph_colours_the_function_alone() {
    let page = html(&analysis());
    let (_, graph) = page
        .split_once("aria-label=\"CPU time of variant after against")
        .expect("the graph");
    let graph = graph.split("</figure>").next().unwrap();
    let class_of = |title: &str| {
        let (before, _) = graph.split_once(&format!("<title>{title}\n")).expect(title);
        let (_, tag) = before.rsplit_once("<svg").unwrap();
        tag.to_owned()
    };
    assert!(
        class_of("work_17").contains("class=\"m3\""),
        "{}",
        class_of("work_17")
    );
    assert!(class_of("handle").contains("class=\"o\""));
    assert!(!class_of("work_16").contains("class"));
}

#[test]
fn few_blocks_say_why_no_function_is_named() {
    let analysis = made(5);
    let found = &analysis.profile_differences[0];
    assert!(found.findings.is_empty() && found.paths.is_empty());
    let text = terminal(&analysis, 80);
    assert!(
        text.contains("Functions are not compared: only 5 blocks have a valid profile of both"),
        "{text}"
    );
    assert!(!html(&analysis).contains("CPU time of variant after against"));
}
