//! `plimsoll serve`: the groupware server in this process.

use groupware_server::{Config, Data, TlsFiles};

use crate::args::{Engine, LookupLayout, ServeArgs};
use crate::exit::{Exit, Failure};

/// The admin token, where it comes from the environment rather than a file.
const ADMIN_TOKEN: &str = "PLIMSOLL_ADMIN_TOKEN";

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let serve = match args.demo {
        true => groupware_server::run_demo,
        false => groupware_server::run,
    };
    serve(config(args)).map_err(|error| {
        let exit = if error.is_configuration() {
            Exit::BadInput
        } else {
            Exit::Internal
        };
        Failure::new(exit, &error)
    })?;
    Ok(Exit::Success)
}

fn config(args: &ServeArgs) -> Config {
    let mut config = Config::new(match args.engine {
        Engine::Sqlite => Data::Folder(args.data.clone()),
        Engine::Memory => Data::Memory,
    });
    config.listen = args.listen;
    config.allow_plain_exposed = args.expose_without_tls;
    config.http_threads = args.http_threads.map(|n| n as usize);
    config.tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles {
            cert: cert.clone(),
            key: key.clone(),
        }),
        _ => None,
    };
    config.domain.clone_from(&args.domain);
    config.port_file.clone_from(&args.port_file);
    config.admin_token_file.clone_from(&args.admin_token_file);
    config.admin_token = std::env::var(ADMIN_TOKEN)
        .ok()
        .filter(|token| !token.is_empty());
    config.lookup = args.lookup;
    config.lookup_layout = match args.lookup_layout {
        LookupLayout::SingleDocument => groupware_server::LookupLayout::SingleDocument,
        LookupLayout::DocumentPerRegistration => {
            groupware_server::LookupLayout::DocumentPerRegistration
        }
        LookupLayout::Indexed => groupware_server::LookupLayout::Indexed,
    };
    config.mailbox_pad_bytes = args.mailbox_pad;
    config.parent_pid = args.parent_pid;
    config.access_log = args.access_log;
    config
}
