//! The raw form of a workload file: its shape.
//!
//! Only the shape is checked here: keys, lists, mappings. `read` interprets the texts. The types print back to YAML,
//! and the output parses to the same value.

mod answer;
mod content;
mod keys;
mod measure;
mod mqtt;
mod parallel;
mod protocol;
mod raw;
mod request;
mod retry;
mod rows;
mod shapes;
mod shared;
mod sign;
mod workload;

pub(crate) use answer::ExpectFile;
pub(crate) use content::{ContentFile, FieldFile, PartFile};
pub(crate) use keys::KeyFile;
pub(crate) use measure::MeasureFile;
#[cfg(test)]
use measure::NumberFile;
#[cfg(test)]
use mqtt::SubscriptionFile;
pub(crate) use mqtt::{MqttFile, PublishFile, SubscribeFile};
pub(crate) use parallel::{EachFile, ParallelFile};
#[cfg(test)]
use protocol::CallFile;
pub(crate) use protocol::{MailFile, ProtocolFile, SpeakingFile, StatementFile};
pub(crate) use raw::{BytesFile, EndFile, NumberedEndFile, RawFile, SendFile};
pub use request::BasicFile;
pub(crate) use request::{EventsFile, RequestFile, RequestItem};
pub(crate) use retry::RetryFile;
pub(crate) use rows::{DataFile, RowsFile};
pub use shapes::{Count, HoldTime, Limit, Rate, Size, Time, WaitTime};
pub(crate) use shared::{PoolFile, SharedFile};
pub(crate) use sign::SignFile;
pub use workload::WorkloadFile;
pub(crate) use workload::{ProbeFile, SessionFile, StepFile, TransferFile};

/// Returns the JSON Schema of workload files.
#[must_use]
pub fn schema_workload() -> serde_json::Value {
    schemars::schema_for!(WorkloadFile).to_value()
}

#[cfg(test)]
mod tests;
