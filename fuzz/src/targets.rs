//! All targets, and their limits where these are larger than usual.

mod archive;
mod asked;
mod asked_file;
mod calendar_icalendar;
mod calendar_json;
mod calendar_objects;
mod challenge;
mod changes;
mod content_coding;
mod database_address;
mod documents;
mod exporter;
mod fleet_messages;
mod generator_messages;
mod grpc_answer;
mod http_events;
mod http_html;
mod http_json;
mod http_response;
mod http_xml;
mod imap_answer;
mod import;
mod key_file;
mod lookup_json;
mod lookup_xml;
mod machine_messages;
mod mail_files;
mod mail_html;
mod mail_json;
mod mail_message;
mod mqtt_packets;
mod object_store;
mod postgres_answer;
mod profile;
mod proto_file;
mod proxy_header;
mod raw_answer;
mod redis_reply;
mod rows;
mod sampled_files;
mod script;
mod script_answer;
mod server_log;
mod sign_in;
mod smtp;
mod smtp_reply;
mod study_file;
mod template;
mod websocket_messages;

use crate::Target;

/// The allocation of captures from an answer, whatever its length: texts of nested elements are kept for each, up to 8
/// MiB together, in strings that grow by doubling, and once more when they are returned.
const CAPTURED_BYTES: usize = 3 * (8 << 20);

pub(crate) const ALL: &[Target] = &[
    Target::new("archive", archive::run).base(256 << 10),
    // A number of two bytes in lists has their places as its name, once in a list and once in a map, which double; and
    // again in the file.
    Target::new("asked", asked::run).base(2 << 20).times(1_024),
    // A counter of a few bytes is one of 80, in lists that double.
    Target::new("asked_file", asked_file::run)
        .base(256 << 10)
        .times(256),
    Target::new("calendar_icalendar", calendar_icalendar::run),
    Target::new("calendar_json", calendar_json::run),
    // The instances of a rule, 20,000 at most, in a list and by what they stand for.
    Target::new("calendar_objects", calendar_objects::run).base(8 << 20),
    // A parameter of four bytes becomes two strings in a list that doubles, and each challenge is parsed twice.
    Target::new("challenge", challenge::run).times(256),
    Target::new("changes", changes::run),
    // The largest window of brotli, 16 MiB, which a stream of a few bytes may request; and the output of decompressors
    // for any input.
    Target::new("content_coding", content_coding::run).base(18 << 20),
    Target::new("database_address", database_address::run),
    Target::new("documents", documents::run),
    Target::new("exporter", exporter::run),
    Target::new("fleet_messages", fleet_messages::run),
    Target::new("generator_messages", generator_messages::run),
    // A number of a packed list, of one byte, is a value of 32, in lists that double.
    Target::new("grpc_answer", grpc_answer::run)
        .base(1 << 20)
        .times(256),
    Target::new("http_events", http_events::run),
    // An open element, of three bytes, has a value, an entry in two lists, and the work at its end.
    Target::new("http_html", http_html::run)
        .base(CAPTURED_BYTES)
        .times(160),
    Target::new("sampled_files", sampled_files::run),
    // A list in a list, of two bytes, is a value of 32, in lists that double; and once more in the tree for the
    // comparison.
    Target::new("http_json", http_json::run).times(512),
    Target::new("http_response", http_response::run),
    Target::new("http_xml", http_xml::run).base(CAPTURED_BYTES),
    // A number of a list, of two bytes, is a value of 32, in lists that double.
    Target::new("imap_answer", imap_answer::run).times(256),
    // The generated workload is loaded, which costs as much per byte as `study_file`.
    Target::new("import", import::run)
        .base(512 << 10)
        .times(512),
    Target::new("key_file", key_file::run),
    Target::new("lookup_json", lookup_json::run),
    Target::new("lookup_xml", lookup_xml::run),
    Target::new("machine_messages", machine_messages::run),
    Target::new("mail_files", mail_files::run),
    // An attribute, of two bytes, has a name and a value of 48, in lists that double.
    Target::new("mail_html", mail_html::run)
        .base(128 << 10)
        .times(128),
    Target::new("mail_json", mail_json::run),
    Target::new("mail_message", mail_message::run).times(128),
    // A message of five bytes is a text and a list, in lists that double.
    Target::new("mqtt_packets", mqtt_packets::run).times(64),
    Target::new("object_store", object_store::run),
    // A row of 11 bytes has the name of its column once more, in a string that doubles.
    Target::new("postgres_answer", postgres_answer::run).times(128),
    // A location of one byte takes eight bytes in each of two lists and a node in a tree. The base is for compressing
    // the written file.
    Target::new("profile", profile::run)
        .base(8 << 20)
        .times(256),
    // A field of a few bytes has a name with those of all enclosing messages, in several tables.
    Target::new("proto_file", proto_file::run)
        .base(2 << 20)
        .times(1_024),
    Target::new("proxy_header", proxy_header::run),
    Target::new("raw_answer", raw_answer::run),
    Target::new("redis_reply", redis_reply::run),
    // A head states the length of a frame, and that much is reserved, up to the longest message.
    Target::new("websocket_messages", websocket_messages::run).base(64 << 20),
    Target::new("rows", rows::run),
    // Trees are read by another thread, whose memory isn't counted.
    Target::new("script", script::run)
        .base(256 << 10)
        .times(256),
    // A tag of three bytes is a node with its names; the base is for the engine, which is made once.
    Target::new("script_answer", script_answer::run)
        .base(64 << 20)
        .times(1_024),
    // A list in a list, of two bytes, is a value of 32, in lists that double; a row, of a line of twenty, has 200.
    Target::new("server_log", server_log::run)
        .base(2 << 20)
        .times(512),
    Target::new("sign_in", sign_in::run),
    Target::new("smtp", smtp::run),
    Target::new("smtp_reply", smtp_reply::run),
    // A valid study of a few bytes loads a whole bundled workload.
    Target::new("study_file", study_file::run)
        .base(384 << 10)
        .times(512),
    Target::new("template", template::run).times(64),
];
