//! Arguments for load generators on other machines. Text only: the code of the commands is in `commands`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab_fleet::{Name, Wanted};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll hub                                         this machine only
  plimsoll hub --listen 0.0.0.0:4222 --name hub.lan    other machines, too
  plimsoll agents invite gen-1 > gen-1.token           then, on its machine:
  plimsoll agent --join @gen-1.token
  plimsoll hub --nats tls://nats.lan:4222 --ca ca.pem  use a running server

The hub connects agents and runs; it measures nothing. At its first start it
creates keys and a certificate in its folder; every connection to it has TLS. It
runs the nats-server on the PATH (Debian: apt install nats-server). Ctrl-C stops
it.")]
pub(crate) struct HubArgs {
    #[command(flatten)]
    pub(crate) folder: HubFolder,
    /// Address to listen on; port 0 picks a free port for good. Set at the first start of this hub
    /// (default: 127.0.0.1:4222)
    #[arg(long, env = "PLIMSOLL_HUB_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Name or address by which agents reach the hub, such as hub.lan; the first one is in the tokens.
    /// Set at the first start of this hub
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) name: Vec<String>,
    /// Use this running NATS server, which must have TLS: tls://HOST:PORT. Reports what its
    /// configuration has to include, and whether it accepts this machine; runs nothing
    #[arg(long, value_name = "URL", conflicts_with_all = ["listen", "name"])]
    pub(crate) nats: Option<String>,
    /// File with the certificate (PEM) of that server's authority; needed the first time
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) ca: Option<PathBuf>,
}

/// The folder with the keys of a hub.
#[derive(Debug, Args)]
pub(crate) struct HubFolder {
    /// Folder of the hub (default: `hub` in /var/lib/plimsoll for root, in ~/.local/state/plimsoll for others)
    #[arg(long, env = "PLIMSOLL_HUB", value_name = "DIR")]
    pub(crate) hub: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll agents invite gen-1 > gen-1.token   a new agent's token, shown once
  plimsoll agents list                         connected agents, and their runs
  plimsoll agents stop gen-1                   stop an agent's program
  plimsoll agents remove gen-1                 revoke its token")]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Create and print a token; its holder joins as this agent
    Invite {
        /// The agent's name: a-z, 0-9, and - between them
        name: Name,
        /// Create a token for running studies by agents from another machine, not for an agent
        #[arg(long)]
        conductor: bool,
        #[command(flatten)]
        folder: HubFolder,
    },
    /// List the connected agents
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Stop an agent's program
    Stop {
        /// The agent
        name: Name,
        /// Stop it even if it works for a run; the trial is then invalid
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Revoke a token: its owner is disconnected, and can't rejoin
    Remove {
        /// The name of its owner
        name: Name,
        #[command(flatten)]
        folder: HubFolder,
    },
}

/// The token with which the hub is reached.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// File with the token of `plimsoll agents invite NAME --conductor` (default: that of the hub on this machine)
    #[arg(long, env = "PLIMSOLL_FLEET", value_name = "FILE")]
    pub(crate) fleet: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll agent --join @gen-1.token
  ssh hub plimsoll agents invite gen-2 | plimsoll agent --join -
  plimsoll agent --join @gen-1.token --cores 2-3 --label rack=b
  plimsoll agent --join @gen-1.token --calibrate     if machines differ
  plimsoll agent --join @db-1.token --allow db.toml  also for systems

An agent waits for runs, and drives its part of their load. It connects to the
hub, listens on no port, and starts only load, and what --allow permits. Without
a message from its run for twelve seconds, it leaves the run: its users stop,
and its system ends. Ctrl-C stops the agent.")]
pub(crate) struct AgentArgs {
    /// Token of the agent: @FILE, or - for standard input
    #[arg(
        long,
        env = "PLIMSOLL_JOIN",
        value_name = "@FILE",
        hide_env_values = true
    )]
    pub(crate) join: String,
    /// Cores for its users, one worker each, such as 0-3 or 1,3 (default: all that it may use)
    #[arg(long, env = "PLIMSOLL_CORES", value_name = "LIST", value_parser = cores)]
    pub(crate) cores: Option<Cores>,
    /// Weight of its part of a load relative to other agents, 1 to 1000 (default: its number of cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) weight: Option<u32>,
    /// Measure first, for about ten seconds, how many requests it drives. The result is its weight
    /// beside agents that have measured, too
    #[arg(long, conflicts_with = "weight")]
    pub(crate) calibrate: bool,
    /// Label by which runs can choose it; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// Let runs have their system on this machine (`on` in a study). The file has the address for
    /// users, and lists the programs, folders, and kernel settings that a run may use; no study gets
    /// more
    #[arg(long, env = "PLIMSOLL_ALLOW", value_name = "FILE")]
    pub(crate) allow: Option<PathBuf>,
    /// Folder for the number of its last lease (default: `agent-NAME` in /var/lib/plimsoll for root, in
    /// ~/.local/state/plimsoll for others)
    #[arg(long, env = "PLIMSOLL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// A list of cores.
#[derive(Debug, Clone)]
pub(crate) struct Cores(pub(crate) Vec<usize>);

/// Agents that replace this machine's generator.
#[derive(Debug, Args)]
#[command(next_help_heading = "By agents on other machines")]
pub(crate) struct RunAgentsArgs {
    /// Drive the load by agents: a number of them, their names (gen-1,gen-2), or all with a label
    /// (rack=b) (default: those in the study)
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
