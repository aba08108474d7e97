//! Starts systems of all kinds, and describes them for the record. It knows no load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use lab_archive::{CERTIFICATES, HTTP, MACHINE_OF, UNCHECKED};
use lab_machine::{Local, Machine};
use lab_study::plan::Trial;
use lab_study::{CommandSpec, ConnectSpec, HttpSpec, SystemSpec};

use crate::connect::ConnectSettings;
use crate::parts::{Parts, begin};
use crate::start::{System, SystemStart};
use crate::stop::{Stop, stopped};
use crate::{ConductError, attach, parts, remote_host};

/// Starts a system and waits until it accepts requests.
pub(crate) fn start(start: &SystemStart<'_>, interrupt: &AtomicBool) -> Result<System, Stop> {
    let of = (start.trial, &*start.output);
    let parts = Parts::start(start.machines, of, interrupt)?;
    let mut system = match start_last(start, parts.places(), interrupt) {
        Ok(system) => System { parts, ..system },
        Err(stop) => return Err(parts.end_with(stop)),
    };
    // Only now, since a system may make its certificate when it starts.
    match ConnectSettings::read(start.reach, &system.setting.scratch) {
        Ok(reach) => system.reach = reach,
        Err(problem) => {
            return Err(match system.stop() {
                Err(fatal @ Stop::Fatal(_)) => fatal,
                _ => Stop::System(problem),
            });
        }
    }
    Ok(system)
}

/// Starts the process that users connect to; `others` are the addresses of the system's remote processes.
fn start_last(
    start: &SystemStart<'_>,
    others: &[(String, SocketAddr)],
    interrupt: &AtomicBool,
) -> Result<System, Stop> {
    match start.spec {
        SystemSpec::Command(spec) => {
            let mut machine: Box<dyn Machine> = match start.far {
                Some(far) => Box::new(remote_host::machine(
                    far,
                    (start.trial, start.core_sharing),
                    start.output.clone(),
                )?),
                None => Box::new(Local::new(start.here(), spec.clone())),
            };
            machine.knows(others);
            let started = begin(&mut *machine, interrupt, &stopped)?;
            Ok(System::of(machine, started, start.reach.secure))
        }
        SystemSpec::Attach(spec) => attach::start(start, spec, interrupt),
        _ => {
            let problem = "this version can't start such a system".to_owned();
            Err(Stop::Fatal(ConductError::Unsupported(problem)))
        }
    }
}

/// Settings of the remote parts of a system.
pub(crate) fn of_parts(trial: &Trial) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for part in &trial.parts {
        let (name, spec) = (part.name(), &part.spec);
        let mut set = |what: String, value: String| told.push((what, value));
        for (name, before) in &spec.before {
            set(format!("start of {name}"), before.start.join(" "));
        }
        set(format!("start of {name}"), spec.start.join(" "));
        for (variable, value) in &spec.env {
            set(format!("env {variable} of {name}"), value.clone());
        }
        let on = part.host.on.as_ref();
        set(
            format!("{MACHINE_OF}{name}"),
            on.cloned().unwrap_or_default(),
        );
        if let Some(storage) = &part.host.storage {
            set(parts::storage_of(name), storage.clone());
        }
    }
    told
}

/// The settings for the archive's reader.
pub(crate) fn settings(spec: &SystemSpec) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    if let SystemSpec::Command(CommandSpec {
        preset: Some(preset),
        ..
    }) = spec
    {
        return preset.settings.clone();
    }
    if let SystemSpec::Command(spec) = spec {
        set("system", "command".to_owned());
        set("start", spec.start.join(" "));
        for (name, before) in &spec.before {
            set(&format!("start of {name}"), before.start.join(" "));
        }
        for (name, value) in &spec.env {
            set(&format!("env {name}"), value.clone());
        }
    }
    if let SystemSpec::Attach(spec) = spec {
        set("system", "attached".to_owned());
        set("url", spec.url.clone());
        set("cpus", "not pinned: attached".to_owned());
        if let Some(pid) = spec.pid {
            set("pid", pid.to_string());
        }
    }
    settings
}

/// The connection settings of its users, if they aren't the defaults.
pub(crate) fn way(reach: &ConnectSpec) -> Vec<(String, String)> {
    let mut way = Vec::new();
    let mut set = |name: &str, value: String| way.push((name.to_owned(), value));
    if reach.secure {
        set("scheme", "https".to_owned());
    }
    if reach.http != HttpSpec::default() {
        set(HTTP, reach.http.to_string());
    }
    if !reach.sources.is_empty() {
        let sources: Vec<String> = reach.sources.iter().map(ToString::to_string).collect();
        set("sources", sources.join(", "));
    }
    let tls = &reach.tls;
    if tls.insecure {
        set(CERTIFICATES, UNCHECKED.to_owned());
    }
    let files = tls.client.as_ref().map(|(certificate, _)| certificate);
    for (name, value) in [
        ("tls ca", tls.ca.as_ref()),
        ("tls certificate", files),
        ("tls server_name", tls.server_name.as_ref()),
    ] {
        if let Some(value) = value {
            set(name, value.clone());
        }
    }
    for (host, address) in &reach.resolve {
        set(&format!("resolve {host}"), address.to_string());
    }
    way
}

/// Returns true if no part of it is on this machine.
pub(crate) fn is_elsewhere(trial: &Trial) -> bool {
    is_attached(&trial.system) || remote_host::is_remote(trial)
}

/// Returns true if the lab did not start it.
pub(crate) fn is_attached(spec: &SystemSpec) -> bool {
    matches!(spec, SystemSpec::Attach(_))
}

/// The address of the exporter of its host, if it has one.
pub(crate) fn exporter(spec: &SystemSpec) -> Option<&str> {
    match spec {
        SystemSpec::Attach(spec) => spec.node_exporter.as_deref(),
        _ => None,
    }
}

/// The notes of its preset about its settings.
pub(crate) fn notes(spec: &SystemSpec) -> &[String] {
    match spec {
        SystemSpec::Command(spec) => spec.preset.as_ref().map_or(&[], |preset| &preset.notes),
        _ => &[],
    }
}
