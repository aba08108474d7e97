//! What clients receive, as snapshots: pages, errors of every family of routes, SMTP dialogues, the
//! list of routes, the names of metrics. The tests use sockets only and know no internals of the
//! server, so that refactoring doesn't change them.

#[path = "../browser/mod.rs"]
mod browser;
mod errors_admin;
mod errors_calendar;
mod errors_documents;
mod errors_lookup;
mod errors_mail;
mod errors_pages;
mod errors_tus;
mod matrix;
mod pages_calendar;
mod pages_imported;
mod pages_mail;
mod routes;
mod site;
mod smtp;
#[path = "../support/mod.rs"]
mod support;
mod transcript;
