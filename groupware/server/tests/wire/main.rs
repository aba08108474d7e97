//! What clients read on the wire, kept as snapshots: pages, failures of every family of routes, SMTP
//! dialogues, the list of routes, the names of metrics. It knows no inner part of the server: all of
//! it goes through sockets, so that parts can move without a test that moves along.

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
