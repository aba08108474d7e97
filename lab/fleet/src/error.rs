//! Why a fleet can't do what is asked of it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::name::{Name, NoName};
use crate::token::NoToken;

/// Why a fleet can't do what is asked of it.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The token is none.
    #[error(transparent)]
    Token(#[from] NoToken),
    /// It is a token, but for something else.
    #[error("this token is {0}'s, who is {1}")]
    Role(Name, &'static str),
    /// A name is none.
    #[error(transparent)]
    Name(#[from] NoName),
    /// The hub can't be reached.
    #[error("the hub at {url} can't be reached: {why}")]
    Unreachable {
        /// Where it should be.
        url: String,
        /// What was tried, and what came of it.
        why: String,
    },
    /// The hub doesn't let this one in.
    #[error(
        "the hub at {url} does not know {name}: its token was taken back, or is of another hub"
    )]
    Refused {
        /// The hub.
        url: String,
        /// Who asked.
        name: Name,
    },
    /// What the connection is made with is unusable.
    #[error("a secure connection can't be made: {0}")]
    Tls(String),
    /// Agents are missing.
    #[error("{wanted} agents{which} are wanted, and {found} can be had{why}")]
    TooFew {
        /// How many.
        wanted: usize,
        /// Which, in words behind “agents”; empty where any will do.
        which: String,
        /// How many are there and free.
        found: usize,
        /// What is in the way of the others, in words.
        why: String,
    },
    /// A named agent is missing.
    #[error("agent {0} is not there: start it with `plimsoll agent`")]
    Absent(Name),
    /// It can't be used, and why.
    #[error("agent {name} {why}")]
    Agent {
        /// The agent.
        name: Name,
        /// What is wrong with it.
        why: String,
    },
    /// A hub was made for another address.
    #[error("the hub in {} is for {url}: for another address, give it another folder", folder.display())]
    Made {
        /// Its folder.
        folder: PathBuf,
        /// What its tokens say.
        url: String,
    },
    /// The hub is a server that runs already.
    #[error("this hub is the server at {0}, which runs already: there is nothing to start")]
    Elsewhere(String),
    /// That server can't be joined so.
    #[error("a server of NATS can't be joined: {0}")]
    Join(String),
    /// The hub has no port to listen on.
    #[error("can't listen on {listen}")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The name is taken.
    #[error("{0} is invited already: `plimsoll agents remove {0}` takes its token back")]
    Invited(Name),
    /// The name stands for nobody.
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
    /// The program that carries messages is missing.
    #[error("nats-server is not on the path: the hub needs it (Debian: apt install nats-server)")]
    NoServer,
    /// That program did not start, or ended.
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
