//! A scratch BaseX server as Debian ships it, by its own protocol: a document per registration. It
//! does not sync what it writes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use md5::{Digest, Md5};

use crate::common::{Error, System, free_port, wait_for};
use crate::data::Service;

const JAR: &str = "/usr/share/java/basex.jar";
/// User and password of a new server, which listens on loopback alone.
const ADMIN: &str = "admin";

/// A running BaseX, ended on drop.
pub(crate) struct Server {
    child: Child,
    port: u16,
    is_indexed: bool,
}

impl Server {
    /// Starts a server. With `is_indexed`, it updates its index at each change; as shipped, a change invalidates the
    /// index, and queries read everything.
    pub(crate) fn start(folder: &Path, is_indexed: bool) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)?;
        let folder = std::fs::canonicalize(folder)?;
        let port = free_port()?;
        let option =
            |name: &str, value: &dyn std::fmt::Display| format!("-Dorg.basex.{name}={value}");
        let child = Command::new("java")
            .arg("-Xmx1g")
            .arg(option("DBPATH", &folder.display()))
            .arg(option("SERVERHOST", &"127.0.0.1"))
            .arg(option("LOG", &"false"))
            .args(["-cp", JAR, "org.basex.BaseXServer", "-p", &port.to_string()])
            .current_dir(&folder)
            .env("HOME", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            child,
            port,
            is_indexed,
        })
    }

    pub(crate) fn connect(&self) -> Result<BaseX, Error> {
        let stream = wait_for("BaseX", || {
            Ok(TcpStream::connect(("127.0.0.1", self.port)).ok())
        })?;
        stream.set_nodelay(true)?;
        let mut client = BaseX {
            stream: BufReader::with_capacity(1 << 16, stream),
            is_indexed: self.is_indexed,
        };
        client.sign_in()?;
        let update = if self.is_indexed { "true" } else { "false" };
        client.command(&format!("SET UPDINDEX {update}"))?;
        client.command("CREATE DB lookup")?;
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A session of BaseX's server protocol: texts end with 0; the answer to a command ends with a byte that is 0 for
/// success.
pub(crate) struct BaseX {
    stream: BufReader<TcpStream>,
    is_indexed: bool,
}

impl BaseX {
    fn sign_in(&mut self) -> Result<(), Error> {
        let challenge = self.text()?;
        let (realm, nonce) = challenge
            .split_once(':')
            .ok_or_else(|| Error::Peer("BaseX sent no challenge".to_owned()))?;
        let secret = hex(&format!("{ADMIN}:{realm}:{ADMIN}"));
        let answer = hex(&format!("{secret}{nonce}"));
        self.send(&[ADMIN.as_bytes(), b"\0", answer.as_bytes(), b"\0"].concat())?;
        self.done("the sign-in").map(drop)
    }

    fn command(&mut self, command: &str) -> Result<String, Error> {
        self.send(&[command.as_bytes(), b"\0"].concat())?;
        let output = self.text()?;
        self.information(command)?;
        Ok(output)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// Reads the server's message about an operation; fails if it was not done.
    fn information(&mut self, what: &str) -> Result<(), Error> {
        let information = self.text()?;
        self.done(&format!("{}: {information}", &what[..what.len().min(60)]))
    }

    fn done(&mut self, what: &str) -> Result<(), Error> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        match byte {
            [0] => Ok(()),
            _ => Err(Error::Peer(format!("BaseX refused {what}"))),
        }
    }

    /// Reads a text up to its 0; a byte 255 escapes the next.
    fn text(&mut self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        self.stream.read_until(0, &mut bytes)?;
        bytes.pop();
        bytes.retain(|byte| *byte != 0xFF);
        String::from_utf8(bytes).map_err(|_| Error::Peer("BaseX sent no UTF-8".to_owned()))
    }
}

impl System for BaseX {
    fn name(&self) -> &'static str {
        match self.is_indexed {
            true => "BaseX, index kept",
            false => "BaseX",
        }
    }

    fn register(&mut self, service: &Service) -> Result<(), Error> {
        let document = format!(
            "<nmwg:store xmlns:nmwg=\"http://ggf.org/ns/nmwg/base/2.0/\" type=\"LSStore\">\
             <nmwg:metadata id=\"{0}\">{1}</nmwg:metadata>\
             <nmwg:data id=\"{0}/0\" metadataIdRef=\"{0}\">{2}</nmwg:data></nmwg:store>",
            service.name,
            service.subject(),
            service.blocks()
        );
        // 9: add this input under this path.
        let path = service.name.as_bytes();
        self.send(&[b"\x09", path, b".xml\0", document.as_bytes(), b"\0"].concat())?;
        self.information("add")
    }

    fn query(&mut self, address: &str) -> Result<usize, Error> {
        let found = self.command(&format!(
            "XQUERY declare namespace nmwg='http://ggf.org/ns/nmwg/base/2.0/'; \
             declare namespace nmwgt='http://ggf.org/ns/nmwg/topology/2.0/'; \
             db:open('lookup')/nmwg:store[@type='LSStore']/nmwg:data\
             [.//nmwgt:ifAddress/text() = '{address}']"
        ))?;
        Ok(found.matches("<nmwgt:ifName>").count())
    }

    fn deregister(&mut self, service: &Service) -> Result<(), Error> {
        self.command(&format!("DELETE {}.xml", service.name))
            .map(drop)
    }
}

fn hex(text: &str) -> String {
    let digest = Md5::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
