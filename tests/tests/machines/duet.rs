//! Two variants at the same time on another machine: one agent runs both systems side by side, counts and ends each by
//! itself, and loses them together.

use std::fs;
use std::thread::available_parallelism;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::wait_until;

use crate::stage::{DEADLINE, Stage, record, samples_of};

/// The same server under two names.
fn study(duet: &str, load: &str) -> String {
    let variant = |name: &str| {
        format!(
            "  {name}:\n    on: db\n    command:\n      start: [\"{{{{ plimsoll }}}}\", serve, --listen, \
             \"{{{{ address }}}}:{{{{ port }}}}\", --engine, memory, --data, \"{{{{ scratch }}}}/store\", \
             --expose-without-tls]\n      ready: {{ http: /healthz, within: 120s }}\n"
        )
    };
    format!(
        "study: far\ntitle: One server, twice\nworkload: far.workload.yaml\nvariants:\n{}{}load: {load}\ntrials: 1\n\
         repeats: 0\nduet: {duet}\n",
        variant("a"),
        variant("b")
    )
}

fn has_one_core() -> bool {
    let one = available_parallelism().is_ok_and(|cores| cores.get() < 2);
    if one {
        println!("SKIPPED: a duet needs two cores");
    }
    one
}

#[test]
fn both_systems_of_a_duet_are_on_another_machine() {
    if has_one_core() {
        return;
    }
    let Some(stage) = Stage::start() else { return };
    for (name, duet) in [("together", "true"), ("apart", "apart")] {
        let output = stage.output(name, &study(duet, "{ users: 4, ramp: 1s, hold: 3s }"));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let run = stage.path(name);
        assert!(run.join("trials/002/trial.json").exists(), "{told}");
        for id in [1, 2] {
            let record = record(&run, id);
            assert_eq!(record["end"]["how"], "complete", "{record}");
            assert_eq!(record["duet"]["partner"], 3 - id);
            assert_eq!(record["duet"]["together"] == true, name == "together");
            assert_eq!(record["circumstances"]["system_agent"]["name"], "db");
            let there = &record["circumstances"]["system_host"];
            let (all, own) = (there["cores"].as_u64(), there["system_cores"].as_u64());
            assert!(own > Some(0) && own <= all, "{there}");
            for column in [
                "system.cpu_ms_total",
                "beside.cpu_ms_total",
                "host.memory_available_mb",
            ] {
                let samples = samples_of(&run, id, column);
                assert!(samples > 1, "{column}: {samples} samples");
            }
            let log = run.join(format!("trials/{id:03}/system.log"));
            assert!(!fs::read(log).expect("its output").is_empty());
        }
        stage.nothing_is_left();
    }
}

#[test]
fn both_trials_of_a_duet_are_lost_with_their_agent() {
    if has_one_core() {
        return;
    }
    let Some(mut stage) = Stage::start() else {
        return;
    };
    let mut conductor = stage.begin("lost", &study("true", "{ users: 2, hold: 10m }"));
    stage.kill_agent();
    let verdict = |id: u32| stage.path(&format!("lost/trials/{id:03}/trial.json"));
    wait_until(DEADLINE, "both trials have their verdicts", || {
        [1, 2].into_iter().all(|id| verdict(id).exists())
    });
    // Stops the conductor before it starts another pair.
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    conductor.wait().expect("it ends");
    for id in [1, 2] {
        let record = record(&stage.path("lost"), id);
        assert_eq!(record["end"]["how"], "agent_lost", "{record}");
    }
    stage.start_agent(true);
    stage.nothing_is_left();
}
