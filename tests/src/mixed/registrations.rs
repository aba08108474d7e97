//! Services registered with the lookup, and removed again.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::world::{Things, World, Writer, expect};
use crate::server::Client;

const ADDRESSES: usize = 40;

pub(super) fn write(writer: &mut Writer<'_>) -> io::Result<()> {
    let mut client = Client::admin(writer.world.server.address())?;
    while writer.goes_on() {
        let label = writer.next_label();
        let service = writer.number;
        let addresses: Vec<String> = (0..ADDRESSES)
            .map(|at| format!("10.{}.{}.{at}", service >> 8 & 255, service & 255))
            .collect();
        let record = json!({
            "type": "service", "service-name": label, "interface-addresses": addresses,
        });
        let shows = format!("{ADDRESSES} addresses");
        let answer = writer.change(&label, &shows, || {
            let answer = client.request("POST", "/lookup/records", &record)?;
            expect(&answer, 200).map(|()| answer)
        })?;
        if writer.below(3) == 0 {
            let path = format!("/{}", answer.body["uri"].as_str().unwrap_or_default());
            writer.change(&label, "", || {
                expect(&client.request("DELETE", &path, &Value::Null)?, 200)
            })?;
        }
    }
    Ok(())
}

/// Returns all registrations: each found by its name, and by an address among many.
pub(super) fn look(world: &World, _: &Things) -> io::Result<BTreeMap<String, String>> {
    let mut client = Client::admin(world.server.address())?;
    let all = client.request("GET", "/lookup/records?type=service", &Value::Null)?;
    expect(&all, 200)?;
    let mut found = BTreeMap::new();
    for record in all.body.as_array().map_or(&[][..], Vec::as_slice) {
        let name = &record["service-name"];
        let name = name
            .as_str()
            .or_else(|| name[0].as_str())
            .unwrap_or("a service without a name");
        let addresses = record["interface-addresses"].as_array();
        let addresses = addresses.map_or(&[][..], Vec::as_slice);
        let mut shows = format!("{} addresses", addresses.len());
        if let Some(last) = addresses.last().and_then(Value::as_str) {
            let path = format!("/lookup/records?service-name={name}&interface-addresses={last}");
            let again = client.request("GET", &path, &Value::Null)?;
            if again.body.as_array().map(Vec::len) != Some(1) {
                shows += ", not found by the last of them";
            }
        }
        if found.insert(name.to_owned(), shows).is_some() {
            return Err(io::Error::other(format!("{name} is registered twice")));
        }
    }
    Ok(found)
}
