//! Parse ∘ print: any file, printed as YAML, reads as the same.

use lab_language::{
    BasicFile, Decode, FilesystemFile, OneOrMany, Problems, SourceFile, Span, node,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::abort::{AbortFile, AbortForFile};
use super::arrival::ArrivalFile;
use super::attach::AttachFile;
use super::checks::BothFile;
use super::command::{CommandFile, ReadyFile, StopFile};
use super::find::{FindFile, UsersFile};
use super::generators::{AwayFile, GeneratorsFile, LabelledFile, WhichFile};
use super::load::{LoadFile, SequenceFile, StageFile};
use super::mix::PopulationFile;
use super::reach::{HttpFile, SpeechFile, TlsFile};
use super::system::{GroupwareFile, MailFile, SystemFile};
use super::*;

fn at<T>(value: T) -> At<T> {
    let file = SourceFile {
        name: "".into(),
        text: "".into(),
    };
    At {
        value,
        span: Span::new(&file, 0..0),
    }
}

fn file(text: &str) -> SourceFile {
    SourceFile {
        name: "printed.yaml".into(),
        text: text.into(),
    }
}

#[track_caller]
fn check<T: Decode + PartialEq + std::fmt::Debug + serde::Serialize>(value: &T) {
    let printed = serde_saphyr::to_string(value).unwrap();
    let root = node::parse(&file(&printed)).unwrap_or_else(|e| panic!("{}\n{printed}", e.message));
    let mut problems = Problems::default();
    let read = T::decode(&root, &mut problems);
    let read = problems
        .finish(read)
        .unwrap_or_else(|e| panic!("{:?}\n{printed}", e.problems()));
    assert_eq!(&read, value, "{printed}");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        "[ -~]{0,20}",
        "\\PC{0,12}",
        "[a\n :#-]{0,12}",
        prop::sample::select(vec![
            "",
            "~",
            "null",
            "true",
            "yes",
            "no",
            "12",
            "-1",
            "1e3",
            "0x1f",
            "1.5",
            ".inf",
            "- a",
            "a: b",
            "{{ name }}",
            "'",
            "\"",
            "\\",
            "#x",
            "&a",
            "*a",
            "!t",
            "| ",
            "> ",
            "%",
            "@",
            "`",
            "?",
            "---",
            "2026-01-05",
            "<<",
            " lead",
            "trail ",
            "\t",
            "\r\n",
            "\u{85}",
            "\u{feff}x",
            "é",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Boxed: the parts of a strategy lie on the stack, and a study has many.
fn scalar() -> BoxedStrategy<At<Scalar>> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::Int),
        (-1e9..1e9f64).prop_map(|value| Scalar::Float(value.into())),
        text().prop_map(Scalar::Text),
    ]
    .prop_map(at)
    .boxed()
}

/// Keys are made different from each other; a mapping may hold each once.
fn table<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Table<T>> {
    vec((text(), value), 0..4).prop_map(|entries| {
        let key = |(i, (name, value)): (usize, (String, T))| (at(format!("{name}{i}k")), value);
        Table(entries.into_iter().enumerate().map(key).collect())
    })
}

fn one_or_many() -> impl Strategy<Value = OneOrMany> {
    prop_oneof![
        scalar().prop_map(OneOrMany::One),
        vec(scalar(), 0..3).prop_map(OneOrMany::Many)
    ]
}

fn storage() -> impl Strategy<Value = StorageFile> {
    let made = (
        (scalar(), scalar(), option::of(scalar())),
        option::of(vec(scalar(), 0..3).prop_map(at)),
        option::of(scalar()),
    );
    prop_oneof![
        scalar().prop_map(StorageFile::Folder),
        made.prop_map(|((filesystem, size, folder), mkfs, options)| {
            StorageFile::Filesystem(Box::new(FilesystemFile {
                filesystem,
                size,
                folder,
                mkfs,
                options,
            }))
        }),
    ]
}

prop_compose! {
    fn groupware()(
        http_threads in option::of(scalar()),
        requests_at_once in option::of(scalar()),
        mailbox_pad in option::of(scalar()),
        engine in option::of(scalar()),
        lookup_layout in option::of(scalar()),
        mail in option::of((scalar(), option::of(scalar())).prop_map(|(messages, size)| MailFile { messages, size })),
        kernel in table(scalar()),
        (cpus, storage) in (option::of(scalar()), option::of(storage().prop_map(at))),
    ) -> SystemFile {
        let groupware = Some(GroupwareFile {
            http_threads, requests_at_once, mailbox_pad, engine, lookup_layout, mail,
        });
        SystemFile { groupware, command: None, processes: None, attach: None, kernel, on: cpus.clone(), cpus, storage, scheme: None, tls: None, resolve: Table::default(), http: None, ask: Table::default() }
    }
}

prop_compose! {
    fn command()(
        start in vec(scalar(), 0..4).prop_map(at),
        (env, files, kernel) in (table(scalar()), table(scalar()), table(scalar())),
        (folder, port) in (option::of(scalar()), option::of(scalar())),
        (http, status, log, within) in (
            option::of(scalar()), option::of(scalar()), option::of(scalar()), option::of(scalar()),
        ),
        reset in option::of(vec(scalar(), 0..4).prop_map(at)),
        (signal, grace) in (option::of(scalar()), option::of(scalar())),
        (provision, fill) in (vec(action(), 0..2), vec(action(), 0..2)),
        keep_state in option::of((scalar(), option::of(scalar()))
            .prop_map(|(folder, alike)| KeepFile { folder, alike })),
        (disk_per_user, scheme, other) in (option::of(scalar()), option::of(scalar()), option::of("[a-z]{1,8}")),
        (on, stored) in (option::of(scalar()), option::of(storage().prop_map(at))),
    ) -> SystemFile {
        let ready = Some(ReadyFile { http, status, log, within });
        let stop = Some(StopFile { signal, grace });
        let command = CommandFile {
            start, env, folder, files, port, ready, reset, stop, provision, fill, keep_state, disk_per_user,
            on: None, kernel: Table::default(), cpus: None, storage: None,
        };
        let apart = CommandFile { on: on.clone(), kernel: kernel.clone(), cpus: on, storage: stored, ..command.clone() };
        let named = |name: &str| (at(name.to_owned()), apart.clone());
        let processes = other.as_ref().map(|other| at(Table(vec![named(other), named("last_one")])));
        SystemFile {
            groupware: None,
            ask: Table::default(),
            command: processes.is_none().then_some(command),
            processes,
            attach: None,
            kernel,
            cpus: None,
            on: None,
            storage: None,
            scheme,
            tls: None,
            resolve: Table::default(),
            http: None,
        }
    }
}

fn action() -> BoxedStrategy<ActionFile> {
    let command = vec(scalar(), 1..3).prop_map(|words| ActionFile {
        command: Some(at(words)),
        ..ActionFile::default()
    });
    let basic = (scalar(), scalar());
    let basic = basic.prop_map(|(username, password)| BasicFile { username, password });
    let parts = (option::of(basic), option::of(scalar()));
    let request = (scalar(), parts, option::of(scalar()));
    let request = request.prop_map(
        |(request, (basic_auth, text), users_per_request)| ActionFile {
            request: Some(request),
            basic_auth,
            text,
            users_per_request,
            ..ActionFile::default()
        },
    );
    prop_oneof![command, request].boxed()
}

prop_compose! {
    fn tls()(
        (ca, certificate, key) in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
        (server_name, insecure) in (option::of(scalar()), option::of(scalar())),
    ) -> TlsFile {
        TlsFile { ca, certificate, key, server_name, insecure }
    }
}

fn http() -> BoxedStrategy<HttpFile> {
    let full = (scalar(), option::of(scalar()), option::of(scalar()));
    let full = full.prop_map(|(version, share, connections)| {
        HttpFile::Full(Box::new(SpeechFile {
            version,
            share,
            connections,
        }))
    });
    prop_oneof![scalar().prop_map(HttpFile::Version), full].boxed()
}

prop_compose! {
    fn attach()(
        url in scalar(),
        (pid, node_exporter) in (option::of(scalar()), option::of(scalar())),
        reset in option::of(vec(scalar(), 0..4).prop_map(at)),
        kernel in table(scalar()),
        (provision, fill) in (vec(action(), 0..2), vec(action(), 0..2)),
        tls in option::of(tls()),
        resolve in table(scalar()),
        http in option::of(http()),
    ) -> SystemFile {
        let attach = Some(AttachFile { url, pid, node_exporter, reset, provision, fill });
        SystemFile { groupware: None, command: None, processes: None, attach, kernel, cpus: None, on: None, storage: None, scheme: None, tls, resolve, http, ask: Table::default() }
    }
}

fn system() -> BoxedStrategy<SystemFile> {
    prop_oneof![groupware().boxed(), command().boxed(), attach().boxed()].boxed()
}

prop_compose! {
    fn find()(
        (min, max) in (option::of(scalar()), scalar()),
        subject_to in table(vec(scalar(), 0..3)).prop_map(at),
        (resolution, trials, safe) in (
            option::of(scalar()), option::of(scalar()), option::of(scalar()),
        ),
    ) -> FindFile {
        FindFile { users: UsersFile { min, max }, subject_to, resolution, trials, safe }
    }
}

type Variants = At<Table<At<SystemFile>>>;

/// A study has a system or variants.
fn systems() -> BoxedStrategy<(Option<At<SystemFile>>, Option<Variants>)> {
    prop_oneof![
        system().prop_map(|system| (Some(at(system)), None)),
        table(system().prop_map(at)).prop_map(|variants| (None, Some(at(variants)))),
    ]
    .boxed()
}

prop_compose! {
    fn stage()(
        (stage, users, rate) in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
        (from, stays, ramps) in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
    ) -> At<StageFile> {
        at(StageFile { stage, users, rate, from, stays, ramps })
    }
}

prop_compose! {
    fn population()(
        (population, workload, load) in (scalar(), option::of(scalar()), scalar()),
        kind in 0..5,
        after in option::of(scalar()),
        parameters in table(scalar()),
    ) -> At<PopulationFile> {
        let arrival = ArrivalFile { rate: Some(load.clone()), spacing: None, connections: None, sessions: None };
        let column = load.clone();
        let timeline = TimelineFile { column, unit: None, scale: None, from: None, to: None };
        at(PopulationFile {
            population,
            workload,
            share: (kind == 0).then(|| load.clone()),
            users: (kind == 1).then_some(load),
            arrival: (kind == 2).then(|| at(arrival)),
            timeline: (kind == 4).then(|| at(timeline)),
            after,
            parameters,
        })
    }
}

fn abort() -> impl Strategy<Value = AbortFile> {
    let both = (scalar(), option::of(scalar()));
    prop_oneof![
        scalar().prop_map(AbortFile::Limit),
        both.prop_map(|(when, lasts)| AbortFile::For(AbortForFile { when, lasts })),
    ]
}

fn generators() -> impl Strategy<Value = GeneratorsFile> {
    let labelled = (scalar(), option::of(scalar()));
    let which = prop_oneof![
        scalar().prop_map(WhichFile::Any),
        vec(scalar(), 0..3).prop_map(|names| WhichFile::Named(at(names))),
        labelled.prop_map(|(label, count)| WhichFile::Labelled(LabelledFile { label, count })),
    ];
    let weights = option::of(vec(scalar(), 0..3).prop_map(at));
    let away = (which, weights).prop_map(|(agents, weights)| AwayFile { agents, weights });
    prop_oneof![
        scalar().prop_map(GeneratorsFile::Processes),
        away.prop_map(|away| GeneratorsFile::Away(Box::new(away))),
    ]
}

prop_compose! {
    fn load()(
        kind in 0..5,
        stages in vec(stage(), 0..4),
        mix in option::of(vec(population(), 0..3)),
        main in scalar(),
        spacing in option::of(scalar()),
        connections in option::of(scalar()),
        (ramp, hold, timeout, is_bound, generators) in (
            option::of(scalar()),
            option::of(scalar()),
            option::of(scalar()),
            any::<bool>(),
            option::of(generators()),
        ),
        (is_shared, shared, sources) in (
            any::<bool>(), option::of(scalar()), option::of(one_or_many()),
        ),
    ) -> LoadFile {
        let (sessions, connections) = match is_shared {
            true => (connections, None),
            false => (None, connections),
        };
        let arrival = ArrivalFile { rate: Some(main.clone()), spacing, connections, sessions };
        let is_staged = kind == 4;
        LoadFile {
            stages: is_staged.then(|| at(stages)),
            mix: mix.filter(|_| kind != 2).map(at),
            timeline: None,
            users: (kind == 0).then(|| main.clone()),
            arrival: (kind == 1).then(|| at(arrival)),
            sequence: (kind == 2).then(|| at(SequenceFile { sessions: main.clone(), users: Some(main), shared: None })),
            ramp: ramp.filter(|_| !is_staged),
            hold: hold.filter(|_| !is_staged),
            timeout: timeout.clone().filter(|_| !is_bound),
            time_limit: timeout.filter(|_| is_bound),
            generators: generators.map(at),
            connections: shared,
            sources,
        }
    }
}

prop_compose! {
    fn matrix()(
        factors in table(vec(scalar(), 0..4).prop_map(at)),
        zip in vec(vec(scalar(), 0..3).prop_map(at), 0..2),
        exclude in vec(table(scalar()).prop_map(at), 0..2),
        include in vec(table(scalar()).prop_map(at), 0..2),
    ) -> MatrixFile {
        MatrixFile { factors, zip, exclude, include }
    }
}

fn limit() -> impl Strategy<Value = LimitFile> {
    let both = (option::of(scalar()), option::of(scalar()));
    prop_oneof![
        scalar().prop_map(LimitFile::Invalid),
        both.prop_map(|(warn, invalid)| LimitFile::Both(BothFile { warn, invalid })),
    ]
}

fn profile() -> impl Strategy<Value = ProfileFile> {
    let with = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(vec(scalar(), 0..3).prop_map(at)),
    );
    prop_oneof![
        scalar().prop_map(ProfileFile::Switch),
        with.prop_map(|(rate, frames, budget, waits, idle)| {
            ProfileFile::With(Box::new(ProfileWithFile {
                rate,
                frames,
                budget,
                waits,
                idle,
            }))
        }),
    ]
}

prop_compose! {
    fn study()(
        (study, title, workload) in (scalar(), scalar(), scalar()),
        about in option::of(scalar()),
        matrix in option::of(matrix().prop_map(at)),
        ((system, variants), load) in (systems(), load().boxed()),
        parameters in table(scalar()),
        find in option::of(find().prop_map(at).boxed()),
        (trials, repeats, order, seed, dates_from) in (
            option::of(scalar()), option::of(scalar()), option::of(scalar()), option::of(scalar()), option::of(scalar()),
        ),
        thresholds in table(vec(scalar(), 0..3)),
        (published, abort_on) in (option::of(one_or_many()), option::of(vec(abort(), 0..3))),
        checks in option::of(table(limit()).prop_map(ChecksFile)),
        (secrets, requires) in (
            option::of(one_or_many()),
            option::of((one_or_many(), option::of(one_or_many()))),
        ),
        (smallest_difference, decides, control, duet, raw_baseline) in (
            option::of(scalar()), option::of(scalar()), option::of(scalar()), option::of(scalar()), option::of(scalar()),
        ),
        profile in option::of(profile()),
    ) -> StudyFile {
        StudyFile {
            study, title, about, workload, matrix, parameters, system, variants, find,
            load: at(load), trials, repeats, order, seed,
            dates_from, thresholds, abort_on, checks, smallest_difference, decides, control, duet, raw_baseline,
            profile, secrets,
            requires: requires.map(|(programs, debian)| RequiresFile { programs, debian }),
            published,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_printed_study_reads_as_the_same(study in study()) {
        check(&study);
    }
}
