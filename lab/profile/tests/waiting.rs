//! Results of profiles of waits: sums by function, differences between variants, and scheduling latencies.

use lab_profile::Profile;
use lab_profile::bars::{Bars, Spent};
use lab_profile::waits::differences::{Columns, Rules, Sides, compare};
use lab_profile::waits::scheduling::{self, Latencies};
use lab_profile::waits::{
    ANY_CODE, Class, Code, GroupTime, Patterns, Per, Summary, ThreadGroup, Trial,
    settle_idle_groups,
};

use crate::made::Stacks;

/// 200 ms of a lock in two functions, 50 ms without a core, a disk, and 1 s of polling.
fn waits() -> Profile {
    let lock = "main;serve;under_the_lock;pthread_mutex_lock;~futex_wait";
    let other = "main;serve;other;pthread_mutex_lock;~futex_wait";
    let by = Some("http-* in handle");
    Stacks::of_waits()
        .waiting(("http-0", 1), lock, (20, Class::Lock, by))
        .waiting(("http-1", 1), lock, (10, Class::Lock, None))
        .waiting(("http-1", 2), other, (10, Class::Lock, Some("io in work")))
        .waiting(("http-1", 2), "main;serve;work", (10, Class::NoCore, None))
        .waiting(
            ("writer", 2),
            "main;commit;fdatasync;~do_fsync",
            (2, Class::Disk, None),
        )
        .waiting(
            ("http-0", 1),
            "main;serve;epoll_wait;~ep_poll",
            (200, Class::Poll, None),
        )
        .profile()
}

#[test]
fn waits_are_summed_up_by_class_and_function() {
    let profile = waits();
    let trial = Trial {
        profile: Some(&profile),
        groups: &[],
        recorded_seconds: 2.0,
        seconds: 2.0,
        transactions_per_s: Some(50.0),
    };
    let summary = Summary::of(&[trial, trial], Patterns::built_in()).unwrap();
    assert_eq!((summary.per, summary.waits_found), (Per::Transaction, 5));
    let rows = summary.waits.iter().map(|one| {
        (
            one.function.as_str(),
            one.class,
            one.us,
            one.count,
            one.is_for_work,
        )
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("under_the_lock", Class::Lock, 1500.0, 0.3, false),
            (ANY_CODE, Class::NoCore, 500.0, 0.1, false),
            ("other", Class::Lock, 500.0, 0.1, false),
            ("commit", Class::Disk, 100.0, 0.02, false),
            ("serve", Class::Poll, 10_000.0, 2.0, true),
        ]
    );
    let first = &summary.waits[0];
    assert_eq!(first.groups, ["http-*"]);
    assert_eq!(
        (first.wakers[0].name.as_str(), first.wakers[0].part),
        ("http-* in handle", 1.0)
    );
    // The flame graph has no waits for work.
    let tree = summary.tree.unwrap();
    assert_eq!(tree.nodes[0].total.count, 2 * 52);
    assert!(Summary::of(&[], Patterns::built_in()).is_none());
}

#[test]
fn groups_of_threads_have_the_rest_of_their_time() {
    let group = |blocked: Option<&[(Class, u64)]>| ThreadGroup {
        name: "http-*".to_owned(),
        threads: 2,
        wall_ns: 8_000_000_000,
        on_cpu_ns: 1_000_000_000,
        no_core_ns: 500_000_000,
        blocked_ns: blocked.map(|all| all.iter().copied().collect()),
    };
    let known = [group(Some(&[(Class::Poll, 6_000_000_000)]))];
    let unknown = [group(None)];
    let of = |groups: &[ThreadGroup], rate| {
        let trial = Trial {
            profile: None,
            groups,
            recorded_seconds: 4.0,
            seconds: 4.0,
            transactions_per_s: rate,
        };
        Summary::of(&[trial], Patterns::built_in()).unwrap()
    };
    let summary = of(&known, Some(250.0));
    let one = &summary.groups[0];
    assert_eq!(
        (one.threads, one.on_cpu_us, one.no_core_us),
        (2.0, 1000.0, 500.0)
    );
    assert_eq!(one.blocked_us.as_ref().unwrap()[&Class::Poll], 6000.0);
    assert_eq!(one.unknown_us, 500.0);
    let summary = of(&unknown, None);
    assert_eq!(summary.per, Per::Second);
    let one = &summary.groups[0];
    assert_eq!((one.on_cpu_us, one.unknown_us), (250_000.0, 1_625_000.0));
    assert_eq!(one.blocked_us, None);
}

/// Waits of 40 functions; `slow` of them is some times as long as otherwise. `trial` makes the noise.
fn many(trial: u64, slow: u64) -> Profile {
    let mut stacks = Stacks::of_waits();
    for n in 0..40 {
        let key = (trial * 1_009 + n * 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let times = if n == 17 { slow } else { 1 };
        let stack = format!("main;work_{n};pthread_mutex_lock;~futex_wait");
        stacks = stacks.waiting(
            ("http-0", 1),
            &stack,
            (times * (90 + key % 20), Class::Lock, None),
        );
        stacks = stacks.waiting(
            ("http-0", 1),
            "main;~ep_poll",
            (1_000 + 500 * (trial % 2), Class::Poll, None),
        );
    }
    stacks.profile()
}

#[test]
fn the_wait_that_differs_is_named_and_no_other() {
    let columns = |trial: u64, slow| {
        let profile = many(trial, slow);
        let trial = Trial {
            profile: Some(&profile),
            groups: &[],
            recorded_seconds: 1.0,
            seconds: 1.0,
            transactions_per_s: Some(1000.0),
        };
        Columns::of(&trial, Per::Transaction, Patterns::built_in()).unwrap()
    };
    let rules = Rules {
        seed: 7,
        least: 0.005,
        least_blocks: 6,
        per: Per::Transaction,
    };
    let compared = |blocks: u64, slow: u64| {
        let pairs: Vec<(Columns, Columns)> = (0..blocks)
            .map(|block| (columns(2 * block, 1), columns(2 * block + 1, slow)))
            .collect();
        let sides = Sides {
            a: "before",
            b: "after",
            blocks: pairs
                .iter()
                .map(|(a, b)| Some((a, b)))
                .chain([None])
                .collect(),
        };
        compare(&[sides], rules).remove(0)
    };
    let found = compared(8, 3);
    let [one] = &found.findings[..] else {
        panic!("{found:#?}");
    };
    assert_eq!((one.function.as_str(), one.class), ("work_17", Class::Lock));
    let (low, high) = one.us_interval.unwrap();
    // 100 intervals of 5 ms per 1,000 transactions, twice more.
    assert!(low < 1000.0 && 1000.0 < high && low > 500.0, "{one:?}");
    assert_eq!((found.tested, found.blocks, found.reason), (40, 8, None));
    assert!(compared(8, 1).findings.is_empty());
    let few = compared(5, 3);
    assert!(few.findings.is_empty() && few.reason.unwrap().starts_with("only 5 blocks have"));
}

#[test]
fn latencies_are_compared_by_block_where_there_are_enough() {
    let latencies = |factor: u64, waits: u64| {
        let mut histogram = scheduling::empty();
        for n in 1..=waits {
            histogram.record(factor * n).unwrap();
        }
        Latencies::from([("http-*".to_owned(), histogram)])
    };
    let summary = |trials: &[&Latencies]| scheduling::summary(trials);
    let (one, few) = (latencies(1, 200), latencies(1, 20));
    let of_one = &summary(&[&one])[0];
    assert_eq!((of_one.count, of_one.p99_us), (200, None));
    let both = &summary(&[&one, &one, &few])[0];
    assert_eq!(both.count, 420);
    assert!((both.p50_us.unwrap() - 95.0).abs() < 2.0, "{both:?}");
    assert!(both.p99_us.is_some() && (both.max_us.unwrap() - 200.0).abs() < 1.0);
    assert_eq!(summary(&[&few])[0].p90_us, None);
    let trials: Vec<_> = (0..8)
        .map(|n| (latencies(100 + n, 400), latencies(200 + n, 400)))
        .collect();
    let sides = |blocks: usize| scheduling::Sides {
        a: "before",
        b: "after",
        blocks: trials[..blocks].iter().map(|(a, b)| Some((a, b))).collect(),
    };
    let found = scheduling::compare(&[sides(8)], 7, 0.02, 6);
    assert_eq!(found.len(), 2);
    for one in &found {
        assert!(one.differs && (1.9..2.0).contains(&one.ratio), "{one:?}");
    }
    let found = scheduling::compare(&[sides(5)], 7, 0.02, 6);
    assert!(found.iter().all(|one| !one.differs && one.p.is_none()));
}

/// Uniform numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

/// One trial: 40 codes with 10 to 200 exponential waits each. All waits of a trial vary together, too.
fn simulated(numbers: &mut Numbers, longer: f64) -> Columns {
    let of_trial = 0.95 + 0.1 * numbers.uniform();
    Columns::of_sums((0..40).map(|n| {
        let code = Code {
            class: Class::Lock,
            function: format!("work_{n}"),
        };
        let mean = of_trial * if n == 17 { longer } else { 1.0 };
        let (mut us, mut squares, mut count) = (0.0, 0.0, 0.0);
        let (expected, mut at) = (10.0 + 5.0 * f64::from(n), numbers.exponential());
        while at < expected {
            let wait = mean * numbers.exponential();
            us += wait;
            squares += wait * wait;
            count += 1.0;
            at += numbers.exponential();
        }
        (code, (us, squares, count))
    }))
}

#[test]
fn equal_variants_seldom_differ_and_a_longer_wait_is_found() {
    let rules = Rules {
        seed: 7,
        least: 0.005,
        least_blocks: 6,
        per: Per::Transaction,
    };
    let mut numbers = Numbers(1);
    let mut study = |longer: f64| {
        let pairs: Vec<(Columns, Columns)> = (0..8)
            .map(|_| {
                (
                    simulated(&mut numbers, 1.0),
                    simulated(&mut numbers, longer),
                )
            })
            .collect();
        let sides = Sides {
            a: "a",
            b: "b",
            blocks: pairs.iter().map(|(a, b)| Some((a, b))).collect(),
        };
        compare(&[sides], rules).remove(0).findings
    };
    let studies = 400;
    let named = (0..studies).filter(|_| !study(1.0).is_empty()).count();
    // 5 % of 400, and three standard errors more.
    assert!(named <= 33, "{named} of {studies}");
    let found = (0..100).filter(|_| study(1.5).iter().any(|one| one.function == "work_17"));
    let found = found.count();
    eprintln!("equal: {named} of {studies} name a wait; half longer: found in {found} of 100");
    assert!(found >= 80, "{found} of 100");
}

#[test]
fn bars_leave_waits_for_work_out_and_escape_names() {
    let group = |group: &str, on_cpu_us, blocked: &[(Class, f64)]| GroupTime {
        group: group.to_owned(),
        threads: 1.0,
        on_cpu_us,
        no_core_us: 0.0,
        blocked_us: Some(blocked.iter().copied().collect()),
        unknown_us: 0.0,
    };
    let groups = [
        group("<a>", 60.0, &[(Class::Lock, 40.0), (Class::Idle, 9_000.0)]),
        group("b", 50.0, &[]),
        group("idle", 0.0, &[(Class::Poll, 9_000.0)]),
        group("tiny", 0.1, &[]),
    ];
    let bars = Bars::of(&groups, ("what".to_owned(), "µs".to_owned()), 9);
    let names: Vec<&str> = bars.bars.iter().map(|bar| bar.name.as_str()).collect();
    assert_eq!(names, ["<a>", "b"]);
    assert_eq!(bars.key(), [Spent::OnCpu, Spent::Waiting(Class::Lock)]);
    let svg = bars.svg(&|us| format!("{us:.0}"));
    assert!(
        svg.contains("&lt;a&gt;</text>") && !svg.contains("<a>"),
        "{svg}"
    );
    assert!(
        svg.contains("class=\"w-lock\" x=\"60%\" y=\"18\" width=\"40%\""),
        "{svg}"
    );
    assert!(svg.contains("<title>b: on a CPU, 50 µs</title>"), "{svg}");
}

#[test]
fn a_thread_without_a_stack_waits_in_the_kernel() {
    let profile = Stacks::of_waits()
        .waiting(("a", 1), "~inet_csk_accept", (4, Class::Disk, None))
        .waiting(
            ("a", 1),
            "~__x64_sys_futex;~futex_wait",
            (2, Class::Lock, None),
        )
        .profile();
    let trial = Trial {
        profile: Some(&profile),
        recorded_seconds: 1.0,
        groups: &[],
        seconds: 1.0,
        transactions_per_s: None,
    };
    let summary = Summary::of(&[trial], Patterns::built_in()).unwrap();
    let names: Vec<&str> = summary
        .waits
        .iter()
        .map(|one| one.function.as_str())
        .collect();
    assert_eq!(names, ["[kernel] inet_csk_accept", "[kernel] futex"]);
}

#[test]
fn futex_waits_of_threads_that_never_ran_are_for_work() {
    let futex = "~futex_wait";
    let mut profile = Stacks::of_waits()
        .waiting(("sweep", 1), futex, (5, Class::LockOrCondition, None))
        .waiting(("http-0", 1), futex, (3, Class::LockOrCondition, None))
        .waiting(("sweep", 1), "main;~do_fsync", (1, Class::Disk, None))
        .profile();
    let group = |name: &str, on_cpu_ns| ThreadGroup {
        name: name.to_owned(),
        threads: 1,
        wall_ns: 1_000,
        on_cpu_ns,
        no_core_ns: 0,
        blocked_ns: Some([(Class::LockOrCondition, 600), (Class::Idle, 100)].into()),
    };
    let mut groups = [group("sweep", 0), group("http-*", 7)];
    settle_idle_groups(Some(&mut profile), &mut groups);
    let classes = |class| {
        let of_class = profile.samples.iter();
        let of_class = of_class.filter(|one| one.wait.is_some_and(|wait| wait.class == class));
        of_class.map(|one| one.count).sum::<u64>()
    };
    let found = [Class::Idle, Class::LockOrCondition, Class::Disk].map(classes);
    assert_eq!(found, [5, 3, 1]);
    let [idle, busy] = groups.map(|group| group.blocked_ns.unwrap());
    assert_eq!(idle, [(Class::Idle, 700)].into());
    assert_eq!(busy[&Class::LockOrCondition], 600);
}
