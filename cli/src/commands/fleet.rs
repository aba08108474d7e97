//! `plimsoll hub`, `plimsoll agents`, and `plimsoll agent`: load generators and systems on other machines.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lab_conduct::{LoadGenerators, Machines, SystemMachine};
use lab_fleet::{
    AgentEvent, AgentOptions, Conductor, Crew, FleetError, Hello, Hub, HubEvent, Name, Role,
    Systems, Token, Wanted, own_cores, run_agent, run_hub,
};
use lab_machine::{Allowed, Supervisor};
use lab_study::plan::Plan;
use lab_study::{Agents, Study, Which};
use serde_json::json;

use crate::commands::{calibrate, print};
use crate::exit::{Exit, Failure};
use crate::fleeting::{
    AgentArgs, AgentsArgs, AgentsCommand, FleetArgs, HubArgs, HubFolder, RunAgentsArgs,
};
use crate::interrupt::interrupt;
use crate::state;
use lab_terminal::stderr::say;

/// The maximum bytes of a token.
const MOST_TOKEN: u64 = 16 << 10;

/// The version that agents must have, too.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

pub(crate) fn hub(args: &HubArgs) -> Result<Exit, Failure> {
    let folder = hub_folder(&args.folder)?;
    if let Some(url) = &args.nats {
        return join(&folder, url, args.ca.as_deref());
    }
    let hub = Hub::open_or_make(&folder, args.listen, &args.name).map_err(failure)?;
    let interrupt = interrupt()?;
    let (url, token) = (hub.url().to_owned(), hub.token_file());
    let mut tell = |event| match event {
        HubEvent::Listening => say(format_args!(
            "hub: {url}, folder {}\n\
             invite an agent:  plimsoll agents invite NAME > NAME.token\n\
             run by agents:    plimsoll run STUDY --agents N   (token: {})\n\
             Ctrl-C ends it",
            folder.display(),
            token.display()
        )),
        HubEvent::Changed => say(format_args!("hub: tokens have changed")),
    };
    run_hub(hub, &mut tell, &interrupt).map_err(failure)?;
    Ok(Exit::Success)
}

/// Uses a server that runs already.
fn join(folder: &Path, url: &str, ca: Option<&Path>) -> Result<Exit, Failure> {
    let read = |ca: &Path| {
        let named = |error: std::io::Error| {
            Failure::text(Exit::BadInput, format!("{}: {error}", ca.display()))
        };
        fs::read(ca).map_err(named)
    };
    let authority = ca.map(read).transpose()?;
    let hub = Hub::join(folder, url, authority.as_deref()).map_err(failure)?;
    let token = read_token(&hub.token_file())?;
    let rights = hub.rights_file();
    Conductor::connect(&token, version()).map_err(|error| {
        failure(error).hint(format!(
            "its configuration has to include {} in `authorization`, or in an account; have it read that \
             again (nats-server --signal reload) after each `plimsoll agents invite`",
            rights.display()
        ))
    })?;
    say(format_args!(
        "hub: {url} lets this machine in; folder {}\n\
         invite an agent:  plimsoll agents invite NAME > NAME.token\n\
         run by agents:    plimsoll run STUDY --agents N   (token: {})",
        folder.display(),
        hub.token_file().display()
    ));
    Ok(Exit::Success)
}

pub(crate) fn agents(args: &AgentsArgs) -> Result<Exit, Failure> {
    match &args.command {
        AgentsCommand::Invite {
            name,
            conductor,
            folder,
        } => invite(name, *conductor, folder),
        AgentsCommand::Remove { name, folder } => {
            let mut hub = Hub::open(&hub_folder(folder)?).map_err(no_hub)?;
            hub.remove(name).map_err(failure)?;
            print(&format!(
                "{name} is cut off; a running hub has heard of it\n"
            ))
        }
        AgentsCommand::List { json, fleet } => list(fleet, *json),
        AgentsCommand::Stop { name, force, fleet } => {
            let conductor = conductor(fleet)?;
            conductor.stop(name, *force).map_err(failure)?;
            print(&format!("{name} ends\n"))
        }
    }
}

fn invite(name: &Name, conductor: bool, folder: &HubFolder) -> Result<Exit, Failure> {
    let mut hub = Hub::open(&hub_folder(folder)?).map_err(no_hub)?;
    let role = if conductor {
        Role::Conductor
    } else {
        Role::Agent
    };
    let token = hub.invite(name, role).map_err(failure)?;
    say(format_args!(
        "the token of {name}, told once: keep it in a file that nobody else can read"
    ));
    if hub.is_elsewhere() {
        say(format_args!(
            "the server at {} has to read {} again before it lets {name} in",
            hub.url(),
            hub.rights_file().display()
        ));
    }
    print(&format!("{}\n", token.secret_text()))
}

fn list(fleet: &FleetArgs, as_json: bool) -> Result<Exit, Failure> {
    let there = conductor(fleet)?.agents();
    if as_json {
        let json = serde_json::to_string_pretty(&json!({ "agents": there }))
            .map_err(|error| Failure::new(Exit::Internal, &error))?;
        return print(&format!("{json}\n"));
    }
    if there.is_empty() {
        return print("no agent is there: start one with `plimsoll agent --join @FILE`\n");
    }
    let rows: Vec<[String; 5]> = there.iter().map(row).collect();
    let head = ["agent", "host", "cores", "version", "works for"].map(str::to_owned);
    let width = |column: usize| {
        let cells = rows
            .iter()
            .chain([&head])
            .map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}  "));
        let line: String = cells.collect();
        format!("{line}{}\n", row[4])
    };
    print(
        &std::iter::once(&head)
            .chain(&rows)
            .map(line)
            .collect::<String>(),
    )
}

fn row(hello: &Hello) -> [String; 5] {
    let labels = hello
        .labels
        .iter()
        .map(|(key, value)| format!(" {key}={value}"));
    [
        hello.name.to_string() + &labels.collect::<String>(),
        hello.host.clone(),
        hello.cores.len().max(1).to_string(),
        hello.program.clone(),
        hello.holder.clone().unwrap_or_else(|| "nobody".to_owned()),
    ]
}

pub(crate) fn agent(args: &AgentArgs) -> Result<Exit, Failure> {
    let token = joined_by(&args.join)?;
    let name = token.name().clone();
    let state = match &args.state {
        Some(state) => state.clone(),
        None => state::folder(None)?.join(format!("agent-{name}")),
    };
    let url = token.url().to_owned();
    let cores = args.cores.clone().map_or_else(own_cores, |cores| cores.0);
    let speed = match args.calibrate {
        true => Some(calibrate::speed(cores.len())?),
        false => None,
    };
    lab_machine::restore_host(&state).map_err(|error| Failure::new(Exit::Internal, &error))?;
    let systems = args.allow.as_deref();
    let systems = systems
        .map(|file| station(file, (&state, &cores)))
        .transpose()?;
    let options = AgentOptions {
        token,
        systems,
        state,
        cores,
        weight: args.weight,
        speed,
        labels: args.label.iter().cloned().collect(),
        program: version().to_owned(),
    };
    let interrupt = interrupt()?;
    let mut tell = |event| match event {
        AgentEvent::Joined => say(format_args!(
            "{name}: waits for runs at {url}; Ctrl-C ends it"
        )),
        AgentEvent::Leased { holder } => say(format_args!("{name}: works for {holder}")),
        AgentEvent::Began(trial) => say(format_args!("{name}: drives trial {trial}")),
        AgentEvent::HasSystem(trial) => {
            say(format_args!("{name}: has the system of trial {trial}"))
        }
        AgentEvent::Ended { trial, wrong: None } => {
            say(format_args!("{name}: trial {trial} is over"));
        }
        AgentEvent::Ended {
            trial,
            wrong: Some(wrong),
        } => say(format_args!("{name}: trial {trial} ended: {wrong}")),
        AgentEvent::Abandoned { holder } => say(format_args!(
            "{name}: nothing was heard of {holder}; what it did here has ended"
        )),
        AgentEvent::Told => say(format_args!("{name}: was told to end")),
    };
    run_agent(options, &mut tell, &interrupt).map_err(failure)?;
    Ok(Exit::Success)
}

/// The systems of runs, as far as the owner's allow file permits.
fn station(file: &Path, (state, cores): (&Path, &[usize])) -> Result<Systems, Failure> {
    let allowed = Allowed::read(file).map_err(|error| Failure::text(Exit::BadInput, error))?;
    let program = std::env::current_exe().map_err(|error| Failure::new(Exit::Internal, &error))?;
    let cores = cores.iter().filter_map(|core| u32::try_from(*core).ok());
    let station = Supervisor::new(allowed, program, state.to_path_buf(), cores.collect());
    let station = station.map_err(|error| Failure::new(Exit::BadInput, &error))?;
    Ok(Systems::new(move |orders, reports| {
        station.serve(orders, reports)
    }))
}

/// Returns the agents for the systems of a run.
pub(crate) fn machines(args: &RunAgentsArgs, plan: &Plan) -> Result<Machines, Failure> {
    let mut machines = Machines::new();
    let all: BTreeSet<&String> = plan
        .every_trial()
        .flat_map(lab_study::plan::Trial::machines)
        .collect();
    if all.is_empty() {
        return Ok(machines);
    }
    let conductor = Arc::new(conductor(&args.fleet)?);
    for on in all {
        let crew = Crew::take_system(&conductor, on).map_err(failure)?;
        let names: Vec<String> = crew.agents().map(|hello| hello.name.to_string()).collect();
        say(format_args!(
            "the system runs on {on}, by {}",
            names.join(", ")
        ));
        machines.insert(on.clone(), SystemMachine::new(Arc::new(crew)));
    }
    Ok(machines)
}

/// Describes the agents that would run the systems now.
pub(crate) fn planned_machines(args: &RunAgentsArgs, plan: &Plan) -> Result<String, Failure> {
    let all: BTreeSet<&String> = plan
        .every_trial()
        .flat_map(lab_study::plan::Trial::machines)
        .collect();
    if all.is_empty() {
        return Ok(String::new());
    }
    let conductor = conductor(&args.fleet)?;
    let named = all.into_iter().map(|on| {
        let hello = conductor.choose_system(on).map_err(failure)?;
        Ok(format!("  on {on}: {} on {}\n", hello.name, hello.host))
    });
    let named: String = named.collect::<Result<_, Failure>>()?;
    Ok(format!("systems run by agents:\n{named}\n"))
}

/// The requested agents, and their weights of the load.
type Order = (Wanted, Vec<(Name, u32)>);

/// Returns the request of the command line, else that of the study.
fn order(args: &RunAgentsArgs, study: &Study) -> Result<Option<Order>, Failure> {
    if let Some(wanted) = &args.agents {
        return Ok(Some((wanted.clone(), Vec::new())));
    }
    let Some(Agents { which, weights }) = study.agents() else {
        return Ok(None);
    };
    let wanted = match which {
        Which::Any(count) => Wanted::Any(*count as usize),
        Which::Labelled {
            label,
            value,
            count,
        } => Wanted::Labelled {
            label: label.clone(),
            value: value.clone(),
            count: count.map(|count| count as usize),
        },
        Which::Named(names) => {
            let names = names.iter().map(|name| name.parse::<Name>());
            let names: Result<Vec<Name>, _> = names.collect();
            Wanted::Named(names.map_err(|error| Failure::new(Exit::BadInput, &error))?)
        }
    };
    let weights = match &wanted {
        Wanted::Named(names) => names.iter().cloned().zip(weights.iter().copied()).collect(),
        Wanted::Any(_) | Wanted::Labelled { .. } => Vec::new(),
    };
    Ok(Some((wanted, weights)))
}

/// Describes the agents that a run would use now; empty without a request.
pub(crate) fn planned(args: &RunAgentsArgs, study: &Study) -> Result<String, Failure> {
    let Some((wanted, _)) = order(args, study)? else {
        return Ok(String::new());
    };
    let chosen = conductor(&args.fleet)?.choose(&wanted).map_err(failure)?;
    let named = chosen.iter().map(|hello| {
        let workers = match hello.cores.len() {
            0 | 1 => "1 worker".to_owned(),
            n => format!("{n} workers"),
        };
        format!("  {} on {}, {workers}\n", hello.name, hello.host)
    });
    Ok(format!(
        "driven by agents:\n{}\n",
        named.collect::<String>()
    ))
}

/// Returns the agents of a run, if it requests any.
pub(crate) fn crew(args: &RunAgentsArgs, study: &Study) -> Result<Option<LoadGenerators>, Failure> {
    let Some((wanted, weights)) = order(args, study)? else {
        return Ok(None);
    };
    let conductor = Arc::new(conductor(&args.fleet)?);
    say(format_args!("taking agents, and measuring their clocks"));
    let crew = Crew::take(&conductor, &wanted, &weights).map_err(failure)?;
    let names: Vec<String> = crew.agents().map(|hello| hello.name.to_string()).collect();
    say(format_args!(
        "the load is driven by {}",
        lab_analysis::format::first_few(&names)
    ));
    Ok(Some(LoadGenerators::new(Arc::new(crew))))
}

/// Returns the flags that a resumed run needs again, each followed by a space.
pub(crate) fn again(args: &RunAgentsArgs) -> String {
    let agents = args
        .agents
        .iter()
        .map(|wanted| format!("--agents {wanted} "));
    let fleet = args.fleet.fleet.iter();
    let fleet = fleet.map(|file| format!("--fleet {} ", file.display()));
    agents.chain(fleet).collect()
}

fn conductor(args: &FleetArgs) -> Result<Conductor, Failure> {
    let (file, own) = match &args.fleet {
        Some(file) => (file.clone(), false),
        None => (own_hub()?.join("conductor.token"), true),
    };
    let token = read_token(&file).map_err(|failure| match own {
        true => failure.hint(
            "start a hub on this machine with `plimsoll hub`, or name the file of a conductor's \
             token with --fleet",
        ),
        false => failure,
    })?;
    Conductor::connect(&token, version()).map_err(failure)
}

/// A token on the command line would be readable by all in the list of processes.
fn joined_by(join: &str) -> Result<Token, Failure> {
    if join == "-" {
        let mut text = String::new();
        let read = stdin().take(MOST_TOKEN).read_to_string(&mut text);
        read.map_err(|error| Failure::new(Exit::BadInput, &error))?;
        return parsed(&text);
    }
    match join.strip_prefix('@') {
        Some(file) => read_token(Path::new(file)),
        None => Err(Failure::text(
            Exit::BadInput,
            "--join takes @FILE, or - for standard input, and no token itself: a command line is read \
             by every user of a machine",
        )
        .hint("put the token into a file of your own: --join @gen-1.token")),
    }
}

fn read_token(file: &Path) -> Result<Token, Failure> {
    let text = fs::read_to_string(file).map_err(|error| {
        let text = format!("{}: {error}", file.display());
        Failure::text(Exit::BadInput, text)
    })?;
    parsed(&text)
}

fn parsed(text: &str) -> Result<Token, Failure> {
    text.parse()
        .map_err(|error: lab_fleet::NoToken| Failure::new(Exit::BadInput, &error))
}

fn hub_folder(args: &HubFolder) -> Result<PathBuf, Failure> {
    match &args.hub {
        Some(folder) => Ok(folder.clone()),
        None => Ok(state::folder(None)?.join("hub")),
    }
}

/// The folder of this machine's hub, without an option for it.
fn own_hub() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("PLIMSOLL_HUB").filter(|named| !named.is_empty());
    hub_folder(&HubFolder {
        hub: named.map(PathBuf::from),
    })
}

fn no_hub(error: FleetError) -> Failure {
    failure(error).hint("`plimsoll hub` makes one; --hub names its folder")
}

fn failure(error: FleetError) -> Failure {
    let exit = match &error {
        FleetError::Server(_) | FleetError::Thread(_) | FleetError::Key(_) => Exit::Internal,
        _ => Exit::BadInput,
    };
    Failure::new(exit, &error)
}
