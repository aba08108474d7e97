//! A scratch PostgreSQL as Debian ships it: a row per interface with an index on the address, each
//! operation one statement and so one transaction, synced.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postgres::{Client, NoTls, Statement};

use crate::common::{Error, System, free_port};
use crate::data::{Interface, Service};

/// PostgreSQL refuses to run as root; Debian's package makes this user.
const USER: &str = "postgres";
/// The permission of others to enter a folder.
const WALK: u32 = 0o001;

/// A running PostgreSQL, ended on drop.
pub(crate) struct Server {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    _opened: Opened,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)?;
        let folder = std::fs::canonicalize(folder)?;
        run(Command::new("chown").arg(USER).arg(&folder))?;
        let server = Self {
            _opened: Opened::up_to(&folder)?,
            folder,
            programs: programs()?,
            port: free_port()?,
        };
        let data = server.folder.join("data");
        run(server
            .program("initdb")
            .args(["-A", "trust", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data))?;
        // On loopback, like the others. All other settings as shipped: fsync and synchronous_commit are on.
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={}",
            server.port,
            server.folder.display()
        );
        run(server
            .program("pg_ctl")
            .args(["-w", "-o", &options, "-l"])
            .arg(server.folder.join("log"))
            .arg("-D")
            .arg(&data)
            .arg("start"))?;
        Ok(server)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("runuser");
        command
            .args(["-u", USER, "--"])
            .arg(self.programs.join(name));
        command
    }

    pub(crate) fn connect(&self) -> Result<PostgreSql, Error> {
        let port = self.port;
        let at = format!("host=127.0.0.1 port={port} user={USER} dbname=postgres");
        let mut client = Client::connect(&at, NoTls)?;
        client.batch_execute(
            "CREATE TABLE registration (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
                 name text NOT NULL, locator text NOT NULL UNIQUE, expires timestamptz NOT NULL);
             CREATE TABLE interface (registration uuid NOT NULL, host text, name text,
                 description text, address text, direction text, capacity text);
             CREATE INDEX ON interface (address);
             CREATE INDEX ON interface (registration);",
        )?;
        let register = client.prepare(
            "WITH made AS (INSERT INTO registration (name, locator, expires)
                 VALUES ($1, $2, now() + interval '2 hours') RETURNING id)
             INSERT INTO interface SELECT made.id, new.* FROM made,
                 unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) new",
        )?;
        let query = client.prepare(
            "SELECT r.name, r.locator, i.host, i.name, i.description, i.address, i.direction, i.capacity
             FROM registration r JOIN interface i ON i.registration = r.id
             WHERE r.expires > now()
                 AND r.id IN (SELECT registration FROM interface WHERE address = $1)",
        )?;
        let deregister = client.prepare(
            "WITH gone AS (DELETE FROM registration WHERE locator = $1 RETURNING id)
             DELETE FROM interface WHERE registration IN (SELECT id FROM gone)",
        )?;
        Ok(PostgreSql {
            client,
            register,
            query,
            deregister,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.folder.join("data");
        let _ = run(self
            .program("pg_ctl")
            .args(["-m", "immediate", "-D"])
            .arg(data)
            .arg("stop"));
    }
}

/// Debian installs each version's programs in a separate folder.
fn programs() -> Result<PathBuf, Error> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")?;
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    found.sort();
    found
        .pop()
        .ok_or_else(|| Error::Peer("PostgreSQL is not installed".to_owned()))
}

/// Parent folders that other users could not enter, with their original modes, which are restored on drop.
struct Opened(Vec<(PathBuf, u32)>);

impl Opened {
    /// Lets other users enter a folder and its parents.
    fn up_to(folder: &Path) -> Result<Self, Error> {
        let mut opened = Self(Vec::new());
        for above in folder.ancestors().skip(1) {
            let mode = std::fs::metadata(above)?.permissions().mode();
            if mode & WALK == 0 {
                std::fs::set_permissions(above, Permissions::from_mode(mode | WALK))?;
                opened.0.push((above.to_owned(), mode));
            }
        }
        Ok(opened)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (folder, mode) in &self.0 {
            let _ = std::fs::set_permissions(folder, Permissions::from_mode(*mode));
        }
    }
}

fn run(command: &mut Command) -> Result<(), Error> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match output.success() {
        true => Ok(()),
        false => Err(Error::Peer(format!("{command:?} failed"))),
    }
}

pub(crate) struct PostgreSql {
    client: Client,
    register: Statement,
    query: Statement,
    deregister: Statement,
}

impl System for PostgreSql {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn register(&mut self, service: &Service) -> Result<(), Error> {
        let list = |of: fn(&Interface) -> &str| -> Vec<&str> {
            service.interfaces.iter().map(of).collect()
        };
        let rows = self.client.execute(
            &self.register,
            &[
                &service.name,
                &service.locator,
                &list(|interface| &interface.host),
                &list(|interface| &interface.name),
                &list(|interface| &interface.description),
                &list(|interface| &interface.address),
                &list(|interface| interface.direction),
                &list(|interface| interface.capacity),
            ],
        )?;
        match rows as usize == service.interfaces.len() {
            true => Ok(()),
            false => Err(Error::Peer(format!("PostgreSQL took {rows} rows"))),
        }
    }

    fn query(&mut self, address: &str) -> Result<usize, Error> {
        let rows = self.client.query(&self.query, &[&address])?;
        Ok(rows
            .iter()
            .filter(|row| row.get::<_, &str>(4).starts_with("Interface eth"))
            .count())
    }

    fn deregister(&mut self, service: &Service) -> Result<(), Error> {
        self.client.execute(&self.deregister, &[&service.locator])?;
        Ok(())
    }
}
