//! The arguments about load generators on other machines. Text only; there is no code of commands here.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab_fleet::{Name, Wanted};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll hub                                         this machine alone
  plimsoll hub --listen 0.0.0.0:4222 --name hub.lan    other machines, too
  plimsoll agents invite gen-1 > gen-1.token           and, where it is to be:
  plimsoll agent --join @gen-1.token
  plimsoll hub --nats tls://nats.lan:4222 --ca ca.pem  a server that runs already

The hub is where agents and runs meet; it measures nothing. At its first start
it makes keys and a certificate in its folder; every connection to it has TLS.
It runs the nats-server that is on the path (Debian: apt install nats-server).
Ctrl-C ends it.")]
pub(crate) struct HubArgs {
    #[command(flatten)]
    pub(crate) folder: HubFolder,
    /// Address to listen on, said at the first start of this hub; 127.0.0.1:4222 unless given; port 0
    /// takes a free one, for good
    #[arg(long, env = "PLIMSOLL_HUB_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// A name, or an address, by which agents reach it, such as hub.lan, said at the first start of this
    /// hub; the first stands in tokens
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) name: Vec<String>,
    /// Meet at this server of NATS, which runs already and has TLS: tls://HOST:PORT. Says what its
    /// configuration has to include, and whether it lets this machine in; runs nothing
    #[arg(long, value_name = "URL", conflicts_with_all = ["listen", "name"])]
    pub(crate) nats: Option<String>,
    /// File with the certificate (PEM) of who vouches for that server, said the first time
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) ca: Option<PathBuf>,
}

/// Where a hub keeps its keys.
#[derive(Debug, Args)]
pub(crate) struct HubFolder {
    /// Folder of the hub; `hub` in /var/lib/plimsoll for root, in ~/.local/state/plimsoll for others,
    /// unless given
    #[arg(long, env = "PLIMSOLL_HUB", value_name = "DIR")]
    pub(crate) hub: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll agents invite gen-1 > gen-1.token   a new agent's token, told once
  plimsoll agents list                         who is there, and works for whom
  plimsoll agents stop gen-1                   end an agent's program
  plimsoll agents remove gen-1                 take its token back")]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Make a token with which an agent joins, and print it: who has it is that agent
    Invite {
        /// The agent's name: a-z, 0-9, and - between them
        name: Name,
        /// For somebody who runs studies by agents from another machine, and is no agent
        #[arg(long)]
        conductor: bool,
        #[command(flatten)]
        folder: HubFolder,
    },
    /// Show the agents that are there
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// End an agent's program
    Stop {
        /// The agent
        name: Name,
        /// Also when it works for a run, whose trial is then no measurement
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Take a token back: its owner is cut off, and can't come again
    Remove {
        /// Whose
        name: Name,
        #[command(flatten)]
        folder: HubFolder,
    },
}

/// How the hub is reached.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// File with the token of `plimsoll agents invite NAME --conductor`; that of the hub on this machine
    /// unless given
    #[arg(long, env = "PLIMSOLL_FLEET", value_name = "FILE")]
    pub(crate) fleet: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll agent --join @gen-1.token
  ssh hub plimsoll agents invite gen-2 | plimsoll agent --join -
  plimsoll agent --join @gen-1.token --cores 2-3 --label rack=b
  plimsoll agent --join @gen-1.token --calibrate     where machines differ
  plimsoll agent --join @db-1.token --allow db.toml  for systems, too

An agent waits for runs and drives its part of their load. It dials out to the
hub, listens nowhere, and starts nothing but load, and what --allow lets it. A
run that it does not hear for twelve seconds has it no more: its users stop,
and its system ends. Ctrl-C ends it.")]
pub(crate) struct AgentArgs {
    /// Where its token is: @FILE, or - for standard input
    #[arg(
        long,
        env = "PLIMSOLL_JOIN",
        value_name = "@FILE",
        hide_env_values = true
    )]
    pub(crate) join: String,
    /// Cores for its users, one worker each, such as 0-3 or 1,3; all that it may use unless given
    #[arg(long, env = "PLIMSOLL_CORES", value_name = "LIST", value_parser = cores)]
    pub(crate) cores: Option<Cores>,
    /// Its part of a load against those of other agents, 1 to 1000; as many as it has cores unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) weight: Option<u32>,
    /// Measure first, for some ten seconds, how many requests it drives: its part of a load beside agents
    /// that have done the same is as large as that
    #[arg(long, conflicts_with = "weight")]
    pub(crate) calibrate: bool,
    /// What runs may choose it by; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// Let runs have their system on this machine (`on` in a study): a file that says where users reach it, and
    /// lists the programs, folders, and kernel settings that a run may use. No study gets more
    #[arg(long, env = "PLIMSOLL_ALLOW", value_name = "FILE")]
    pub(crate) allow: Option<PathBuf>,
    /// Folder for the number of its last lease; `agent-NAME` in /var/lib/plimsoll for root, in
    /// ~/.local/state/plimsoll for others, unless given
    #[arg(long, env = "PLIMSOLL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// A list of cores.
#[derive(Debug, Clone)]
pub(crate) struct Cores(pub(crate) Vec<usize>);

/// Agents in the place of this machine's generator.
#[derive(Debug, Args)]
#[command(next_help_heading = "By agents on other machines")]
pub(crate) struct RunAgentsArgs {
    /// Drive the load by agents: so many, those of these names (gen-1,gen-2), or all with a label
    /// (rack=b); those that the study names unless given
    #[arg(long, value_name = "WHICH", value_parser = wanted)]
    pub(crate) agents: Option<Wanted>,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if let Ok(count) = text.parse::<usize>() {
        return match count {
            1..=1000 => Ok(Wanted::Any(count)),
            _ => Err("between 1 and 1000 agents".to_owned()),
        };
    }
    if let Some((label, value)) = text.split_once('=') {
        let (label, value) = (label.to_owned(), value.to_owned());
        let count = None;
        return Ok(Wanted::Labelled {
            label,
            value,
            count,
        });
    }
    let names = text.split(',').map(|name| name.trim().parse::<Name>());
    let mut names: Vec<Name> = names
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{} is named twice", pair[0])),
        None => Ok(Wanted::Named(names)),
    }
}

fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || "cores such as 0-3 or 1,3".to_owned();
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= 4096 {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(Cores(cores))
}

fn label(text: &str) -> Result<(String, String), String> {
    let words = |text: &str| !text.is_empty() && text.len() <= 64;
    match text.split_once('=') {
        Some((key, value)) if words(key) && words(value) => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE, such as rack=b".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_wanted_by_number_name_or_label() {
        assert_eq!(wanted("3"), Ok(Wanted::Any(3)));
        let named = |text: &str| wanted(text).map_err(|_| ());
        let two = vec!["a".parse().unwrap(), "b".parse().unwrap()];
        assert_eq!(named("b, a"), Ok(Wanted::Named(two)));
        assert!(named("0").is_err() && named("a,a").is_err() && named("A").is_err());
        let label = |text: &str| matches!(wanted(text), Ok(Wanted::Labelled { .. }));
        assert!(label("rack=b"));
    }

    #[test]
    fn cores_are_listed_once() {
        let list = |text: &str| cores(text).map(|cores| cores.0);
        assert_eq!(list("0-2,1,5").unwrap(), [0, 1, 2, 5]);
        assert!(list("").is_err() && list("3-1").is_err() && list("x").is_err());
    }
}
