//! Sums by function and thread, and the tree of calls.

use lab_profile::{Builder, Function, Line, Location, Mapping, Profile, Sample, Sums, Tree};

use crate::made::{Stacks, told};

fn profile() -> Profile {
    Stacks::default()
        .with("http-0", 1, "main;serve;work", 6)
        .with("http-1", 1, "main;serve;work", 2)
        .with("http-1", 2, "main;serve", 1)
        .with("store-writer", 2, "main;walk;walk;walk", 3)
        .with("store-writer", 3, "main;walk;work", 1)
        .profile()
}

#[test]
fn a_recursive_function_counts_once_per_stack() {
    let sums = Sums::of(&profile());
    let sums = sums
        .functions
        .iter()
        .map(|sum| (sum.key.name.as_str(), sum.own.count, sum.total.count));
    assert_eq!(
        sums.collect::<Vec<_>>(),
        [
            ("work", 9, 9),
            ("walk", 3, 4),
            ("serve", 1, 9),
            ("main", 0, 13)
        ]
    );
}

#[test]
fn own_time_of_all_functions_is_the_time_of_all_samples() {
    let sums = Sums::of(&profile());
    let own: u64 = sums.functions.iter().map(|sum| sum.own.ns).sum();
    assert_eq!((own, sums.all.count), (13 * 5_000_000, 13));
    assert_eq!(sums.all.ns, own);
}

#[test]
fn threads_are_groups() {
    let sums = Sums::of(&profile());
    let groups = sums
        .threads
        .iter()
        .map(|sum| (sum.group.as_str(), sum.weight.count));
    assert_eq!(
        groups.collect::<Vec<_>>(),
        [("http-*", 9), ("store-writer", 4)]
    );
}

fn shown(tree: &Tree) -> String {
    let mut text = String::new();
    let mut open = vec![(0, 0)];
    while let Some((node, depth)) = open.pop() {
        let name = tree.key(node).map_or("all", |key| &key.name);
        let known = &tree.nodes[node];
        text += &format!(
            "{}{name} {} {}\n",
            "  ".repeat(depth),
            known.total.count,
            known.own.count
        );
        open.extend(known.children.iter().rev().map(|child| (*child, depth + 1)));
    }
    text
}

#[test]
fn a_tree_has_a_node_for_each_path() {
    assert_eq!(
        shown(&Tree::of(&profile())),
        "all 13 0
  main 13 0
    serve 9 1
      work 8 8
    walk 4 0
      walk 3 0
        walk 3 3
      work 1 1
"
    );
    let by_thread = shown(&Tree::by_thread(&profile()));
    assert!(
        by_thread.starts_with("all 13 0\n  http-* 9 0\n    main 9 0\n"),
        "{by_thread}"
    );
    let tree = Tree::of(&profile());
    let walk = tree
        .nodes
        .iter()
        .position(|node| node.own.count == 3)
        .unwrap();
    let path: Vec<&str> = tree
        .path(walk)
        .into_iter()
        .map(|key| key.name.as_str())
        .collect();
    assert_eq!(path, ["main", "walk", "walk", "walk"]);
}

#[test]
fn a_time_has_the_samples_of_its_seconds() {
    let part = profile().within(2..3);
    assert_eq!(part.weight().count, 4);
    assert_eq!(told(&part).len(), 2);
    assert_eq!(part.threads, ["http-1", "store-writer"]);
}

#[test]
fn merged_trials_are_one_profile_without_seconds() {
    let merged = Profile::merged([&profile(), &profile()]);
    assert_eq!(merged.weight().count, 26);
    assert!(merged.samples.iter().all(|sample| sample.second == 0));
    assert_eq!(merged.functions.len(), profile().functions.len());
}

#[test]
fn time_of_the_kernel_is_summed_up_by_system_call() {
    let mut builder = Builder::default();
    let mut locate = |file: &str, name: &str| {
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
            address: function as u64,
            lines: vec![Line { function, line: 0 }],
        })
    };
    let kernel = ["schedule", "do_futex", "__x64_sys_futex", "do_syscall_64"];
    let [schedule, futex, call, entry] = kernel.map(|name| locate("[kernel]", name));
    let [wait, main] = ["wait", "main"].map(|name| locate("/srv/server", name));
    let thread = builder.thread("http-0");
    for (stack, count) in [
        (vec![schedule, futex, call, entry, wait, main], 5),
        (vec![futex, call, entry, wait, main], 2),
        (vec![entry, wait, main], 1),
        (vec![wait, main], 4),
    ] {
        builder.add(Sample {
            stack,
            thread,
            second: 1,
            count,
            ns: count,
            wait: None,
        });
    }
    let sums = Sums::of(&builder.finish());
    let sums = sums.functions.iter();
    let sums = sums.map(|sum| (sum.key.name.as_str(), sum.own.count, sum.total.count));
    assert_eq!(
        sums.collect::<Vec<_>>(),
        [
            ("[kernel] futex", 7, 7),
            ("wait", 4, 12),
            ("[kernel]", 1, 1),
            ("main", 0, 12),
        ]
    );
}
