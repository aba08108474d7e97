//! Virtual users at run time: validated steps, loads, and the division of users among workers.
//!
//! A [`Workload`] is read from a file by `lab-language`, or received from another process as a [`Message`]. Pure, and
//! small enough for a remote generator: nothing here knows files, places in them, clocks, or sockets.

mod attached;
mod capture;
mod control;
pub mod counters;
mod credentials;
mod expectation;
mod load;
mod measure;
mod message;
mod minimal;
mod mix;
mod model;
mod mqtt;
mod parallel;
pub mod part;
mod raw;
mod ring;
mod scripted;
mod sends;
mod shared;
mod signer;
mod speech;
mod stage;
mod supply;
mod timeline;
pub mod timing;
mod token_request;
mod tokens;
mod user;
mod windows;

pub use lab_template::template;
use lab_template::{data, inputs, level, render_error, scope, slot, wait};

pub use attached::{Attached, MAX_ATTACHED_BYTES};
pub use capture::{Capture, CaptureSource, Pattern, PatternError};
pub use control::{
    Control, Group, MAX_TRANSACTION_LEVELS, Retry, Round, SESSION, Transaction, Until, Visitor,
};
pub use credentials::{Credentials, HeldChallenge};
pub use expectation::{Comparison, Expectation, JsonState};
pub use lab_filters::text_list::JsonValue;
pub use lab_filters::{
    Descriptors, DescriptorsError, Field, MAX_DESCRIPTOR_BYTES, MAX_READ_BYTES, MessageKind, Method,
};
pub use lab_filters::{Encoding, KeyKind, Secrets, looks_secret, password_of, sha256};
pub use lab_filters::{
    HtmlPath, HtmlPathError, JsonPath, JsonSchema, JsonSchemaError, MAX_SCHEMA_BYTES, XmlPath,
    XmlPathError, compare_numbers, is_json_number,
};
pub use lab_filters::{TraceContext, Tracing};
pub use lab_filters::{auth, sign};
pub use lab_template::data::{Bytes, Data, Each, Table, TableError};
pub use lab_template::inputs::{InputName, Inputs, Numbers};
pub use lab_template::key::{Key, KeySource};
pub use lab_template::level::{Level, Parameters};
pub use lab_template::mask::MASK;
pub use lab_template::render_error::RenderError;
pub use lab_template::scope::{DEFAULT_DATES_FROM, PASSWORD, Slot, User, UserScope};
pub use lab_template::template::Template;
pub use lab_template::wait::{Chance, Wait, time_at_speed};
pub use load::{LoadKind, LoadSpec, Population, Spacing, TIMEOUT_MS};
pub use measure::{MAX_MEASURED, MAX_MEASURES, MEASURE_SCALE, Measure};
pub use message::{MAX_VARIABLES, Message, MessageError, SCHEMA};
pub use mix::{MAX_POPULATIONS, deal, seed_of, step_of};
pub use model::{
    Body, Events, OwnCookie, Piece, Probe, Request, Session, Step, Transfer, Workload,
};
pub use mqtt::MqttRequest;
pub use parallel::{ForEach, Parallel, usual_at_once};
pub use raw::{AnswerEnd, LengthField, RawBytes, RawRequest};
pub use scripted::{
    ALL_CHECKS_MEASURE, CHECK_MEASURE, MAX_SCRIPT_MEASURES, MAX_SCRIPT_NAMES, MetricKind,
    OTHER_STEP, SCRIPT_STEP, ScriptLimits, ScriptSource, Scripted,
};
pub use sends::Sends;
pub use shared::{Lease, Put, Queued, SharedKind, SharedState, Take};
pub use signer::Signer;
pub use speech::{Call, GRPC_STATUSES, ProtocolRequest, SignIn, Speech, Way};
pub use stage::{MAX_STAGES, Stage, Visit, are_sound, visits};
pub use supply::{Need, Starved};
pub use timeline::{Recorded, TimeUnit, Timeline, TimelineError};
pub use tokens::{HeldToken, TOKEN_STEP, TOKEN_VARIABLES, TokenState, Tokens};
pub use windows::{USUAL_WINDOWS, window_ms};
