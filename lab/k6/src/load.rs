//! The load of a script: k6's options as scenarios, and those as the load of a study.

use std::fmt::Write as _;
use std::time::Duration;

use lab_units::units::{decimal, describe};
use lab_units::yaml::short_name;
use serde_json::Value;

use crate::known;
use crate::options::Options;
use crate::script::{Refused, Script};

/// The default `maxDuration` of k6.
const LONGEST: Duration = Duration::from_secs(600);

/// A scenario.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) function: String,
    pub(super) load: Load,
    after: Duration,
}

/// What starts the sessions of a scenario.
#[derive(Debug, Clone)]
pub(super) enum Load {
    Users {
        users: u32,
        hold: Duration,
    },
    /// Levels of users.
    Stages(Vec<Stage>),
    /// Sessions in a row: of each user, or of all together if they are `shared`.
    Sequence {
        users: u32,
        sessions: u64,
        shared: bool,
        most: Duration,
    },
    Rate {
        per_s: f64,
        hold: Duration,
        sessions: Option<u64>,
    },
    /// Levels of sessions per second.
    Rates {
        stages: Vec<Stage>,
        sessions: Option<u64>,
    },
}

/// A level that is reached over a time, or held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    from: f64,
    to: f64,
    length: Duration,
}

impl Scenario {
    /// The only one, which has no name.
    fn default_of(load: Load) -> Self {
        Self {
            name: "default".to_owned(),
            function: "default".to_owned(),
            load,
            after: Duration::ZERO,
        }
    }

    pub(super) fn workload_file(&self, prefix: &str) -> String {
        match self.function.as_str() {
            "default" => format!("{prefix}.workload.yaml"),
            other => format!("{prefix}-{other}.workload.yaml"),
        }
    }

    /// Its name as a population.
    pub(super) fn population(&self) -> String {
        short_name(&self.name, "scenario")
    }

    fn length(&self) -> Duration {
        let sum = |stages: &[Stage]| stages.iter().map(|stage| stage.length).sum();
        self.after
            + match &self.load {
                Load::Users { hold, .. } | Load::Rate { hold, .. } => *hold,
                Load::Stages(stages) | Load::Rates { stages, .. } => sum(stages),
                Load::Sequence { most, .. } => *most,
            }
    }
}

/// Returns the function that a load by flags runs: that of the first scenario, if all of them name one.
fn first_function<'v>(mut scenarios: impl Iterator<Item = &'v Value>) -> Option<String> {
    let function = |one: &Value| one.get("exec").and_then(Value::as_str).map(str::to_owned);
    let first = function(scenarios.next()?)?;
    scenarios
        .all(|one| function(one).is_some())
        .then_some(first)
}

/// Returns the scenarios of a script's options and flags, at least one unless some are refused.
pub(super) fn scenarios(
    script: &Script<'_>,
    refused: &mut Vec<Refused>,
    notes: &mut Vec<String>,
) -> Vec<Scenario> {
    let named = script.options.get("scenarios").and_then(Value::as_object);
    let named = named.filter(|named| !named.is_empty());
    let Some(named) = named.filter(|_| !script.flags.replace_load()) else {
        let load = plain(script, &mut Options::of(script, refused));
        let function = named.and_then(|named| first_function(named.values()));
        let function = function.unwrap_or_else(|| "default".to_owned());
        if let Some(named) = named {
            let names: Vec<String> = named.keys().map(|name| format!("`{name}`")).collect();
            notes.push(format!(
                "--duration or --iterations replaces the scenarios {}: only the function `{function}` runs",
                names.join(", ")
            ));
        }
        let load = load.map(Scenario::default_of);
        let load = load.map(|load| Scenario { function, ..load });
        return load.into_iter().collect();
    };
    if script.flags.vus.is_some() {
        let message = "--vus can't be used with `scenarios`".to_owned();
        let help = "give --duration or --iterations, too, or change `vus` in the scenarios";
        refused.push(script.refused(&["scenarios"], message, help));
    }
    let mut all = Vec::new();
    for (name, options) in named {
        let mut options = Options::of_scenario(script, (name, options), refused);
        known::of_scenario(&mut options, notes);
        let after = options.time("startTime").unwrap_or_default();
        if let Some(load) = of_executor(name, named.len() > 1, &mut options) {
            all.push(Scenario {
                name: name.clone(),
                function: options.text("exec").unwrap_or("default").to_owned(),
                load,
                after,
            });
        }
        if options.get("env").is_some() {
            let message = format!("the scenario `{name}` has variables of its own (`env`)");
            let help = "give the values by -e, or run the scenarios one by one";
            options.refuse("env", message, help);
        }
    }
    refuse_ramps(script, &all, refused);
    all
}

/// Refuses scenarios whose load changes beside others: populations of a load change together.
fn refuse_ramps(script: &Script<'_>, all: &[Scenario], refused: &mut Vec<Refused>) {
    let ramps = |one: &Scenario| matches!(one.load, Load::Stages(_) | Load::Rates { .. });
    let is_sequence = |one: &Scenario| matches!(one.load, Load::Sequence { .. });
    for one in all.iter().filter(|one| ramps(one) || is_sequence(one)) {
        let name = &one.name;
        if all.len() > 1 {
            let message = format!(
                "the scenario `{name}` changes its load while other scenarios run, which is not supported"
            );
            let help = "give it a constant load, or run the scenarios one by one";
            refused.push(script.refused(&["scenarios", name], message, help));
        } else if !one.after.is_zero() {
            let message = format!("`startTime` has no effect in the only scenario `{name}`");
            let keys = ["scenarios", name, "startTime"];
            refused.push(script.refused(&keys, message, "leave `startTime` out"));
        }
    }
}

/// Returns the load of `vus`, `duration`, `iterations`, and `stages`, or of flags.
fn plain(script: &Script<'_>, options: &mut Options<'_>) -> Option<Load> {
    let flags = script.flags;
    let given = options.users("vus");
    let users = flags.vus.or(given).unwrap_or(1).max(1);
    let length = flags.duration.or(options.time("duration"));
    let iterations = flags.iterations.map(u64::from);
    let iterations = iterations.or(options.whole("iterations"));
    let stages = options.stages().filter(|_| !flags.replace_load());
    match (stages, length, iterations) {
        (Some(list), ..) => stages_of(&list, f64::from(users), 1.0, options).map(Load::Stages),
        (_, _, Some(sessions)) if flags.duration.is_none() => Some(Load::Sequence {
            users,
            sessions: sessions.max(1),
            shared: true,
            most: length.unwrap_or(LONGEST),
        }),
        (_, Some(hold), _) => Some(Load::Users { users, hold }),
        (_, None, _) => Some(Load::Sequence {
            users,
            sessions: 1,
            shared: false,
            most: LONGEST,
        }),
    }
}

/// Returns the load of a scenario by its executor.
fn of_executor(name: &str, beside_others: bool, options: &mut Options<'_>) -> Option<Load> {
    const TIME: &str = "duration: '30s'";
    let executor = options.text("executor").unwrap_or_default();
    match executor {
        "constant-vus" => {
            let users = options.users("vus");
            let hold = options.time("duration");
            Some(Load::Users {
                users: users.unwrap_or(1),
                hold: options.needed("duration", hold, TIME)?,
            })
        }
        "ramping-vus" => {
            let start = options.number("startVUs").unwrap_or(1.0);
            stages_needed(start, 1.0, options).map(Load::Stages)
        }
        "constant-arrival-rate" => {
            let per_s = per_s(options)?;
            let rate = options.number("rate");
            let hold = options.time("duration");
            let sessions = most_sessions(options);
            let rate = options.needed("rate", rate, "rate: 10");
            let hold = options.needed("duration", hold, TIME);
            Some(Load::Rate {
                per_s: rate? * per_s,
                hold: hold?,
                sessions,
            })
        }
        "ramping-arrival-rate" => {
            let per_s = per_s(options)?;
            let start = options.number("startRate").unwrap_or_default();
            let sessions = most_sessions(options);
            let stages = stages_needed(start, per_s, options)?;
            Some(Load::Rates { stages, sessions })
        }
        "per-vu-iterations" | "shared-iterations" if beside_others => {
            let message = format!(
                "the scenario `{name}` has a fixed number of iterations and can't run at the same time as other scenarios"
            );
            let help = "give it a duration (`constant-vus`), or run it alone";
            options.refuse("executor", message, help);
            None
        }
        "per-vu-iterations" | "shared-iterations" => {
            let most = options.time("maxDuration");
            Some(Load::Sequence {
                users: options.users("vus").unwrap_or(1),
                sessions: options.whole("iterations").unwrap_or(1),
                shared: executor == "shared-iterations",
                most: most.unwrap_or(LONGEST),
            })
        }
        other => {
            let message = format!("the executor `{other}` of the scenario `{name}` can't be run");
            let help =
                "use constant-vus, ramping-vus, constant-arrival-rate, or ramping-arrival-rate";
            options.refuse("executor", message, help);
            None
        }
    }
}

/// Returns what one session in a `timeUnit` is per second.
fn per_s(options: &mut Options<'_>) -> Option<f64> {
    let unit = match options.get("timeUnit") {
        None => Duration::from_secs(1),
        Some(_) => options.time("timeUnit")?,
    };
    if unit.is_zero() {
        options.refuse(
            "timeUnit",
            "`timeUnit` is 0".to_owned(),
            "write `timeUnit: '1s'`",
        );
        return None;
    }
    Some(1.0 / unit.as_secs_f64())
}

/// The most sessions at once of a rate.
fn most_sessions(options: &mut Options<'_>) -> Option<u64> {
    let before = options.whole("preAllocatedVUs");
    options.whole("maxVUs").or(before)
}

fn stages_needed(start: f64, scale: f64, options: &mut Options<'_>) -> Option<Vec<Stage>> {
    let list = options.stages();
    let example = "stages: [{ duration: '30s', target: 20 }]";
    let list = options.needed("stages", list, example)?;
    stages_of(&list, start * scale, scale, options)
}

/// Returns the stages of a list. Those without a length set the level at once.
fn stages_of(
    list: &[(f64, Duration)],
    start: f64,
    scale: f64,
    options: &mut Options<'_>,
) -> Option<Vec<Stage>> {
    let mut from = start;
    let mut stages = Vec::new();
    for (target, length) in list {
        let to = target * scale;
        if !length.is_zero() {
            let length = *length;
            stages.push(Stage { from, to, length });
        }
        from = to;
    }
    if stages.is_empty() {
        let message = "no stage has a length".to_owned();
        options.refuse("stages", message, "write `duration: '30s'` in one of them");
        return None;
    }
    Some(stages)
}

/// Returns the notes on scenarios that end before the load does.
pub(super) fn longer_than_asked(scenarios: &[Scenario]) -> impl Iterator<Item = String> {
    let end = scenarios.iter().map(Scenario::length).max();
    let end = end.unwrap_or_default();
    let shorter = scenarios.iter().filter(move |one| one.length() < end);
    shorter.map(move |one| {
        format!(
            "the scenario `{}` runs {}, not {} as the script says",
            one.name,
            match one.after.is_zero() {
                true => format!("for the whole load ({})", describe(end)),
                false => format!("until the load ends after {}", describe(end)),
            },
            describe(one.length().saturating_sub(one.after))
        )
    })
}

/// Returns the load as a study's key.
pub(super) fn load(scenarios: &[Scenario], prefix: &str) -> String {
    if let [one] = scenarios
        && one.after.is_zero()
    {
        return alone(&one.load);
    }
    let whole = scenarios.iter().map(Scenario::length).max();
    let mut out = format!(
        "load:\n  hold: {}\n  mix:\n",
        length(whole.unwrap_or_default())
    );
    for one in scenarios {
        let file = format!("./{}", one.workload_file(prefix));
        let _ = write!(
            out,
            "    - {{ population: {}, workload: {file}",
            one.population()
        );
        let _ = match &one.load {
            Load::Users { users, .. } => write!(out, ", users: {users}"),
            Load::Rate {
                per_s, sessions, ..
            } => write!(out, ", arrival: {}", arrival(Some(*per_s), *sessions)),
            // Refused before.
            Load::Stages(_) | Load::Rates { .. } | Load::Sequence { .. } => Ok(()),
        };
        if !one.after.is_zero() {
            let _ = write!(out, ", after: {}", length(one.after));
        }
        out.push_str(" }\n");
    }
    out
}

/// Returns the load of the only scenario.
fn alone(load: &Load) -> String {
    match load {
        Load::Users { users, hold } => {
            format!(
                "load: {{ users: {users}, ramp: 0s, hold: {} }}\n",
                length(*hold)
            )
        }
        Load::Sequence {
            users,
            sessions,
            shared,
            most,
        } => {
            let of = match (users, shared) {
                (1, _) => format!("sessions: {sessions}"),
                (_, false) => format!("users: {users}, sessions: {sessions}"),
                (_, true) => format!("users: {users}, sessions: {sessions}, shared: true"),
            };
            let most = length(*most);
            format!("load: {{ sequence: {{ {of} }}, hold: {most} }}\n")
        }
        Load::Rate {
            per_s,
            hold,
            sessions,
        } => format!(
            "load: {{ arrival: {}, ramp: 0s, hold: {} }}\n",
            arrival(Some(*per_s), *sessions),
            length(*hold)
        ),
        Load::Stages(stages) => format!("load: {{ stages: {} }}\n", levels(stages, "users")),
        Load::Rates { stages, sessions } => format!(
            "load: {{ stages: {}, arrival: {} }}\n",
            levels(stages, "rate"),
            arrival(None, *sessions)
        ),
    }
}

fn arrival(per_s: Option<f64>, sessions: Option<u64>) -> String {
    let rate = per_s.map(|rate| format!("rate: {}/s, ", decimal(rate)));
    let sessions = sessions.map(|most| format!(", sessions: {most}"));
    format!(
        "{{ {}spacing: constant{} }}",
        rate.unwrap_or_default(),
        sessions.unwrap_or_default()
    )
}

fn levels(stages: &[Stage], what: &str) -> String {
    let level = |level: f64| match what {
        "users" => level.round().to_string(),
        _ => format!("{}/s", decimal(level)),
    };
    let mut before = 0.0;
    let one = |stage: &Stage| {
        let (to, time) = (level(stage.to), length(stage.length));
        let is_jump = level(stage.from) != level(before);
        before = stage.to;
        match level(stage.from) {
            from if from == to => format!("{{ {what}: {to}, for: {time} }}"),
            from if is_jump => format!("{{ {what}: {to}, from: {from}, over: {time} }}"),
            _ => format!("{{ {what}: {to}, over: {time} }}"),
        }
    };
    let all: Vec<String> = stages.iter().map(one).collect();
    format!("[{}]", all.join(", "))
}

/// A time as a study writes it.
fn length(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis().max(1)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
