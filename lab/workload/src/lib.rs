//! What a virtual user is at run time: validated steps, templates, variables, seeded draws.
//!
//! A [`Workload`] comes from a file by way of `lab-language`, or from another process as a [`Message`].
//! Pure, and small enough for a generator on another machine: nothing here knows files, places in
//! them, clocks, or sockets.

mod attached;
mod capture;
mod clock;
mod control;
mod data;
mod expectation;
mod given;
mod key;
mod least;
mod level;
mod load;
mod mask;
mod measure;
mod message;
mod mix;
mod model;
mod parallel;
mod render_error;
mod ring;
mod scope;
mod sends;
mod shared;
mod signer;
mod slot;
mod speech;
mod stage;
mod supply;
pub mod template;
mod timeline;
pub mod timing;
mod user;
mod wait;
mod windows;

pub use attached::{Attached, MAX_ATTACHED_BYTES};
pub use capture::{Capture, CaptureSource, Pattern, PatternError};
pub use control::{
    Control, Group, MAX_TRANSACTION_LEVELS, Retry, Round, SESSION, Transaction, Until, Visitor,
};
pub use data::{Bytes, Data, Each, Table, TableError};
pub use expectation::{Comparison, Expectation, JsonState};
pub use given::{Asked, Given, Numbers};
pub use key::{Key, KeySource};
pub use lab_filters::sign;
pub use lab_filters::text_list::JsonValue;
pub use lab_filters::{
    Descriptors, DescriptorsError, Field, MAX_DESCRIPTOR_BYTES, MAX_READ_BYTES, MessageKind, Method,
};
pub use lab_filters::{
    Encoding, KeyKind, Secrets, SizeError, looks_secret, password_of, sha256, size,
};
pub use lab_filters::{
    HtmlPath, HtmlPathError, JsonPath, JsonSchema, JsonSchemaError, JsonStep, MAX_SCHEMA_BYTES,
    XmlPath, XmlPathError, compare_numbers, is_json_number, is_same_number, json_text,
};
pub use lab_filters::{TraceContext, Tracing};
pub use level::{Level, Parameters};
pub use load::{LoadKind, LoadSpec, Population, Spacing, TIMEOUT_MS};
pub use mask::MASK;
pub use measure::{MAX_MEASURED, MAX_MEASURES, MEASURE_SCALE, Measure};
pub use message::{MAX_VARIABLES, Message, MessageError, SCHEMA};
pub use mix::{MAX_POPULATIONS, deal, seed_of, step_of};
pub use model::{
    Body, Events, OwnCookie, Piece, Probe, Request, Session, Step, Transfer, Workload,
};
pub use parallel::{AT_ONCE, AT_ONCE_OVER_STREAMS, ForEach, Parallel};
pub use render_error::RenderError;
pub use scope::{DEFAULT_DATES_FROM, PASSWORD, Slot, User, UserScope};
pub use sends::Sends;
pub use shared::{Lease, Put, Queued, SharedKind, SharedState, Take};
pub use signer::Signer;
pub use speech::{Call, GRPC_STATUSES, Said, SignIn, Speech, Way};
pub use stage::{MAX_STAGES, Stage, Visit, are_sound, visits};
pub use supply::{Need, Starved};
pub use template::Template;
pub use timeline::{Recorded, TimeUnit, Timeline, TimelineError};
pub use wait::{Chance, Wait, time_at_speed};
pub use windows::{USUAL_WINDOWS, window_ms};
