//! The connection settings of a trial's users: TLS with the files that the study names, and its addresses. It connects
//! to nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, UdpSocket};

use lab_client::{Identity, Offer, PemFile, Protocol, Tls, TlsOptions};
use lab_study::plan::Plan;
use lab_study::{AddressRange, ConnectSpec, HttpSpec, HttpVersion, TlsSpec};

/// Largest certificate file; this machine's own authorities take 200 KB.
const MAX_PEM_BYTES: u64 = 4 << 20;
/// Placeholder in the path of a file that a system makes in its trial.
const IN_SCRATCH: &str = "{{ scratch }}";

/// A trial's connection settings for its system.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectSettings {
    /// For the load.
    pub(crate) options: TlsOptions,
    /// The same, ready to connect.
    pub(crate) tls: Tls,
    pub(crate) hosts: Vec<(String, IpAddr)>,
    /// Source addresses of the load's connections.
    pub(crate) sources: Vec<IpAddr>,
    /// HTTP version of the load; all other requests of the lab use HTTP/1.1.
    pub(crate) protocol: Protocol,
}

impl ConnectSettings {
    /// Reads the files; `scratch` is the trial's folder.
    ///
    /// # Errors
    /// In words, what can't be read or used.
    pub(crate) fn read(spec: &ConnectSpec, scratch: &str) -> Result<Self, String> {
        let options = options(&spec.tls, scratch)?;
        let tls = Tls::new(options.clone());
        if options != TlsOptions::default() {
            tls.config().map_err(|error| error.to_string())?;
        }
        Ok(Self {
            options,
            tls,
            hosts: spec.resolve.clone(),
            sources: sources(spec).collect(),
            protocol: protocol(spec.http),
        })
    }
}

/// The source addresses.
pub(crate) fn sources(spec: &ConnectSpec) -> impl Iterator<Item = IpAddr> {
    spec.sources.iter().flat_map(AddressRange::addresses)
}

fn protocol(spec: HttpSpec) -> Protocol {
    Protocol {
        offer: match spec.version {
            HttpVersion::One => Offer::One,
            HttpVersion::Two => Offer::Two,
            HttpVersion::Auto => Offer::Auto,
        },
        shared: spec.shared,
    }
}

fn options(spec: &TlsSpec, scratch: &str) -> Result<TlsOptions, String> {
    let file = |key: &str, path: &str| {
        let path = path.replace(IN_SCRATCH, scratch);
        let named = |problem: String| format!("`{key}` of `tls` names {path}: {problem}");
        let size = fs::metadata(&path).map_err(|error| named(error.to_string()))?;
        if size.len() > MAX_PEM_BYTES {
            return Err(named("this is no file of certificates".to_owned()));
        }
        let text = fs::read_to_string(&path).map_err(|error| named(error.to_string()))?;
        Ok(PemFile { name: path, text })
    };
    let identity = match &spec.client {
        None => None,
        Some((certificate, key)) => Some(Identity {
            certificates: file("certificate", certificate)?,
            key: file("key", key)?,
        }),
    };
    let authority = spec.ca.as_ref().map(|ca| file("ca", ca)).transpose()?;
    Ok(TlsOptions {
        authorities: authority.into_iter().collect(),
        identity,
        server_name: spec.server_name.clone(),
        insecure: spec.insecure,
    })
}

/// The problems of a plan's TLS files; one sentence each. Files that a system makes in its trial do not exist yet.
pub(crate) fn check(plan: &Plan) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let specs = plan.every_trial().map(|trial| &trial.reach);
    let there = |spec: &&ConnectSpec| {
        let paths = spec.tls.client.iter().flat_map(|(a, b)| [a, b]);
        !paths
            .chain(&spec.tls.ca)
            .any(|path| path.contains(IN_SCRATCH))
    };
    let problems = specs.filter(there).filter_map(|spec| {
        let read = ConnectSettings::read(spec, "").err();
        read.or_else(|| sources(spec).find_map(not_ours))
    });
    problems.filter(|said| seen.insert(said.clone())).collect()
}

/// Why an address can't be a source, if so.
fn not_ours(address: IpAddr) -> Option<String> {
    let bound = UdpSocket::bind((address, 0));
    let refused = |error: io::Error| {
        format!(
            "`sources` names {address}, which is no address of this machine ({error}): leave it out, or \
             add it, as `ip address add {address} dev DEVICE` does"
        )
    };
    bound.err().map(refused)
}
