//! Flame graphs: which frames of a tree are drawn, and where.

use lab_profile::flame::{Frame, Graph, Options, Tint};
use lab_profile::{Builder, Key, Profile, Sample, Tree};

/// Builds a tree from stacks, the outermost function first, with their samples.
fn tree(stacks: &[(&str, u64)]) -> Tree {
    let mut builder = Builder::default();
    let thread = builder.thread("http-0");
    for (stack, count) in stacks {
        let stack = stack.rsplit(' ');
        let stack = stack.map(|name| builder.placeholder(name)).collect();
        builder.add(Sample {
            stack,
            thread,
            second: 0,
            count: *count,
            ns: count * 1_000_000,
            wait: None,
        });
    }
    Tree::of(&builder.finish())
}

fn options(most: usize) -> Options {
    Options {
        name: "a".to_owned(),
        width: "CPU time",
        us_per_transaction: Some(500.0),
        most,
    }
}

fn places(graph: &Graph) -> Vec<(&str, usize, f64, f64)> {
    let place = |frame: &Frame| (frame.depth, frame.start, frame.share);
    let frames = graph.frames.iter();
    frames
        .map(|frame| {
            let (depth, start, share) = place(frame);
            (frame.name.as_str(), depth, start, share)
        })
        .collect()
}

#[test]
fn callees_lie_within_their_callers() {
    let tree = tree(&[
        ("main serve work", 50),
        ("main serve", 25),
        ("main walk", 25),
    ]);
    let graph = Graph::of(&tree, &options(100), None);
    assert_eq!(
        places(&graph),
        [
            ("all", 0, 0.0, 1.0),
            ("main", 1, 0.0, 1.0),
            ("serve", 2, 0.0, 0.75),
            ("work", 3, 0.0, 0.5),
            ("walk", 2, 0.75, 0.25),
        ]
    );
    assert_eq!(graph.frames[2].own, 0.25);
    assert_eq!(graph.frames[3].us, Some(250.0));
    assert_eq!((graph.depth(), graph.left_out), (4, 0));
}

#[test]
fn small_paths_are_left_out() {
    let tree = tree(&[("main work", 9_995), ("main rare", 5)]);
    let graph = Graph::of(&tree, &options(100), None);
    assert_eq!((graph.frames.len(), graph.left_out), (3, 1));
    let of_equal = crate::flame::tree(&[("a", 1), ("b", 1), ("c", 1), ("d", 2)]);
    let graph = Graph::of(&of_equal, &options(3), None);
    // Of three equal frames, none is kept.
    assert_eq!(places(&graph)[1..], [("d", 1, 0.0, 0.4)]);
}

#[test]
fn a_difference_is_coloured_and_its_callers_are_outlined() {
    let tree = tree(&[("main serve work", 50), ("main walk", 25), ("other", 25)]);
    let difference = |path: &[&Key]| match path.last()?.name.as_str() {
        "work" => Some(1.0),
        "other" => Some(-0.1),
        _ => None,
    };
    let graph = Graph::of(&tree, &options(100), Some(&difference));
    let tints: Vec<(&str, Tint)> = graph
        .frames
        .iter()
        .map(|frame| (frame.name.as_str(), frame.tint))
        .collect();
    assert_eq!(
        tints,
        [
            ("all", Tint::Outlined),
            ("main", Tint::Outlined),
            ("serve", Tint::Outlined),
            ("work", Tint::More(3)),
            ("walk", Tint::Plain),
            ("other", Tint::Less(1)),
        ]
    );
}

#[test]
fn a_deep_recursion_ends() {
    let stack = vec!["f"; 1_000].join(" ");
    let graph = Graph::of(&tree(&[(&stack, 1)]), &options(10_000), None);
    assert_eq!(graph.depth(), 200);
    let empty = Graph::of(&Tree::of(&Profile::default()), &options(9), None);
    assert!(empty.frames.iter().all(|frame| frame.share == 0.0));
}
