//! The tree of calls.

use std::collections::HashMap;

use crate::columns::Names;
use crate::key::{Key, thread_group};
use crate::model::{Profile, Weight};

/// The tree of a profile's calls.
///
/// Children of the root are the functions that threads start with, or groups of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The keys of the nodes.
    pub keys: Vec<Key>,
    /// The nodes, each after its parent; the first is the root.
    pub nodes: Vec<Node>,
}

/// A function as it was called on one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The position of its key in [`Tree::keys`]; none for the root.
    pub key: Option<usize>,
    /// The position of its caller in [`Tree::nodes`]; none for the root.
    pub parent: Option<usize>,
    /// Positions of its callees: the node with the most CPU time first.
    pub children: Vec<usize>,
    /// Samples in its own code.
    pub own: Weight,
    /// Samples in its own code and in its callees.
    pub total: Weight,
}

impl Tree {
    /// The tree of calls, whichever threads made them.
    pub fn of(profile: &Profile) -> Self {
        Self::grown(profile, &HashMap::new(), Names::default())
    }

    /// The tree of calls by groups of threads, which are the children of the root.
    pub fn by_thread(profile: &Profile) -> Self {
        let mut names = Names::default();
        let mut groups = HashMap::new();
        for (index, name) in profile.threads.iter().enumerate() {
            let key = Key {
                name: thread_group(name).into_owned(),
                file: String::new(),
            };
            groups.insert(index, names.position(key));
        }
        Self::grown(profile, &groups, names)
    }

    fn grown(profile: &Profile, groups: &HashMap<usize, usize>, mut names: Names) -> Self {
        let of = names.of(profile);
        let mut nodes = vec![Node::default()];
        let mut edges: HashMap<(usize, usize), usize> = HashMap::new();
        let mut path = Vec::new();
        for sample in &profile.samples {
            path.clear();
            path.extend(profile.frames(sample).map(|function| of[function]));
            path.extend(groups.get(&sample.thread));
            let mut at = 0;
            nodes[0].total += sample.weight();
            for key in path.iter().rev() {
                let next = *edges.entry((at, *key)).or_insert_with(|| {
                    nodes.push(Node {
                        key: Some(*key),
                        parent: Some(at),
                        ..Node::default()
                    });
                    let index = nodes.len() - 1;
                    nodes[at].children.push(index);
                    index
                });
                nodes[next].total += sample.weight();
                at = next;
            }
            nodes[at].own += sample.weight();
        }
        let mut tree = Self {
            keys: names.keys,
            nodes,
        };
        tree.sort();
        tree
    }

    /// Sorts children by CPU time, the largest first, and equal times by name.
    fn sort(&mut self) {
        for index in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[index].children);
            children.sort_by(|a, b| {
                let time = |node: &usize| self.nodes[*node].total.ns;
                let by_time = time(b).cmp(&time(a));
                by_time.then_with(|| self.key(*a).cmp(&self.key(*b)))
            });
            self.nodes[index].children = children;
        }
    }

    /// The key of a node; none for the root.
    pub fn key(&self, node: usize) -> Option<&Key> {
        self.nodes[node].key.map(|key| &self.keys[key])
    }

    /// Returns the keys from the root to a node, the outermost first.
    pub fn path(&self, node: usize) -> Vec<&Key> {
        let parents = std::iter::successors(Some(node), |node| self.nodes[*node].parent);
        let mut path: Vec<&Key> = parents.filter_map(|node| self.key(node)).collect();
        path.reverse();
        path
    }
}
