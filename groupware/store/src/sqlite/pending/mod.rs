//! Changes that are durable but not in the tree yet.
//!
//! A commit writes only one row of the table `pending`: the changes of its group, compressed. The changes themselves
//! are kept in a *memtable*, where readers find them above the tree. A full memtable is replaced and *flushed*: its
//! records are written into the tree, partition by partition, in small steps. So a page of the tree is written once for
//! many changes, and a record that changes often, or exists only briefly, is written once or never. When the memtable
//! is in the tree, the rows of its groups are deleted. Opening a store rebuilds its memtable from the rows.
//!
//! Long values and very large groups aren't worth writing twice: such values are written into the tree with their
//! group, and the memtable only refers to them.
//!
//! Groups are numbered. The last row of `pending` in the tree's snapshot gives a reader its last group, and the reader
//! sees the changes of the memtables up to that group. Memtables are changed before the group is committed, and the
//! tree never has a change that the memtables had not. If a memtable was replaced between the reads of both, the reader
//! reads again.

mod above;
mod flush;
mod row;
mod table;
mod tables;
mod waiting;

pub(super) use above::{Above, Changed};
pub(super) use flush::Pace;
pub(super) use table::{Change, GroupNumber, Now};
pub(super) use tables::{LAST_GROUP, Shared, Tables};
pub(super) use waiting::{LONG_BYTES, MANY_BYTES, Pending, SCHEMA};
