//! Changes that are durable, and not in the tree yet.
//!
//! All that a commit writes is one row of the table `pending`: what its group has changed, compressed. The
//! changes themselves are kept in a *memtable*, where readers find them above the tree. When that is full,
//! another takes its place, and the full one is *flushed*: its records are written into the tree, partition by
//! partition, a little at a time. So a page of the tree is written once for many changes, and a record that
//! changes often, or lives for a moment only, is written once or never. When all of it is in the tree, the rows
//! of its groups are deleted. A store that is opened finds in the rows what its memtable was.
//!
//! What is long, or very much at once, isn't worth writing twice: such values go into the tree with their
//! group, and the memtable only says that they are there.
//!
//! Groups are numbered. Who reads learns from the tree's own snapshot which group is the last that it has, by
//! the last row of `pending`, and sees what the memtables have up to that. Memtables are changed before
//! the group is committed, and the tree never has a change that the memtables had not; only when one of them
//! was exchanged between a look at both, the reader looks anew.

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
