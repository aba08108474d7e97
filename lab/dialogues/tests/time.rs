//! Time without an engine.

use lab_client::time::nanos;
use lab_client::{Nanos, Time, Timer};

#[path = "../../client/src/time/tokios.rs"]
pub(crate) mod tokios;
