//! The hub, where agents and conductors connect. It creates the keys, the certificate, and the rights, and runs the
//! NATS server that it finds on the path.
//!
//! | file of its folder | content |
//! |---|---|
//! | `hub.json` | where it listens, the certificates, the public keys by name |
//! | `hub.key` | the key of its certificate |
//! | `conductor.token` | the token for running studies from this machine |
//! | `nats.conf`, `nats.log` | created anew at each start |
//! | `rights.conf` | for a hub with an external server: the part that the server's configuration must include |
//!
//! Only their owner can read the files. No private key of an agent is stored.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyUsagePurpose};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::FleetError;
use crate::name::Name;
use crate::rights::user;
use crate::subject::{of_agent, of_conductor};
use crate::token::{Role, Token};

/// Default address of a hub.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4222);
/// Name of the conductor on the hub's own machine.
const CONDUCTOR: &str = "conductor";

/// A hub, as stored in its folder.
#[derive(Debug)]
pub struct Hub {
    folder: PathBuf,
    pub(crate) kept: StoredHub,
}

/// `hub.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredHub {
    pub(crate) version: u32,
    pub(crate) listen: SocketAddr,
    /// Names under which agents reach it, as its owner set them.
    names: Vec<String>,
    /// Address in tokens.
    pub(crate) url: String,
    /// Its authority's certificate, DER in base64; the authority's key is not stored.
    authority: String,
    /// Its own certificate, PEM.
    pub(crate) certificate: String,
    /// Public keys of agents.
    pub(crate) agents: BTreeMap<Name, String>,
    /// Public keys of conductors.
    pub(crate) conductors: BTreeMap<Name, String>,
    /// Public key and seed of the client that receives departure notices.
    pub(crate) watch: (String, String),
    /// An external server already runs for it.
    #[serde(default, skip_serializing_if = "is_false")]
    elsewhere: bool,
}

fn is_false(is: &bool) -> bool {
    !is
}

impl StoredHub {
    /// Returns all clients with their rights, as the server's configuration lists them.
    pub(crate) fn users(&self) -> Vec<Value> {
        let agents = self.agents.iter();
        let agents = agents.map(|(name, key)| user(key, &of_agent(name)));
        let conductors = self.conductors.iter();
        let conductors = conductors.map(|(name, key)| user(key, &of_conductor(name)));
        agents.chain(conductors).collect()
    }
}

impl Hub {
    /// Opens the hub of a folder.
    ///
    /// # Errors
    /// When there is none, or its files are unreadable.
    pub fn open(folder: &Path) -> Result<Self, FleetError> {
        let path = folder.join("hub.json");
        let text = fs::read(&path).map_err(FleetError::file(&path))?;
        let kept: StoredHub = serde_json::from_slice(&text)
            .map_err(|error| FleetError::file(&path)(io::Error::other(error)))?;
        if kept.version != 1 {
            let what = format!("is of version {}, and this program knows 1", kept.version);
            return Err(FleetError::file(path)(io::Error::other(what)));
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            kept,
        })
    }

    /// Opens the hub of a folder, or creates one that listens there, or on 127.0.0.1:4222. Port 0 picks a free port
    /// once; tokens contain it. Others reach it by `names`; tokens contain the first.
    ///
    /// # Errors
    /// When no such address exists here, its files can't be read or written, or it was created for another address,
    /// which its tokens and certificate contain.
    pub fn open_or_make(
        folder: &Path,
        listen: Option<SocketAddr>,
        names: &[String],
    ) -> Result<Self, FleetError> {
        if folder.join("hub.json").exists() {
            let hub = Self::open(folder)?;
            let elsewhere = listen.is_some_and(|listen| !is_at(listen, hub.kept.listen));
            if elsewhere || (!names.is_empty() && names != hub.kept.names) {
                return Err(FleetError::Made {
                    folder: folder.to_path_buf(),
                    url: hub.kept.url,
                });
            }
            return Ok(hub);
        }
        let listen = with_free_port(listen.unwrap_or(LISTEN))?;
        make_private(folder)?;
        let own = reached_by(listen, names)?;
        let made = certificates(&own)?;
        put(&folder.join("hub.key"), made.key.as_bytes())?;
        let (watch, watch_seed) = key()?;
        let mut hub = Self {
            folder: folder.to_path_buf(),
            kept: StoredHub {
                version: 1,
                listen,
                names: names.to_vec(),
                url: format!("tls://{}", with_port(&own[0], listen.port())),
                authority: BASE64.encode(made.authority),
                certificate: made.certificate,
                agents: BTreeMap::new(),
                conductors: BTreeMap::new(),
                watch: (watch, watch_seed),
                elsewhere: false,
            },
        };
        let token = hub.invite(&CONDUCTOR.parse()?, Role::Conductor)?;
        put(&hub.token_file(), token.secret_text().as_bytes())?;
        Ok(hub)
    }

    /// Opens or creates the hub of a folder for an external server at `url` (`tls://HOST:PORT`); `authority` is the PEM
    /// certificate of its authority. After creation the server must admit the clients in [`Hub::rights_file`].
    ///
    /// # Errors
    /// When url or certificate are invalid, the folder has another hub, or can't be written.
    pub fn join(folder: &Path, url: &str, authority: Option<&[u8]>) -> Result<Self, FleetError> {
        if folder.join("hub.json").exists() {
            let hub = Self::open(folder)?;
            if hub.kept.url != url || !hub.kept.elsewhere {
                let (folder, url) = (folder.to_path_buf(), hub.kept.url);
                return Err(FleetError::Made { folder, url });
            }
            return Ok(hub);
        }
        if !url
            .strip_prefix("tls://")
            .is_some_and(|rest| rest.contains(':'))
        {
            let why = format!("`{url}` is no address with TLS: write tls://HOST:PORT");
            return Err(FleetError::Join(why));
        }
        let authority = authority.ok_or_else(|| {
            let why = "say by --ca which file has the certificate of who vouches for it";
            FleetError::Join(why.to_owned())
        })?;
        let authority = CertificateDer::from_pem_slice(authority)
            .map_err(|error| FleetError::Join(format!("--ca names no certificate: {error}")))?;
        make_private(folder)?;
        let mut hub = Self {
            folder: folder.to_path_buf(),
            kept: StoredHub {
                version: 1,
                listen: LISTEN,
                names: Vec::new(),
                url: url.to_owned(),
                authority: BASE64.encode(&authority),
                certificate: String::new(),
                agents: BTreeMap::new(),
                conductors: BTreeMap::new(),
                watch: Default::default(),
                elsewhere: true,
            },
        };
        let token = hub.invite(&CONDUCTOR.parse()?, Role::Conductor)?;
        put(&hub.token_file(), token.secret_text().as_bytes())?;
        Ok(hub)
    }

    /// Returns true if an external server must admit its agents.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.kept.elsewhere
    }

    /// Returns the file that an external server's configuration must include, in `authorization` or in an account: the
    /// public keys of all invited clients, and the subjects that each may publish and subscribe to.
    #[must_use]
    pub fn rights_file(&self) -> PathBuf {
        self.folder.join("rights.conf")
    }

    /// Returns the path of this machine's conductor token.
    #[must_use]
    pub fn token_file(&self) -> PathBuf {
        self.folder.join("conductor.token")
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns its address in tokens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.kept.url
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        self.kept.listen
    }

    /// Returns the names of invited agents.
    pub fn agents(&self) -> impl Iterator<Item = &Name> {
        self.kept.agents.keys()
    }

    /// Creates a token for a new client. It is returned once: only its public half is stored.
    ///
    /// # Errors
    /// When the name is taken, or the hub's file can't be written.
    pub fn invite(&mut self, name: &Name, role: Role) -> Result<Token, FleetError> {
        let taken = |keys: &BTreeMap<Name, String>| keys.contains_key(name);
        if taken(&self.kept.agents) || taken(&self.kept.conductors) {
            return Err(FleetError::Invited(name.clone()));
        }
        let (public, seed) = key()?;
        let (keys, watch) = match role {
            Role::Agent => (&mut self.kept.agents, None),
            Role::Conductor => {
                let watch = &self.kept.watch.1;
                let watch = (!watch.is_empty()).then(|| watch.clone());
                (&mut self.kept.conductors, watch)
            }
        };
        keys.insert(name.clone(), public);
        self.keep()?;
        Ok(Token {
            url: self.kept.url.clone(),
            name: name.clone(),
            role,
            authority: self.kept.authority.clone(),
            seed,
            watch,
        })
    }

    /// Revokes a token: the hub refuses its owner from then on.
    ///
    /// # Errors
    /// When the name is unknown, or the hub's file can't be written.
    pub fn remove(&mut self, name: &Name) -> Result<(), FleetError> {
        let agent = self.kept.agents.remove(name);
        let gone = agent.or_else(|| self.kept.conductors.remove(name));
        if gone.is_none() {
            return Err(FleetError::Unknown(name.clone()));
        }
        self.keep()
    }

    fn keep(&self) -> Result<(), FleetError> {
        let json = serde_json::to_vec_pretty(&self.kept).expect("a hub is JSON");
        put(&self.folder.join("hub.json"), &json)?;
        if self.kept.elsewhere {
            let users = Value::from(self.kept.users());
            put(
                &self.rights_file(),
                format!("users: {users:#}\n").as_bytes(),
            )?;
        }
        Ok(())
    }
}

/// Creates a folder that only its owner can access.
fn make_private(folder: &Path) -> Result<(), FleetError> {
    fs::create_dir_all(folder).map_err(FleetError::file(folder))?;
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder, private).map_err(FleetError::file(folder))
}

/// Returns true if a hub that listens at `kept` matches the requested address.
fn is_at(asked: SocketAddr, kept: SocketAddr) -> bool {
    asked == kept || (asked.port() == 0 && asked.ip() == kept.ip())
}

/// Replaces port 0 by a free port.
fn with_free_port(listen: SocketAddr) -> Result<SocketAddr, FleetError> {
    if listen.port() != 0 {
        return Ok(listen);
    }
    let free = TcpListener::bind(listen).and_then(|listener| listener.local_addr());
    free.map_err(|source| FleetError::Listen { listen, source })
}

/// Returns the names and addresses under which a hub is reached; tokens contain the first.
fn reached_by(listen: SocketAddr, names: &[String]) -> Result<Vec<String>, FleetError> {
    let mut own = names.to_vec();
    if listen.ip().is_loopback() {
        own.push(listen.ip().to_string());
    } else if own.is_empty() && listen.ip().is_unspecified() {
        return Err(FleetError::Key(
            "a hub that listens everywhere needs a name, or an address, by which agents reach it: \
             say --name"
                .to_owned(),
        ));
    } else if !listen.ip().is_unspecified() {
        own.push(listen.ip().to_string());
    }
    own.dedup();
    Ok(own)
}

fn with_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

/// Creates a NATS key: public half and seed.
fn key() -> Result<(String, String), FleetError> {
    let pair = KeyPair::new_user();
    let seed = pair.seed().map_err(|e| FleetError::Key(e.to_string()))?;
    Ok((pair.public_key(), seed))
}

struct Made {
    authority: Vec<u8>,
    certificate: String,
    key: String,
}

/// Creates an authority that signs one certificate; its key is then discarded.
fn certificates(names: &[String]) -> Result<Made, FleetError> {
    let wrong = |error: rcgen::Error| FleetError::Key(error.to_string());
    let mut authority = CertificateParams::new(Vec::new()).map_err(wrong)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let subject = &mut authority.distinguished_name;
    subject.push(DnType::CommonName, "plimsoll hub's authority");
    let authority_key = rcgen::KeyPair::generate().map_err(wrong)?;
    let signed = authority.self_signed(&authority_key).map_err(wrong)?;
    let issuer = Issuer::new(authority, authority_key);
    let mut own = CertificateParams::new(names.to_vec()).map_err(wrong)?;
    own.distinguished_name
        .push(DnType::CommonName, "plimsoll hub");
    let key = rcgen::KeyPair::generate().map_err(wrong)?;
    let certificate = own.signed_by(&key, &issuer).map_err(wrong)?;
    Ok(Made {
        authority: signed.der().to_vec(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Writes a file atomically that only its owner can access.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        // Created with access for its owner only.
        let mut next = tempfile::NamedTempFile::new_in(folder)?;
        next.write_all(bytes)?;
        next.as_file().sync_all()?;
        next.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(FleetError::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(folder: &Path) -> Hub {
        Hub::open_or_make(folder, None, &[]).unwrap()
    }

    #[test]
    fn a_hub_comes_back_and_keeps_nobodys_key_but_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("hub");
        let mut made = hub(&folder);
        let token = made.invite(&"ada".parse().unwrap(), Role::Agent).unwrap();
        let again = hub(&folder);
        assert_eq!(again.kept, made.kept);
        assert_eq!(again.agents().count(), 1);
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?}", entry.path());
            let text = fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains(&token.seed), "{:?}", entry.path());
        }
        assert_eq!(token.url(), "tls://127.0.0.1:4222");
        let elsewhere = Some("127.0.0.1:4223".parse().unwrap());
        let error = Hub::open_or_make(&folder, elsewhere, &[]).unwrap_err();
        assert!(
            error.to_string().contains("is for tls://127.0.0.1:4222"),
            "{error}"
        );
    }

    #[test]
    fn a_free_port_is_taken_once_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let made = Hub::open_or_make(folder.path(), Some(any), &[]).unwrap();
        let port = made.listen().port();
        assert_ne!(port, 0);
        assert_eq!(made.url(), format!("tls://127.0.0.1:{port}"));
        let again = Hub::open_or_make(folder.path(), Some(any), &[]).unwrap();
        assert_eq!(again.kept, made.kept);
        let other = Some("[::1]:0".parse().unwrap());
        assert!(Hub::open_or_make(folder.path(), other, &[]).is_err());
    }

    #[test]
    fn names_are_invited_once_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut hub = hub(folder.path());
        let ada: Name = "ada".parse().unwrap();
        hub.invite(&ada, Role::Agent).unwrap();
        assert!(hub.invite(&ada, Role::Conductor).is_err());
        assert!(
            hub.invite(&CONDUCTOR.parse().unwrap(), Role::Agent)
                .is_err()
        );
        hub.remove(&ada).unwrap();
        assert!(hub.remove(&ada).is_err());
        hub.invite(&ada, Role::Agent).unwrap();
    }

    #[test]
    fn a_hub_knows_by_which_names_it_is_reached() {
        let by = |listen: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            reached_by(listen.parse().unwrap(), &names)
        };
        assert_eq!(by("127.0.0.1:1", &[]).unwrap(), ["127.0.0.1"]);
        assert_eq!(
            by("10.0.0.5:1", &["hub.lan"]).unwrap(),
            ["hub.lan", "10.0.0.5"]
        );
        assert_eq!(by("0.0.0.0:1", &["hub.lan"]).unwrap(), ["hub.lan"]);
        assert!(by("0.0.0.0:1", &[]).is_err());
        assert_eq!(with_port("::1", 4), "[::1]:4");
    }
}
