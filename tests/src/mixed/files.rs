//! Documents, changed and deleted, and attachments uploaded in chunks (tus).

use std::collections::BTreeMap;
use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand_core::Rng;
use serde_json::{Value, json};

use super::world::{Things, Upload, World, Writer, expect, name};
use crate::server::{Client, RawAnswer};

const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");
const MOST_BYTES: u32 = 200_000;
const CHUNK_BYTES: u32 = 70_000;

fn documents(user: usize, database: &str) -> String {
    format!("/docs/{}/{database}/api/data/documents", name(user))
}

/// The user (by number) and the database of documents, and those of uploads: the writers' own.
const DOCUMENTS: (usize, &str) = (0, "notes");
const UPLOADS: (usize, &str) = (1, "files");

pub(super) fn write_documents(writer: &mut Writer<'_>) -> io::Result<()> {
    let (user, database) = DOCUMENTS;
    let mut client = writer.world.client(user)?;
    while writer.goes_on() {
        let label = writer.next_label();
        let body = |version: u32| json!({ "Label": label, "Left": version, "Right": version });
        let created = writer.change(&label, "version 0", || {
            let path = documents(user, database);
            let answer = client.request("POST", &path, &body(0))?;
            expect(&answer, 201).map(|()| answer)
        })?;
        let path = created.location.unwrap_or_default();
        for version in 1..=writer.below(3) as u32 {
            writer.change(&label, &format!("version {version}"), || {
                expect(&client.request("PUT", &path, &body(version))?, 200)
            })?;
        }
        if writer.below(3) == 0 {
            writer.change(&label, "", || {
                expect(&client.request("DELETE", &path, &Value::Null)?, 200)
            })?;
        }
    }
    Ok(())
}

/// Bytes that depend on their position.
fn content(seed: u64, at: usize, length: usize) -> Vec<u8> {
    (at..at + length)
        .map(|at| {
            let block = (at as u64 / 8) ^ seed;
            let mixed = (block.wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(31);
            mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9).to_le_bytes()[at % 8]
        })
        .collect()
}

fn expect_raw(answer: &RawAnswer, status: u16) -> io::Result<()> {
    match answer.status == status {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{status} was expected: {answer:?}"
        ))),
    }
}

pub(super) fn write_uploads(writer: &mut Writer<'_>) -> io::Result<()> {
    let (user, database) = UPLOADS;
    let mut client = writer.world.client(user)?;
    let document = client.request("POST", &documents(user, database), &json!({}))?;
    expect(&document, 201)?;
    let document = document.location.unwrap_or_default();
    let unid = document.rsplit('/').next().unwrap_or_default().to_owned();
    while writer.goes_on() {
        let label = writer.next_label();
        let seed = writer.random.next_u64();
        let bytes = 1 + (writer.random.next_u32() % MOST_BYTES) as usize;
        let metadata = format!("filename {}", BASE64_STANDARD.encode(&label));
        let headers = [
            VERSION,
            ("upload-length", &*bytes.to_string()),
            ("upload-metadata", &metadata),
        ];
        let path = format!("/tus/{}/{database}/{unid}/Body", name(user));
        // An upload whose creation was not answered can't be found.
        let answer = client.send("POST", &path, &headers, b"")?;
        expect_raw(&answer, 201)?;
        let path = answer.header("location").unwrap_or_default().to_owned();
        writer.ledger.of(&label, |thing| {
            thing.path = format!("{path} {document}/Body/{label}");
            thing.upload = Some(Upload {
                seed,
                bytes,
                sure: 0,
                sent: 0,
            });
        });
        let mut sure = 0;
        while sure < bytes {
            let length = 1 + (writer.random.next_u32() % CHUNK_BYTES) as usize;
            let sent = bytes.min(sure + length);
            let note = |sure, sent| {
                writer.ledger.of(&label, |thing| {
                    thing.upload = Some(Upload {
                        seed,
                        bytes,
                        sure,
                        sent,
                    });
                });
            };
            note(sure, sent);
            let headers = [
                VERSION,
                ("content-type", "application/offset+octet-stream"),
                ("upload-offset", &*sure.to_string()),
            ];
            let chunk = content(seed, sure, sent - sure);
            expect_raw(&client.send("PATCH", &path, &headers, &chunk)?, 204)?;
            note(sent, sent);
            sure = sent;
        }
    }
    Ok(())
}

/// Returns all documents and uploads; finished uploads with their bytes.
pub(super) fn look(world: &World, things: &Things) -> io::Result<BTreeMap<String, String>> {
    let mut found = look_at_documents(world)?;
    let mut client = world.client(UPLOADS.0)?;
    for (label, thing) in things {
        if let Some(upload) = &thing.upload {
            let shows = look_at_upload(&mut client, &thing.path, upload)?;
            found.insert(label.clone(), shows);
        }
    }
    Ok(found)
}

fn look_at_documents(world: &World) -> io::Result<BTreeMap<String, String>> {
    let (user, database) = DOCUMENTS;
    let mut client = world.client(user)?;
    let (mut found, mut seen) = (BTreeMap::new(), 0);
    loop {
        let path = format!("{}?count=1000&start={seen}", documents(user, database));
        let page = client.request("GET", &path, &Value::Null)?;
        expect(&page, 200)?;
        let lines = page.body.as_array().map_or(&[][..], Vec::as_slice);
        if lines.is_empty() {
            return Ok(found);
        }
        seen += lines.len();
        for line in lines {
            let unid = line["@unid"].as_str().unwrap_or("without a name");
            let path = format!("{}/unid/{unid}", documents(user, database));
            let document = client.request("GET", &path, &Value::Null)?;
            expect(&document, 200)?;
            let (left, right) = (&document.body["Left"], &document.body["Right"]);
            let shows = match left == right {
                true => format!("version {left}"),
                false => format!("versions {left} and {right}"),
            };
            let label = document.body["Label"].as_str().unwrap_or("without a label");
            found.insert(label.to_owned(), shows);
        }
    }
}

fn look_at_upload(client: &mut Client, paths: &str, upload: &Upload) -> io::Result<String> {
    let (path, attachment) = paths.split_once(' ').unwrap_or_default();
    let answer = client.send("HEAD", path, &[VERSION], b"")?;
    if answer.status != 200 {
        return Ok(format!("status {}", answer.status));
    }
    let offset = answer
        .header("upload-offset")
        .unwrap_or_default()
        .to_owned();
    let there = client.send("GET", attachment, &[], b"")?;
    let is_whole = offset == upload.bytes.to_string();
    Ok(match (is_whole, there.status) {
        (true, 200) if there.body == content(upload.seed, 0, upload.bytes) => offset,
        (false, 404) => offset,
        (_, status) => format!("{offset}, and status {status} for the attachment"),
    })
}
