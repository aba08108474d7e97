//! Accounts, messages, delivery between local users: pure decisions over a snapshot of the store.
//!
//! The interface is Domino's mail service. A decision reads a [`Snapshot`] and returns a [`Batch`]
//! to commit, whose asserts rule out lost updates. On a conflict the caller decides again on a new
//! snapshot. No clock, no randomness, no I/O of its own: time and new identifiers are inputs in
//! [`Context`].
//!
//! A message is stored byte for byte. Beside it lies an [`Entry`], the only record that a list reads, under a
//! key that sorts from the newest message on. The same batch updates the folder's counters by additions,
//! which commute: deliveries to one account never conflict. Each message has numbers, by which a client with
//! an older state gets the changes since then ([`changes_since`]). A large message to several local users is
//! stored once, and removed with its last holder. What clients see of a message is derived from its bytes
//! ([`View`]); only the bytes, the flags, and the keywords can't be rebuilt.
//!
//! [`Snapshot`]: groupware_store::Snapshot
//! [`Batch`]: groupware_store::Batch

mod change;
mod check;
mod context;
mod deliver;
pub mod drafts;
mod entry;
mod error;
mod folder;
pub mod folders;
mod import;
mod json;
pub mod keys;
mod keywords;
pub mod limits;
mod list;
mod mailbox;
pub mod numbering;
mod numbers;
mod outgoing;
mod own_folders;
mod query;
mod reading;
pub mod restored;
mod since;
mod undelivered;
mod unid;
mod view;

pub use change::{Marking, add_and_remove, and_mark, delete, empty, mark, mark_as, move_to};
pub use check::Found;
pub use context::{Context, Decision};
pub use deliver::{RoutedMessage, check_author, check_stranger, completed, receive, resolve, send};
pub use entry::{Entry, Marks, Summary};
pub use error::{MailError, Reason};
pub use folder::Folder;
pub use groupware_ids::Ids;
pub use groupware_proto_mime::{
    Findings, MimeError, Origin, Part, Person, check, count_fields, has_field, is_address, parts,
    picture_kind,
};
pub use import::{Imported, folder_called, import, import_once};
pub use json::{message_json, parse_outgoing};
pub use keywords::{keywords, keywords_of, parse_keywords};
pub use list::{FolderLine, JsonPage, Listed, Page, Span, all_folders, is_long, list, list_json};
pub use mailbox::{
    Counts, Stored, added_bytes, bytes, counts, find, page, release_shared, remove_shared, require,
    stored_bytes, used_bytes,
};
pub use numbers::{Numbers, State};
pub use outgoing::{Attached, Outgoing};
pub use query::{ListQuery, Sort};
pub use reading::Reading;
pub use since::{Since, Vanished, changes_since, changes_since_json, is_long_since};
pub use unid::Unid;
pub use view::View;
