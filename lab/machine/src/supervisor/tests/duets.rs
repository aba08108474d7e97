//! Two systems of a duet, over one connection to their agent.

use super::*;

/// Two systems of a duet, over one connection.
struct Duet {
    afars: [RemoteMachine; 2],
    served: JoinHandle<Result<(), String>>,
}

impl Duet {
    fn new(stage: &Stage, scripts: [&str; 2], change: impl Fn(&mut Setup)) -> Self {
        let (peer, served) = stage.way();
        let peers = crate::both(peer).unwrap().into_iter();
        let mut trials = peers.zip(Slot::BOTH).zip(scripts).zip(1..);
        let mut next = || {
            let (((peer, slot), script), trial) = trials.next().unwrap();
            let beside = Some(CoreSharing::Shared);
            let mut setup = Setup {
                trial,
                core_sharing: beside,
                ..setup(script)
            };
            change(&mut setup);
            let output = stage.folder.path().join(format!("output-{trial}"));
            RemoteMachine::new((peer, slot), Some(setup), output).unwrap()
        };
        let afars = [next(), next()];
        Self { afars, served }
    }

    fn end(self) -> Result<(), String> {
        drop(self.afars);
        self.served.join().unwrap()
    }
}

#[test]
fn two_systems_of_a_duet_are_beside_each_other_and_nothing_stays() {
    let stage = Stage::new();
    let mut duet = Duet::new(&stage, ["exec sleep 600", "exec sleep 600"], |_| ());
    let [left, right] = &mut duet.afars;
    let started = [
        left.start(&never()).unwrap(),
        right.start(&never()).unwrap(),
    ];
    assert_ne!(started[0].address.port(), started[1].address.port());
    let folder = |of: &Started| PathBuf::from(&of.setting.scratch);
    assert_ne!(folder(&started[0]), folder(&started[1]));
    for afar in [&mut *left, &mut *right] {
        let counts = afar
            .count(shared(), Duration::from_millis(20), DEADLINE)
            .unwrap();
        let has = |name: &str| counts.columns.iter().any(|column| column == name);
        assert!(
            has("system.threads") && has("beside.threads"),
            "{:?}",
            counts.columns
        );
        let mut rows = Vec::new();
        until("counters come", || {
            rows.extend(afar.rows());
            rows.len() >= 2
        });
    }
    // One ends, and the other continues.
    assert_eq!(left.stop().unwrap(), None);
    assert!(!folder(&started[0]).exists() && folder(&started[1]).exists());
    right.look().unwrap();
    assert_eq!(right.stop().unwrap(), None);
    for number in [1, 2] {
        let output = stage.folder.path().join(format!("output-{number}"));
        let said = fs::read_to_string(output).unwrap();
        assert_eq!(said.matches("is ready").count(), 1, "{said}");
    }
    duet.end().unwrap();
    stage.is_as_it_was();
}

#[test]
fn one_that_ends_by_itself_is_told_of_alone() {
    let stage = Stage::new();
    let scripts = [
        "while [ ! -e go ]; do sleep 0.01; done; exit 3",
        "exec sleep 600",
    ];
    let mut duet = Duet::new(&stage, scripts, |_| ());
    let [left, right] = &mut duet.afars;
    let started = left.start(&never()).unwrap();
    right.start(&never()).unwrap();
    fs::write(PathBuf::from(&started.setting.scratch).join("go"), "").unwrap();
    let mut failed = None;
    until("it ends", || {
        failed = left.look().err();
        failed.is_some()
    });
    assert!(matches!(failed, Some(Failed::System(_))), "{failed:?}");
    right.look().unwrap();
    // It did not end by the order to stop, which is noted.
    assert!(left.stop().is_ok());
    assert_eq!(right.stop().unwrap(), None);
    duet.end().unwrap();
    stage.is_as_it_was();
}

#[test]
fn both_end_with_the_way_to_them() {
    let stage = Stage::new();
    let mut duet = Duet::new(&stage, ["exec sleep 600", "exec sleep 600"], |_| ());
    let [left, right] = &mut duet.afars;
    left.start(&never()).unwrap();
    right.start(&never()).unwrap();
    // A malformed order to one system ends both.
    assert!(left.ask_raw(b"shell").is_ok());
    for afar in [left, right] {
        let mut failed = None;
        until("it is lost", || {
            failed = afar.look().err();
            failed.is_some()
        });
        assert!(matches!(failed, Some(Failed::Lost(_))), "{failed:?}");
    }
    assert!(duet.end().is_err(), "nonsense is told");
    stage.is_as_it_was();
}

#[test]
fn who_comes_to_a_system_agrees_with_it() {
    let stage = Stage::new();
    let refused = |change: &dyn Fn(&mut Setup)| {
        let of_second = |setup: &mut Setup| {
            if setup.trial == 2 {
                change(setup);
            }
        };
        let mut duet = Duet::new(&stage, ["exec sleep 600", "exec sleep 600"], of_second);
        let [left, right] = &mut duet.afars;
        left.start(&never()).unwrap();
        let second = right.start(&never());
        let Err(Failed::Fatal(error)) = second else {
            panic!("{second:?}");
        };
        left.look().unwrap();
        duet.end().unwrap();
        stage.is_as_it_was();
        error.to_string()
    };
    let alone = refused(&|setup| setup.core_sharing = None);
    assert!(alone.contains("has a system here already"), "{alone}");
}

#[test]
fn each_of_two_that_are_apart_has_its_half_of_the_cores() {
    let stage = Stage::new();
    let apart = Setup {
        core_sharing: Some(CoreSharing::Split),
        ..setup("exit")
    };
    let cores = Slot::BOTH.map(|slot| stage.station.session.cores_of(&apart, slot));
    let all = &stage.station.session.cores;
    if all.len() > 1 {
        assert!(
            cores[0].iter().all(|core| !cores[1].contains(core)),
            "{cores:?}"
        );
        assert_eq!(cores[0].len(), cores[1].len());
    }
    let together = Setup {
        core_sharing: Some(CoreSharing::Shared),
        ..apart
    };
    assert_eq!(&stage.station.session.cores_of(&together, Slot::Right), all);
}
