//! Exports the figures of a run to monitoring systems, during it or afterwards.
//!
//! ```text
//! RUN ─lab/archive: Follow→ Source ─Frame→ encode: prometheus · otlp · influx · openmetrics → Sender → URL | FILE
//! ```
//!
//! All data is read from the archive, on a thread of the lowest priority: the measuring process sends nothing, and
//! waits for nothing. The archive is also the buffer. A slow or absent receiver falls behind; figures missing at the
//! end are counted, and can be sent again from the archive.
//!
//! Response times are sent as histograms, which add up over trials, steps, and generators; never as quantiles, which
//! don't. Each series has the run, the study, the trial, and its cell as labels.

mod clock;
mod course;
mod destination;
mod encode;
mod error;
mod figure;
mod post;
mod sender;
mod source;

pub use course::Course;
pub use destination::{Destination, DestinationError, Kind};
pub use error::SendError;
pub use figure::{Figure, Frame, METRICS, Metric, Shape, TrialLabels, Value};
pub use post::trusted;
pub use sender::{Sender, Sent};
pub use source::{Finished, Source};
