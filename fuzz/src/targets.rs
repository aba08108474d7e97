//! All targets, and what each may take where that is more than usual.

mod archive;
mod calendar_icalendar;
mod calendar_json;
mod changes;
mod content_coding;
mod database_address;
mod documents;
mod exporter;
mod fleet_messages;
mod generator_messages;
mod http_events;
mod http_html;
mod http_response;
mod http_xml;
mod import;
mod lookup_json;
mod lookup_xml;
mod mail_files;
mod mail_html;
mod mail_json;
mod mail_message;
mod proxy_header;
mod rows;
mod sign_in;
mod smtp;
mod study_file;
mod template;

use crate::Target;

pub(crate) const ALL: &[Target] = &[
    Target::new("archive", archive::run).base(256 << 10),
    Target::new("calendar_icalendar", calendar_icalendar::run),
    Target::new("calendar_json", calendar_json::run),
    Target::new("changes", changes::run),
    // What decompressors keep, and what they may make of anything.
    Target::new("content_coding", content_coding::run).base(12 << 20),
    Target::new("database_address", database_address::run),
    Target::new("documents", documents::run),
    Target::new("exporter", exporter::run),
    Target::new("fleet_messages", fleet_messages::run),
    Target::new("generator_messages", generator_messages::run),
    Target::new("http_events", http_events::run),
    Target::new("http_html", http_html::run).times(512),
    Target::new("http_response", http_response::run),
    Target::new("http_xml", http_xml::run).times(256),
    Target::new("import", import::run),
    Target::new("lookup_json", lookup_json::run),
    Target::new("lookup_xml", lookup_xml::run),
    Target::new("mail_files", mail_files::run),
    Target::new("mail_html", mail_html::run).base(128 << 10),
    Target::new("mail_json", mail_json::run),
    Target::new("mail_message", mail_message::run).times(128),
    Target::new("proxy_header", proxy_header::run),
    Target::new("rows", rows::run),
    Target::new("sign_in", sign_in::run),
    Target::new("smtp", smtp::run),
    Target::new("study_file", study_file::run)
        .base(128 << 10)
        .times(512),
    Target::new("template", template::run).times(64),
];
