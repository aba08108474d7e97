//! Errors of fleet operations.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::name::{Name, NoName};
use crate::token::NoToken;

/// Why a fleet operation failed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The token is invalid.
    #[error(transparent)]
    Token(#[from] NoToken),
    /// The token is for another role.
    #[error("this token is {0}'s, who is {1}")]
    Role(Name, &'static str),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] NoName),
    /// The hub is unreachable.
    #[error("the hub at {url} can't be reached: {why}")]
    Unreachable {
        /// Configured address.
        url: String,
        /// What was tried, and the result.
        why: String,
    },
    /// The hub refuses this client.
    #[error(
        "the hub at {url} does not know {name}: its token was taken back, or is of another hub"
    )]
    Refused {
        /// The hub.
        url: String,
        /// Name of the refused client.
        name: Name,
    },
    /// The TLS material is unusable.
    #[error("a secure connection can't be made: {0}")]
    Tls(String),
    /// Agents are missing.
    #[error("{wanted} agents{which} are wanted, and {found} can be had{why}")]
    TooFew {
        /// How many.
        wanted: usize,
        /// Description of the selection, appended to “agents”; empty where any will do.
        which: String,
        /// Number of agents present and free.
        found: usize,
        /// Why the others are unavailable.
        why: String,
    },
    /// A named agent is missing.
    #[error("agent {0} is not there: start it with `plimsoll agent`")]
    Absent(Name),
    /// An agent is unusable.
    #[error("agent {name} {why}")]
    Agent {
        /// The agent.
        name: Name,
        /// What is wrong with the agent.
        why: String,
    },
    /// The hub was created for another address.
    #[error("the hub in {} is for {url}: for another address, give it another folder", folder.display())]
    Made {
        /// Its folder.
        folder: PathBuf,
        /// Address in its tokens.
        url: String,
    },
    /// The hub uses a server that already runs.
    #[error("this hub is the server at {0}, which runs already: there is nothing to start")]
    Elsewhere(String),
    /// That server can't be joined this way.
    #[error("a server of NATS can't be joined: {0}")]
    Join(String),
    /// The hub has no port to listen on.
    #[error("can't listen on {listen}")]
    Listen {
        /// Requested address.
        listen: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The name is already invited.
    #[error("{0} is invited already: `plimsoll agents remove {0}` takes its token back")]
    Invited(Name),
    /// The name is unknown.
    #[error("{0} was never invited to this hub")]
    Unknown(Name),
    /// A file of the hub or an agent.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The message server program is missing.
    #[error("nats-server is not on the path: the hub needs it (Debian: apt install nats-server)")]
    NoServer,
    /// The message server did not start, or ended.
    #[error("nats-server {0}")]
    Server(String),
    /// A key or certificate could not be made.
    #[error("a key or certificate can't be made: {0}")]
    Key(String),
    /// A thread or a timer could not be made.
    #[error("no thread can be started")]
    Thread(#[source] io::Error),
}

impl FleetError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
