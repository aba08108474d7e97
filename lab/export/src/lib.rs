//! The figures of a run for monitoring systems, while it goes on or after it.
//!
//! ```text
//! RUN ─lab/archive: Follow→ Source ─Frame→ encode: prometheus · otlp · influx · openmetrics → Sender → URL | FILE
//! ```
//!
//! All of it comes from the archive, whoever writes it, on a thread that comes after all others: the
//! process that measures tells nothing, and waits for nothing. The archive is the buffer, too. A receiver
//! that is slow or away is behind, and what it has missed at the end is counted, and can be sent again from
//! the archive.
//!
//! Response times go out as histograms that add up over trials, steps, and generators; never as
//! quantiles, which don't. Each series has the run, the study, the trial, and its cell as labels.

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
pub use figure::{Figure, Frame, METRICS, Metric, Shape, Value, Whose};
pub use post::trusted;
pub use sender::{Sender, Sent};
pub use source::{Finished, Source};
