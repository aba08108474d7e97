//! Flame graphs: functions in calling order, each as a fraction of the whole; also as SVG.

mod svg;

use crate::key::Key;
use crate::model::{Profile, Weight};
use crate::tree::Tree;

/// Call paths with a smaller fraction of the whole are skipped.
const LEAST_SHARE: f64 = 0.001;
/// Frames above each other.
const MOST_DEPTH: usize = 200;
/// The number of colours for families of functions.
const FAMILIES: u8 = 6;
/// Grades of a difference.
const GRADES: u8 = 3;

/// A flame graph: callers above callees.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The subject of the graph.
    pub name: String,
    /// The quantity of its width: `CPU time`.
    pub width: &'static str,
    /// Each after its caller; the first is the whole.
    pub frames: Vec<Frame>,
    /// Call paths that are too small to be drawn.
    pub left_out: usize,
}

/// A function on one call path.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Its name.
    pub name: String,
    /// The base name of its source file; may be empty.
    pub file: String,
    /// The number of its callers; 0 is the whole.
    pub depth: usize,
    /// Its start, as a fraction of the whole.
    pub start: f64,
    /// Its CPU time with its callees, as a fraction of the whole.
    pub share: f64,
    /// The CPU time of its own code, as a fraction of the whole.
    pub own: f64,
    /// Its CPU time with its callees, in µs per transaction.
    pub us: Option<f64>,
    /// The meaning of its colour.
    pub tint: Tint,
}

/// The meaning of a frame's colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// A part of the program, so that neighbours differ.
    Family(u8),
    /// Nothing.
    Plain,
    /// It does not differ itself, but something that it called does.
    Outlined,
    /// It takes more time; the larger the number, the more.
    More(u8),
    /// It takes less time; the larger the number, the less.
    Less(u8),
}

/// The subject of a graph, and the level of detail.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The subject of the graph.
    pub name: String,
    /// The quantity of its width: `CPU time`.
    pub width: &'static str,
    /// The CPU time of the whole, in µs per transaction.
    pub us_per_transaction: Option<f64>,
    /// Most frames: the smallest frames beyond it are skipped.
    pub most: usize,
}

/// How a call path differs, given its functions, the outermost first: above 0 more time, below 0 less, 1 the largest
/// difference; `None` where it doesn't.
pub type Difference<'a> = &'a dyn Fn(&[&Key]) -> Option<f64>;

impl Graph {
    /// Returns the flame graph of a call tree. A difference colours differing frames and outlines their callers.
    pub fn of(tree: &Tree, options: &Options, difference: Option<Difference<'_>>) -> Self {
        let mut drawn = Drawn {
            tree,
            options,
            whole: nanoseconds(tree.nodes[0].total),
            least: least_share(tree, options.most),
            frames: Vec::new(),
        };
        drawn.add(0, 0, 0.0);
        let nodes: Vec<usize> = drawn.frames.iter().map(|(node, _)| *node).collect();
        let mut frames: Vec<Frame> = drawn.frames.into_iter().map(|(_, frame)| frame).collect();
        if let Some(difference) = difference {
            for (node, frame) in nodes.iter().zip(&mut frames) {
                let path = tree.path(*node);
                let by = (!path.is_empty()).then(|| difference(&path)).flatten();
                frame.tint = by.map_or(Tint::Plain, graded);
            }
            outline(&mut frames);
        }
        Self {
            name: options.name.clone(),
            width: options.width,
            left_out: tree.nodes.len() - frames.len(),
            frames,
        }
    }

    /// Frames above each other.
    pub fn depth(&self) -> usize {
        let depths = self.frames.iter().map(|frame| frame.depth + 1);
        depths.max().unwrap_or_default()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of CPU time of a run stay below 2^53 but for centuries of it"
)]
fn nanoseconds(weight: Weight) -> f64 {
    weight.ns as f64
}

/// The smallest fraction of the whole that is drawn. A callee is never larger than its caller, so each frame's caller
/// is drawn, too.
fn least_share(tree: &Tree, most: usize) -> f64 {
    let whole = nanoseconds(tree.nodes[0].total).max(1.0);
    let mut shares: Vec<f64> = tree
        .nodes
        .iter()
        .map(|node| nanoseconds(node.total) / whole)
        .collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    let first_left_out = shares.get(most.max(1)).copied().unwrap_or_default();
    // Frames as small as the first frame beyond the limit are skipped, too.
    LEAST_SHARE.max(first_left_out * (1.0 + 1e-9))
}

struct Drawn<'a> {
    tree: &'a Tree,
    options: &'a Options,
    whole: f64,
    least: f64,
    frames: Vec<(usize, Frame)>,
}

impl Drawn<'_> {
    /// Adds a node and its callees, the largest first.
    fn add(&mut self, node: usize, depth: usize, start: f64) {
        let known = &self.tree.nodes[node];
        let whole = self.whole;
        let part = |weight| match whole > 0.0 {
            true => nanoseconds(weight) / whole,
            false => 0.0,
        };
        let share = part(known.total);
        let key = self.tree.key(node);
        let name = key.map_or("all", |key| &key.name);
        let us = self.options.us_per_transaction;
        let frame = Frame {
            name: name.to_owned(),
            file: key.map_or_else(String::new, |key| key.file.clone()),
            depth,
            start,
            share,
            own: part(known.own),
            us: us.map(|us| us * share),
            tint: family(name, depth),
        };
        self.frames.push((node, frame));
        if depth + 1 == MOST_DEPTH {
            return;
        }
        let mut at = start;
        for child in &known.children {
            let share = part(self.tree.nodes[*child].total);
            if share >= self.least {
                self.add(*child, depth + 1, at);
            }
            at += share;
        }
    }
}

/// Returns the part of the program of a function: its crate, package, or namespace, where it has one.
fn family(name: &str, depth: usize) -> Tint {
    let is_plain = depth < 2 || name == Profile::BROKEN || name == Profile::OTHER;
    if is_plain {
        return Tint::Plain;
    }
    let of = match name.contains("::") || name.contains('.') {
        true => {
            let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.find(|word| !word.is_empty()).unwrap_or(name)
        }
        false => name,
    };
    // FNV-1a: the same colour for the same name in each report.
    let hash = of.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Tint::Family((hash % u64::from(FAMILIES)) as u8)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 1 and the number of grades"
)]
fn graded(difference: f64) -> Tint {
    let grades = f64::from(GRADES);
    let grade = (difference.abs() * grades).ceil().clamp(1.0, grades) as u8;
    match difference < 0.0 {
        true => Tint::Less(grade),
        false => Tint::More(grade),
    }
}

/// Outlines the callers of differing frames, to make these easy to find.
fn outline(frames: &mut [Frame]) {
    let mut above: Vec<usize> = Vec::new();
    for at in 0..frames.len() {
        above.truncate(frames[at].depth);
        if matches!(frames[at].tint, Tint::More(_) | Tint::Less(_)) {
            for caller in &above {
                if frames[*caller].tint == Tint::Plain {
                    frames[*caller].tint = Tint::Outlined;
                }
            }
        }
        above.push(at);
    }
}
