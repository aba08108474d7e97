//! The time of a query by an address, in stores of growing size.

use std::path::Path;
use std::time::Duration;

use crate::common::{Error, median, ms, now};
use crate::data;
use crate::http::Connection;
use crate::ours::Server;

const INTERFACES: usize = 100;
/// Registrations in one bulk call.
const BULK: usize = 100;
const QUERIES: usize = 500;
/// The pause between the filling of the store and the queries.
const SETTLE: Duration = Duration::from_secs(5);

/// Fills one store step by step and measures at each.
pub(crate) fn measure(folder: &Path, stores: &[usize]) -> Result<(), Error> {
    let server = Server::start(&folder.join("growth"))?;
    let mut connection = Connection::open(server.address)?;
    println!("\ngrowth: query by an address, registrations of {INTERFACES} interfaces");
    let (mut filled, mut first) = (0, None);
    for &size in stores {
        let begin = now();
        while filled < size {
            let many = BULK.min(size - filled);
            fill(&mut connection, filled, many)?;
            filled += many;
        }
        let fill_s = begin.elapsed().as_secs_f64();
        // The store copies its log for a while, and caches are cold.
        std::thread::park_timeout(SETTLE);
        query_ms(&mut connection, size)?;
        let query = query_ms(&mut connection, size)?;
        let ratio = query / *first.get_or_insert(query);
        println!(
            "  {size:>7} registrations, filled in {fill_s:>7.1} s: query {query:.3} ms, \
             {ratio:.2} x that of the smallest"
        );
    }
    Ok(())
}

fn fill(connection: &mut Connection, from: usize, many: usize) -> Result<(), Error> {
    let records: Vec<String> = (from..from + many)
        .map(|number| data::service(15, number, INTERFACES).json())
        .collect();
    let body = format!("[{}]", records.join(","));
    let answer = connection.ask("POST /lookup/records/bulk", "application/json", &body)?;
    match answer.body.contains(&format!("\"registered\":{many},")) {
        true => Ok(()),
        false => Err(Error::Peer(answer.body)),
    }
}

fn query_ms(connection: &mut Connection, size: usize) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(QUERIES);
    for query in 0..QUERIES {
        // Spread over the whole store, by a step that is coprime to its size.
        let number = query * 7919 % size;
        let address = data::service(15, number, INTERFACES).middle_address();
        let line = format!("GET /lookup/records?interface-addresses={address}");
        let begin = now();
        let answer = connection.ask(&line, "application/json", "")?;
        times.push(ms(begin.elapsed()));
        if answer.body.matches("Interface eth").count() != INTERFACES {
            return Err(Error::Peer(format!("{address} was not found")));
        }
    }
    Ok(median(times))
}
