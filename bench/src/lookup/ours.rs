//! Our server as a separate process, in both protocols.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Error, System, wait_for};
use crate::data::Service;
use crate::http::Connection;

/// A running server with the default layout, ended on drop.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)?;
        let port_file = folder.join("port");
        let program = std::env::current_exe()?.with_file_name("plimsoll");
        let child = Command::new(program)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--lookup-layout",
                "indexed",
                "--lookup",
                "open",
                "--data",
            ])
            .arg(folder.join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .args(["--parent-pid", &std::process::id().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        server.address = wait_for("plimsoll serve", || {
            if let Some(status) = server.child.try_wait()? {
                return Err(Error::Peer(format!("plimsoll serve ended early: {status}")));
            }
            let text = std::fs::read_to_string(&port_file).unwrap_or_default();
            Ok(text.trim().parse().ok())
        })?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill(
            Pid::from_raw(self.child.id().cast_signed()),
            Signal::SIGTERM,
        );
        let _ = self.child.wait();
    }
}

/// A client with records.
pub(crate) struct Json {
    connection: Connection,
    uris: HashMap<String, String>,
}

impl Json {
    pub(crate) fn new(server: &Server) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::open(server.address)?,
            uris: HashMap::new(),
        })
    }
}

impl System for Json {
    fn name(&self) -> &'static str {
        "ours, JSON"
    }

    fn register(&mut self, service: &Service) -> Result<(), Error> {
        let body = service.json();
        let answer = self
            .connection
            .ask("POST /lookup/records", "application/json", &body)?;
        let uri = between(&answer.body, "\"uri\":\"", "\"")?;
        self.uris.insert(service.name.clone(), uri.to_owned());
        Ok(())
    }

    fn query(&mut self, address: &str) -> Result<usize, Error> {
        let line = format!("GET /lookup/records?interface-addresses={address}");
        let answer = self.connection.ask(&line, "application/json", "")?;
        Ok(answer.body.matches("Interface eth").count())
    }

    fn deregister(&mut self, service: &Service) -> Result<(), Error> {
        let uri = self.uris.remove(&service.name).unwrap_or_default();
        self.connection
            .ask(&format!("DELETE /{uri}"), "application/json", "")?;
        Ok(())
    }
}

/// A client with messages.
pub(crate) struct Xml {
    connection: Connection,
    keys: HashMap<String, String>,
}

impl Xml {
    pub(crate) fn new(server: &Server) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::open(server.address)?,
            keys: HashMap::new(),
        })
    }

    fn send(&mut self, kind: &str, metadata: &str, data: &str) -> Result<String, Error> {
        let body = format!(
            "<SOAP-ENV:Envelope xmlns:SOAP-ENV=\"http://schemas.xmlsoap.org/soap/envelope/\">\
             <SOAP-ENV:Body><nmwg:message type=\"LS{kind}Request\" id=\"msg1\" \
             xmlns:nmwg=\"http://ggf.org/ns/nmwg/base/2.0/\">\
             <nmwg:metadata id=\"m\">{metadata}</nmwg:metadata>\
             <nmwg:data id=\"d\" metadataIdRef=\"m\">{data}</nmwg:data></nmwg:message>\
             </SOAP-ENV:Body></SOAP-ENV:Envelope>"
        );
        let answer = self
            .connection
            .ask("POST /perfSONAR_PS/services/hLS", "text/xml", &body)?;
        match answer.body.contains("success.ls.") {
            true => Ok(answer.body),
            false => Err(Error::Peer(answer.body)),
        }
    }
}

impl System for Xml {
    fn name(&self) -> &'static str {
        "ours, XML"
    }

    fn register(&mut self, service: &Service) -> Result<(), Error> {
        let answer = self.send("Register", &service.subject(), &service.blocks())?;
        let key = between(&answer, "name=\"lsKey\">", "<")?;
        self.keys.insert(service.name.clone(), key.to_owned());
        Ok(())
    }

    fn query(&mut self, address: &str) -> Result<usize, Error> {
        let metadata = format!(
            "<xquery:subject id=\"s\" \
             xmlns:xquery=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0/\">\
             /nmwg:store[@type='LSStore']/nmwg:data[.//nmwgt:ifAddress='{address}']\
             </xquery:subject><xquery:parameters id=\"p\" \
             xmlns:xquery=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0/\">\
             <nmwg:parameter name=\"lsOutput\">native</nmwg:parameter></xquery:parameters>"
        );
        let answer = self.send("Query", &metadata, "")?;
        Ok(answer.matches("<nmwgt:ifName>").count())
    }

    fn deregister(&mut self, service: &Service) -> Result<(), Error> {
        let key = self.keys.remove(&service.name).unwrap_or_default();
        let metadata = format!(
            "<nmwg:key><nmwg:parameters id=\"k\"><nmwg:parameter name=\"lsKey\">{key}\
             </nmwg:parameter></nmwg:parameters></nmwg:key>"
        );
        self.send("Deregister", &metadata, "").map(drop)
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str, Error> {
    let found = text
        .split_once(before)
        .and_then(|(_, rest)| rest.split_once(after));
    found
        .map(|(found, _)| found)
        .ok_or_else(|| Error::Peer(format!("the answer has no {before}")))
}
