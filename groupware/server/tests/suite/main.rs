//! The server over its sockets, one protocol or rule per file: one program, so that linking happens once.

#[path = "../browser/mod.rs"]
mod browser;
mod calendar;
mod conflicts;
mod delivery;
mod documents;
mod full_disk;
mod full_share;
mod lookup;
mod mail;
mod mail_since;
mod owner;
mod pages;
mod pages_itip;
mod pages_mail;
mod pages_mail_as_written;
mod pages_users;
mod people;
mod proxies;
mod service;
mod shared_databases;
mod sign_in;
mod smtp;
#[path = "../support/mod.rs"]
mod support;
mod tus;
mod tus_parts;
