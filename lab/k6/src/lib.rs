//! Scripts in the form of k6 as studies: the options of a script become a study and its workloads, as text. It reads no
//! script and runs none.

mod files;
mod load;
mod script;
mod thresholds;

pub use files::files;
pub use script::{Flags, Limit, Made, Refused, Script};
