//! The formats of other tools.

use lab_profile::waits::{Class, Patterns, Summary, Trial};
use lab_profile::{Profile, Sums, formats};
use serde_json::Value;

use crate::made::Stacks;

fn profile() -> Profile {
    Stacks::default()
        .with("http-0", 1, "main;serve;work", 6)
        .with("http-1", 2, "main;serve;work", 2)
        .with("http-1", 2, "main;serve", 1)
        .with("store;writer", 2, "main;<T as a\nb>::f", 3)
        .profile()
}

#[test]
fn folded_stacks_have_a_line_each() {
    assert_eq!(
        formats::folded(&profile()),
        "http-*;main;serve 1\n\
         http-*;main;serve;work 8\n\
         store:writer;main;<T as a b>::f 3\n"
    );
}

#[test]
fn speedscope_has_a_profile_per_group_of_threads() {
    let file = formats::speedscope(&profile(), "trial 1").unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["name"], "trial 1");
    let group = &file["profiles"][0];
    assert_eq!(
        (&group["name"], &group["type"]),
        (&"http-*".into(), &"sampled".into())
    );
    assert_eq!(group["weights"], serde_json::json!([5_000_000, 40_000_000]));
    assert_eq!(group["endValue"], 45_000_000);
    let names = |stack: &Value| -> Vec<String> {
        let frames = stack.as_array().unwrap().iter();
        let name =
            |frame: &Value| &file["shared"]["frames"][frame.as_u64().unwrap() as usize]["name"];
        frames
            .map(|frame| name(frame).as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&group["samples"][1]), ["main", "serve", "work"]);
    assert_eq!(file["shared"]["frames"][0]["file"], "/src/server.rs");
}

#[test]
fn firefox_has_a_thread_per_group_and_samples_in_order_of_time() {
    let file = formats::firefox(&profile(), "trial 1").unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["meta"]["product"], "trial 1");
    assert_eq!(file["meta"]["symbolicated"], true);
    let threads = file["threads"].as_array().unwrap();
    let named = |name: &str| {
        threads
            .iter()
            .find(|thread| thread["name"] == name)
            .unwrap()
    };
    let samples = &named("http-*")["samples"];
    assert_eq!(samples["weight"], serde_json::json!([6, 2, 1]));
    // Seconds 1 and 2; the last follows the one before it by its 10 ms.
    let deltas = samples["timeDeltas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|delta| delta.as_f64().unwrap());
    assert_eq!(deltas.collect::<Vec<_>>(), [1000.0, 1000.0, 10.0]);
    assert!(
        threads
            .iter()
            .any(|thread| thread["name"] == "store;writer")
    );
    let text = file.to_string();
    assert!(text.contains("\"work\"") && text.contains("<T as a\\nb>::f"));
}

#[test]
fn a_table_gives_time_per_transaction() {
    let sums = Sums::of(&profile());
    assert_eq!(
        formats::table(&sums, Some(1000.0), 2),
        "  self              total             function
     %      µs/tx       %      µs/tx
  66.7      40.00    66.7      40.00  work
  25.0      15.00    25.0      15.00  <T as a b>::f
   8.3       5.00                     2 further functions
"
    );
    assert!(
        formats::table(&sums, None, 9).contains("  66.7      40.00    66.7      40.00  work\n")
    );
    assert!(formats::table(&Sums::default(), Some(0.0), 9).contains("ms"));
}

fn waits() -> Profile {
    Stacks::of_waits()
        .waiting(
            ("http-0", 1),
            "main;lock\u{7}ed;~futex_wait",
            (6, Class::Lock, Some("http-* in a\nb")),
        )
        .waiting(("http-1", 2), "main;~ep_poll", (2, Class::Poll, None))
        .profile()
}

#[test]
fn folded_waits_have_microseconds() {
    assert_eq!(
        formats::folded(&waits()),
        "http-*;main;ep_poll 10000\nhttp-*;main;lock ed;futex_wait 30000\n"
    );
    let file = formats::firefox(&waits(), "waits").unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let deltas = file["threads"][0]["samples"]["threadCPUDelta"]
        .as_array()
        .unwrap();
    assert!(
        deltas.iter().all(|delta| delta.as_f64() == Some(0.0)),
        "{deltas:?}"
    );
}

#[test]
fn a_table_of_waits_has_those_for_work_last() {
    let profile = waits();
    let trial = Trial {
        profile: Some(&profile),
        groups: &[],
        recorded_seconds: 2.0,
        seconds: 2.0,
        transactions_per_s: None,
    };
    let summary = Summary::of(&[trial], Patterns::built_in()).unwrap();
    assert_eq!(
        formats::waits_table(&summary, 9),
        "      µs/s    waits/s  waits for          function
  15000.00      3.000  lock               lock ed, ended by http-* in a b (100 %)
waits for work:
   5000.00      1.000  poll               main
"
    );
    assert!(formats::waits_table(&summary, 1).ends_with("further waits: 1\n"));
}
