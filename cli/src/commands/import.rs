//! `plimsoll import`: workloads from recordings and descriptions.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_import::har::{self, HarOptions};
use lab_import::openapi::{self, Files, OpenApiOptions};
use lab_import::{ImportError, Imported};

use crate::beginning::{HarArgs, ImportArgs, ImportFrom, OpenApiArgs, ToArgs};
use crate::commands::{import_log, print, written};
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

/// The timeout of a download of a description.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &ImportArgs) -> Result<Exit, Failure> {
    match &args.from {
        ImportFrom::Har(args) => of_har(args),
        ImportFrom::Openapi(args) => of_openapi(args),
        ImportFrom::Log(args) => import_log::run(args, &name(&args.file.display().to_string())),
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
    let files: Box<dyn Files> = match is_address {
        true => Box::new(Site::of(&args.from)),
        false => Box::new(Folder::of(Path::new(&args.from))),
    };
    let imported = openapi::import(&text, &options, files.as_ref())
        .map_err(|error| failure(&args.from, &error))?;
    finish(&imported, &options.name, &args.to)
}

/// The folder of a description; it includes subfolders.
struct Folder(PathBuf);

impl Folder {
    fn of(description: &Path) -> Self {
        let folder = description
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        Self(folder.unwrap_or(Path::new(".")).to_owned())
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> Result<String, String> {
        let found = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
        let (folder, file) = (found(&self.0)?, found(&self.0.join(path))?);
        // A symbolic link may lead anywhere.
        if !file.starts_with(&folder) || !file.is_file() {
            return Err("it is no file in the description's folder or below".to_owned());
        }
        bytes_of(&file, openapi::MAX_BYTES).and_then(as_text)
    }
}

/// The base address of a downloaded description.
struct Site(String);

impl Site {
    fn of(description: &str) -> Self {
        let end = description.find(['?', '#']).unwrap_or(description.len());
        let path = &description[..end];
        let folder = path.rfind('/').map_or(path, |at| &path[..=at]);
        Self(folder.to_owned())
    }
}

impl Files for Site {
    fn read(&self, path: &str) -> Result<String, String> {
        let encoded = path
            .replace('%', "%25")
            .replace(' ', "%20")
            .replace('?', "%3F")
            .replace('#', "%23");
        fetch(&format!("{}{encoded}", self.0))
            .map_err(|failure| failure.to_string().trim_start_matches("error: ").to_owned())
    }
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
    bytes_of(path, most).and_then(as_text).map_err(said)
}

fn bytes_of(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    match bytes.len() > most {
        true => Err(format!("it is larger than {} MiB", most >> 20)),
        false => Ok(bytes),
    }
}

fn as_text(bytes: Vec<u8>) -> Result<String, String> {
    // RFC 1952, section 2.3.1.
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(
            "it is compressed (gzip): unpack it by `gunzip`, and import what comes out".to_owned(),
        );
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())
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
    let bytes = body.read_to_vec();
    bytes
        .map_err(|error| error.to_string())
        .and_then(as_text)
        .map_err(said)
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
