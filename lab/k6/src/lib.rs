//! Scripts in the form of k6 as studies: the options of a script become a study and its workloads, as text, and the
//! figures of its trial get the names of k6. It reads no script and runs none.

mod files;
mod known;
mod load;
mod options;
mod script;
mod server;
mod summary;
mod thresholds;

pub use files::files;
pub use script::{Flags, Refused, Script, StudyFiles};
pub use server::server;
pub use summary::{Trial, figures};
