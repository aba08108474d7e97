//! The load of a script: k6's options as scenarios, and those as the load of a study.

use std::fmt::Write as _;
use std::time::Duration;

use lab_units::yaml::short_name;
use serde_json::Value;

use crate::script::{Refused, Script};

/// k6 runs a scenario of iterations no longer unless it says so.
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
    /// Sessions of one user, in a row.
    Sequence {
        sessions: u64,
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
    to: f64,
    length: Duration,
    holds: bool,
}

impl Scenario {
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

/// Returns the scenarios of a script's options and flags, at least one.
pub(super) fn scenarios(script: &Script<'_>, refused: &mut Vec<Refused>) -> Vec<Scenario> {
    let flags = script.flags;
    let is_given = flags.vus.is_some() || flags.duration.is_some() || flags.iterations.is_some();
    let named = script.options.get("scenarios").and_then(Value::as_object);
    let Some(named) = named.filter(|named| !named.is_empty() && !is_given) else {
        return plain(script, refused).into_iter().collect();
    };
    let mut all = Vec::new();
    for (name, options) in named {
        if let Some(load) = of_executor(script, (name, options), refused) {
            let function = options.get("exec").and_then(Value::as_str);
            all.push(Scenario {
                name: name.clone(),
                function: function.unwrap_or("default").to_owned(),
                load,
                after: time(options.get("startTime")).unwrap_or_default(),
            });
        }
        if options.get("env").is_some() {
            let message = format!("the scenario `{name}` has variables of its own (`env`)");
            let help = "give the values by -e, or run the scenarios one by one";
            refused.push(script.refused("env", message, help));
        }
    }
    refuse_ramps(script, &all, refused);
    all
}

/// Refuses scenarios whose load changes beside others: populations of a load change together.
fn refuse_ramps(script: &Script<'_>, all: &[Scenario], refused: &mut Vec<Refused>) {
    let ramps = |one: &&Scenario| matches!(one.load, Load::Stages(_) | Load::Rates { .. });
    for one in all.iter().filter(ramps) {
        if all.len() > 1 {
            let message = format!("the scenario `{}` changes its load beside others", one.name);
            let help = "give it a constant load, or run the scenarios one by one";
            refused.push(script.refused(&one.name, message, help));
        } else if !one.after.is_zero() {
            let message = format!(
                "the scenario `{}` starts later, and is the only one",
                one.name
            );
            refused.push(script.refused("startTime", message, "leave `startTime` out"));
        }
    }
}

/// Returns the scenario of `vus`, `duration`, `iterations`, and `stages`, or of flags.
fn plain(script: &Script<'_>, refused: &mut Vec<Refused>) -> Option<Scenario> {
    let (options, flags) = (script.options, script.flags);
    let number = |key: &str| options.get(key).and_then(Value::as_u64);
    let given = number("vus").and_then(|n| u32::try_from(n).ok());
    let users = flags.vus.or(given).unwrap_or(1).max(1);
    let length = flags.duration.or_else(|| time(options.get("duration")));
    let iterations = flags.iterations.map(u64::from);
    let iterations = iterations.or_else(|| number("iterations"));
    let stages = options.get("stages").and_then(Value::as_array);
    let by_flags = flags.duration.is_some() || flags.iterations.is_some();
    let load = match (stages.filter(|_| !by_flags), length, iterations) {
        (Some(list), ..) if flags.vus.is_none() => Load::Stages(stages_of(list, 0.0, 1.0)),
        (_, _, Some(sessions)) if flags.duration.is_none() => {
            sequence(script, (users, sessions), length, refused)?
        }
        (_, Some(hold), _) => Load::Users { users, hold },
        (_, None, _) => sequence(script, (users, u64::from(users)), None, refused)?,
    };
    Some(Scenario {
        name: "default".to_owned(),
        function: "default".to_owned(),
        load,
        after: Duration::ZERO,
    })
}

/// Returns a number of sessions, which only one user can run.
fn sequence(
    script: &Script<'_>,
    (users, sessions): (u32, u64),
    most: Option<Duration>,
    refused: &mut Vec<Refused>,
) -> Option<Load> {
    if users > 1 {
        let message =
            format!("a fixed number of iterations is run by one user, and this is {users}");
        let help = "give a duration instead: `--duration 30s`, or `duration: '30s'`";
        refused.push(script.refused("iterations", message, help));
        return None;
    }
    Some(Load::Sequence {
        sessions: sessions.max(1),
        most: most.unwrap_or(LONGEST),
    })
}

/// Returns the load of a scenario by its executor.
fn of_executor(
    script: &Script<'_>,
    (name, options): (&str, &Value),
    refused: &mut Vec<Refused>,
) -> Option<Load> {
    let number = |key: &str| options.get(key).and_then(Value::as_f64);
    let whole = |key: &str| options.get(key).and_then(Value::as_u64);
    let users = u32::try_from(whole("vus").unwrap_or(1).max(1)).unwrap_or(u32::MAX);
    let hold = time(options.get("duration")).unwrap_or(Duration::from_secs(30));
    let unit = time(options.get("timeUnit")).unwrap_or(Duration::from_secs(1));
    let per_s = |rate: f64| rate / unit.as_secs_f64().max(1e-9);
    let sessions = whole("maxVUs").or_else(|| whole("preAllocatedVUs"));
    let stages = options.get("stages").and_then(Value::as_array);
    let stages = stages.map_or(&[][..], Vec::as_slice);
    let executor = options.get("executor").and_then(Value::as_str);
    match executor.unwrap_or_default() {
        "constant-vus" => Some(Load::Users { users, hold }),
        "ramping-vus" => {
            let start = number("startVUs").unwrap_or(0.0);
            Some(Load::Stages(stages_of(stages, start, 1.0)))
        }
        "constant-arrival-rate" => Some(Load::Rate {
            per_s: per_s(number("rate").unwrap_or(1.0)),
            hold,
            sessions,
        }),
        "ramping-arrival-rate" => {
            let start = per_s(number("startRate").unwrap_or(0.0));
            let scale = 1.0 / unit.as_secs_f64().max(1e-9);
            Some(Load::Rates {
                stages: stages_of(stages, start, scale),
                sessions,
            })
        }
        "per-vu-iterations" | "shared-iterations" => {
            let most = time(options.get("maxDuration"));
            let sessions = whole("iterations").unwrap_or(1);
            if script
                .options
                .get("scenarios")
                .and_then(Value::as_object)
                .is_some_and(|all| all.len() > 1)
            {
                let message = format!("the scenario `{name}` of iterations runs beside others");
                let help = "give it a duration (`constant-vus`), or run it alone";
                refused.push(script.refused(name, message, help));
                return None;
            }
            sequence(script, (users, sessions), most, refused)
        }
        other => {
            let message = format!("the executor `{other}` of the scenario `{name}` can't be run");
            let help =
                "use constant-vus, ramping-vus, constant-arrival-rate, or ramping-arrival-rate";
            refused.push(script.refused(other, message, help));
            None
        }
    }
}

/// Returns the stages of a list. Those without a length set the level at once.
fn stages_of(list: &[Value], start: f64, scale: f64) -> Vec<Stage> {
    let mut level = start;
    let mut stages = Vec::new();
    for one in list {
        let target = one.get("target").and_then(Value::as_f64).unwrap_or(0.0) * scale;
        let length = time(one.get("duration")).unwrap_or_default();
        if !length.is_zero() {
            stages.push(Stage {
                to: target,
                length,
                holds: (target - level).abs() < 1e-9,
            });
        }
        level = target;
    }
    stages
}

/// Returns a time of k6: `1m30s`, `500ms`, or a number of milliseconds.
fn time(value: Option<&Value>) -> Option<Duration> {
    match value? {
        Value::Number(ms) => Some(Duration::from_secs_f64(ms.as_f64()?.max(0.0) / 1e3)),
        Value::String(text) => parse_time(text),
        _ => None,
    }
}

/// Parses `1h2m3.5s`, `500ms`, or a number of milliseconds.
#[must_use]
pub(crate) fn parse_time(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Ok(ms) = rest.parse::<f64>() {
        return (ms >= 0.0).then(|| Duration::from_secs_f64(ms / 1e3));
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        sum += number * unit;
        rest = &rest[end..];
    }
    (sum.is_finite() && sum < 1e9).then(|| Duration::from_secs_f64(sum))
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
        Load::Sequence { sessions, most } => format!(
            "load: {{ sequence: {{ sessions: {sessions} }}, hold: {} }}\n",
            length(*most)
        ),
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
    let rate = per_s.map(|rate| format!("rate: {}/s, ", amount(rate)));
    let sessions = sessions.map(|most| format!(", sessions: {most}"));
    format!(
        "{{ {}spacing: constant{} }}",
        rate.unwrap_or_default(),
        sessions.unwrap_or_default()
    )
}

fn levels(stages: &[Stage], what: &str) -> String {
    let unit = if what == "rate" { "/s" } else { "" };
    let one = |stage: &Stage| {
        let how = if stage.holds { "for" } else { "over" };
        let to = match what {
            "users" => format!("{}", stage.to.round()),
            _ => amount(stage.to),
        };
        format!("{{ {what}: {to}{unit}, {how}: {} }}", length(stage.length))
    };
    let all: Vec<String> = stages.iter().map(one).collect();
    format!("[{}]", all.join(", "))
}

fn amount(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time as a study writes it.
fn length(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis().max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_k6() {
        for (text, ms) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5h", 5_400_000),
            ("250", 250),
        ] {
            assert_eq!(parse_time(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "1x", "s", "-1s"] {
            assert!(bad.is_empty() || parse_time(bad).is_none(), "{bad}");
        }
    }
}
