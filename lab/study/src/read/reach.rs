//! How users reach a system of a study: its settings as templates, each with its place.

use lab_language::connect::{ConnectTemplate, HttpTemplate};
use lab_language::settings::{Settings, note};
use lab_language::{At, Scalar, Span};
use lab_workload::Workload;

use crate::file::{HttpFile, SystemFile};

/// Returns how the users of `system` reach it; `None` when a problem was noted.
pub(super) fn template(
    system: &SystemFile,
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<ConnectTemplate> {
    fitting(system, settings)?;
    let mut known = settings.known.to_vec();
    if system.command.is_some() || system.processes.is_some() {
        known.push("scratch".to_owned());
    }
    let settings = &mut Settings {
        known: &known,
        problems: &mut *settings.problems,
    };
    let tls = system.tls.clone().unwrap_or_default();
    let scheme = settings.optional("scheme", system.scheme.as_ref());
    let ca = settings.optional("ca", tls.ca.as_ref());
    let certificate = settings.optional("certificate", tls.certificate.as_ref());
    let key = settings.optional("key", tls.key.as_ref());
    let server_name = settings.optional("server_name", tls.server_name.as_ref());
    let insecure = settings.optional("insecure", tls.insecure.as_ref());
    let http = match &system.http {
        None => None,
        Some(http) => Some(speech(http, workload, settings)?),
    };
    let resolve: Vec<_> = system
        .resolve
        .iter()
        .map(|(host, address)| {
            let address = settings.required(&format!("resolve {}", host.value), address)?;
            Some((host.value.clone(), address))
        })
        .collect();
    Some(ConnectTemplate {
        scheme: scheme?,
        ca: ca?,
        client: certificate?.zip(key?),
        server_name: server_name?,
        insecure: insecure?,
        resolve: resolve.into_iter().collect::<Option<_>>()?,
        http,
    })
}

fn speech(
    http: &HttpFile,
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<HttpTemplate> {
    let (version, share, connections) = match http {
        HttpFile::Version(version) => (version, None, None),
        HttpFile::Full(full) => (
            &full.version,
            full.share.as_ref(),
            full.connections.as_ref(),
        ),
    };
    let speech = &workload.speech;
    if !speech.is_http() && !speech.is_over_http2() {
        let message = format!(
            "the users of this workload speak {}, not HTTP",
            speech.name()
        );
        return note(&version.span, &message, "leave `http` out", settings);
    }
    let version = settings.required("http", version);
    let share = settings.optional("share", share);
    let connections = settings.optional("connections", connections);
    Some(HttpTemplate {
        version: version?,
        share: share?,
        connections: connections?,
    })
}

/// Reports settings that contradict other settings of the system.
fn fitting(system: &SystemFile, settings: &mut Settings<'_>) -> Option<()> {
    let mut refuse = |at: &Span, message: &str, help: &str| note(at, message, help, settings);
    let place = |at: &Option<At<Scalar>>| at.as_ref().map(|at| at.span.clone());
    if let (Some(at), Some(_)) = (place(&system.scheme), &system.attach) {
        let message = "`scheme` is for systems that the lab starts";
        return refuse(&at, message, "write it in `url`: `https://host:port`");
    }
    if let (Some(at), Some(_)) = (place(&system.scheme), &system.groupware) {
        let message = "the groupware that comes along is started without TLS";
        return refuse(
            &at,
            message,
            "have it started as a `command`, with a certificate",
        );
    }
    let Some(tls) = &system.tls else {
        return Some(());
    };
    match (place(&tls.certificate), place(&tls.key)) {
        (Some(at), None) => refuse(&at, "a `certificate` needs its `key`", "add `key: FILE`"),
        (None, Some(at)) => refuse(
            &at,
            "a `key` needs its `certificate`",
            "add `certificate: FILE`",
        ),
        _ => Some(()),
    }
}
