//! `plimsoll import`: workloads from recordings and descriptions.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_import::har::{self, HarOptions};
use lab_import::openapi::{self, OpenApiOptions};
use lab_import::{ImportError, Imported};

use crate::beginning::{HarArgs, ImportArgs, ImportFrom, OpenApiArgs, ToArgs};
use crate::commands::{print, written};
use crate::exit::{Exit, Failure};
use crate::talk::say;

/// How long a description may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &ImportArgs) -> Result<Exit, Failure> {
    match &args.from {
        ImportFrom::Har(args) => of_har(args),
        ImportFrom::Openapi(args) => of_openapi(args),
    }
}

fn of_har(args: &HarArgs) -> Result<Exit, Failure> {
    let shown = args.file.display().to_string();
    let text = read(&args.file, har::MAX_BYTES)?;
    let options = HarOptions {
        name: name(&shown),
        hosts: args.host.clone(),
        without: args.without.iter().copied().flatten().collect(),
    };
    let imported = har::import(&text, &options).map_err(|error| failure(&shown, &error))?;
    finish(&imported, &options.name, &args.to)
}

fn of_openapi(args: &OpenApiArgs) -> Result<Exit, Failure> {
    let is_address = args.from.starts_with("http://") || args.from.starts_with("https://");
    let text = match is_address {
        true => fetch(&args.from)?,
        false => read(Path::new(&args.from), openapi::MAX_BYTES)?,
    };
    let options = OpenApiOptions {
        name: name(&args.from),
        from: is_address.then(|| args.from.clone()),
    };
    let imported = openapi::import(&text, &options).map_err(|error| failure(&args.from, &error))?;
    finish(&imported, &options.name, &args.to)
}

/// `shop` of `recordings/shop.har`.
fn name(from: &str) -> String {
    let last = from
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    let stem = if stem.is_empty() { "imported" } else { stem };
    lab_import::yaml::short_name(stem, "imported")
}

fn read(path: &Path, most: usize) -> Result<String, Failure> {
    let said = |what: String| Failure::text(Exit::BadInput, format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| said(error.to_string()))?;
    if bytes.len() > most {
        return Err(said(format!("it is larger than {} MiB", most >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| said("it is no UTF-8 text".to_owned()))
}

fn fetch(url: &str) -> Result<String, Failure> {
    let said = |what: String| Failure::text(Exit::BadInput, format!("{url}: {what}"));
    // For http, too: it may redirect.
    let trusted = lab_export::trusted().map_err(|error| said(error.to_string()))?;
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    let agent = config.tls_config(trusted).build().new_agent();
    let mut answer = agent.get(url).call().map_err(|error| {
        let text = error.to_string();
        let is_distrusted = text.contains("certificate");
        let failure = said(text);
        match is_distrusted {
            true => {
                failure.hint("SSL_CERT_FILE=ca.pem in front names an authority; or import a file")
            }
            false => failure,
        }
    })?;
    let body = answer
        .body_mut()
        .with_config()
        .limit(openapi::MAX_BYTES as u64);
    body.read_to_string()
        .map_err(|error| said(error.to_string()))
}

fn failure(from: &str, error: &ImportError) -> Failure {
    let failure = Failure::text(Exit::BadInput, format!("{from}: {error}"));
    match error {
        ImportError::Nothing { .. } => failure.hint("take more of it by --host or --without none"),
        _ => failure,
    }
}

fn finish(imported: &Imported, name: &str, to: &ToArgs) -> Result<Exit, Failure> {
    let out = to
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{name}.workload.yaml")));
    let is_printed = out.as_os_str() == "-";
    if !is_printed && !to.force {
        written::is_free(&out)?;
    }
    for said in &imported.said {
        say(format_args!("{said}"));
    }
    if is_printed {
        return print(&imported.workload);
    }
    written::write(&out, &imported.workload)?;
    let given: String = imported
        .asked
        .iter()
        .map(|name| format!("{name}=… "))
        .collect();
    let server = imported.server.as_deref().unwrap_or("http://HOST:PORT");
    let shown = out.display();
    say(format_args!("{shown}: what one user does"));
    print(&format!(
        "next:\n  {given}plimsoll try {shown} --url {server}\n  \
         {given}plimsoll run {shown} --url {server} --users 10 --for 1m\n"
    ))
}
