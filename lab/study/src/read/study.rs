//! A study file judged, with the workload and the figures that it names.

use std::sync::Arc;

use jiff::civil::Date;
use lab_language::settings::Settings;
use lab_language::{
    Files, LoadError, Problems, Secrets, WorkloadFile, check_short_name, decode, first_file,
    node::{self, Node},
    parsed, secrets, switch, template_words, units, unknown_name,
};
use lab_workload::{Descriptors, JsonSchema, Key, ScriptSource};

use super::loaded::Loaded;
use super::parameters::check_cells;
use super::parts::Parts;
use super::system;
use super::thresholds::{thresholds, with_error_rate};
use super::{
    abort, checks, decides, demand, duet, find, matrix, meaning, mix, overrides, parameters,
    profile, published, requires, unused,
};
use crate::cell::CellTemplate;
use crate::file::{At, Scalar, StudyFile, SystemFile};
use crate::model::{
    DEFAULT_DATES_FROM, Factor, MAX_TRIALS, Order, Published, REPEATS, SMALLEST_DIFFERENCE, Study,
    StudyWorkload, Threshold, Workload,
};

/// The seed of a study that names none.
const DEFAULT_SEED: u64 = 1;

/// Loads a study from its parsed file.
pub(super) fn load(
    path: &str,
    files: &dyn Files,
    (bytes, root): (Vec<u8>, Node),
    sets: &[(String, String)],
    age: unused::Age,
) -> Result<Loaded, LoadError> {
    let mut secrets = Secrets::named(secrets::listed(&root));
    let places = secrets::learn(&root, &mut secrets);
    let bytes = secrets::without(&bytes, places);
    judged(path, files, (bytes, root), (sets, &mut secrets), age)
        .map_err(|error| error.without(&secrets))
        .map(|mut loaded| {
            for (_, bytes) in &mut loaded.files {
                if let Some(masked) = secrets.masked_bytes(bytes) {
                    *bytes = masked;
                }
            }
            loaded.secrets = secrets;
            loaded
        })
}

fn judged(
    path: &str,
    files: &dyn Files,
    (bytes, mut root): (Vec<u8>, Node),
    (sets, secrets): (&[(String, String)], &mut Secrets),
    age: unused::Age,
) -> Result<Loaded, LoadError> {
    for (key, value) in sets {
        overrides::apply(&mut root, key, value, secrets)?;
    }
    // Again, for the values of `--set`.
    secrets::learn(&root, secrets);
    let file = decode::<StudyFile>(&root)?;
    let mut archived = vec![("study.yaml".to_owned(), bytes)];
    let mut problems = Problems::default();
    secrets::check(file.secrets.as_ref(), &root, &mut problems);
    let workloads = workloads(path, &file, files, &mut archived, secrets, &mut problems)?;
    for read in workloads.iter().flat_map(|workloads| &workloads.each) {
        let given = &read.workload.inputs;
        given.secrets().for_each(|value| secrets.learn(value));
    }
    let published = published::published(path, &file, files, &mut archived, &mut problems);
    let words = workloads.as_ref().map(Workloads::words);
    let study = workloads.and_then(|read| validate(&file, &read, published, &mut problems));
    // A mistyped name is reported only where it is used.
    if age == unused::Age::New && problems.is_empty() {
        unused::factors(&root, &file, &mut problems);
        unused::parameters(&file, &words.unwrap_or_default(), &mut problems);
    }
    problems.finish(study).map(|study| Loaded {
        study,
        files: archived,
        secrets: Secrets::default(),
    })
}

/// A workload's file.
struct WorkloadRead {
    workload: Arc<Workload>,
    written: Arc<WorkloadFile>,
    /// The hash of its content.
    sha256: String,
    words: template_words::Words,
}

/// All workloads of a study.
struct Workloads {
    /// The study's own first, each once.
    each: Vec<WorkloadRead>,
    /// The workload of each population, as an index, in their order.
    populations: Vec<usize>,
}

impl Workloads {
    fn words(&self) -> template_words::Words {
        let words = self.each.iter().flat_map(|read| &read.words);
        words.cloned().collect()
    }

    /// The hash of all their contents.
    fn sha256(&self) -> String {
        let each = self.each.iter().map(|read| read.sha256.clone());
        let all = each.reduce(|one, other| meaning::with(&one, &other));
        all.unwrap_or_default()
    }

    fn of_populations(&self) -> Vec<StudyWorkload> {
        let read = self.populations.iter().filter_map(|at| self.each.get(*at));
        let each = read.map(|read| StudyWorkload {
            workload: Arc::clone(&read.workload),
            file: Arc::clone(&read.written),
        });
        each.collect()
    }
}

/// Returns the study's own workload and those of its populations. `None` where a file is missing, which is a
/// problem of the study.
fn workloads(
    path: &str,
    file: &StudyFile,
    files: &dyn Files,
    archived: &mut Vec<(String, Vec<u8>)>,
    secrets: &mut Secrets,
    problems: &mut Problems,
) -> Result<Option<Workloads>, LoadError> {
    let mut names: Vec<String> = Vec::new();
    let mut read = Vec::new();
    let mut populations = Vec::new();
    let of_populations = mix::workloads(file).map(|name| (name, true));
    for (name, of_population) in std::iter::once((&file.workload, false)).chain(of_populations) {
        let text = name.text();
        let known = names.iter().position(|known| *known == text);
        let at = known.unwrap_or(names.len());
        if known.is_none() {
            read.push(workload(path, name, files, archived, secrets, problems)?);
            names.push(text);
        }
        if of_population {
            populations.push(at);
        }
    }
    let each: Option<Vec<WorkloadRead>> = read.into_iter().collect();
    Ok(each.map(|each| Workloads { each, populations }))
}

/// Returns the workload. A missing file is a problem of the study; an invalid one has problems of its own.
fn workload(
    path: &str,
    name: &At<Scalar>,
    files: &dyn Files,
    archived: &mut Vec<(String, Vec<u8>)>,
    secrets: &mut Secrets,
    problems: &mut Problems,
) -> Result<Option<WorkloadRead>, LoadError> {
    let text = name.text();
    let candidates = match text.contains('/') || text.ends_with(".yaml") || text.ends_with(".yml") {
        true => vec![text.clone()],
        false => {
            vec![
                format!("../workloads/{text}.workload.yaml"),
                format!("{text}.workload.yaml"),
            ]
        }
    };
    let Some((found, bytes)) = first_file("workload", path, name, &candidates, files, problems)
    else {
        return Ok(None);
    };
    let file = node::text_file(&found, &bytes)?;
    let root = node::parse(&file)?;
    let places = secrets::credentials(&root, secrets);
    let (workload, written) = lab_language::read_workload(&root, files)?;
    let sha256 = meaning::sha256(&root, &["workload", "about", "least_users"]);
    // The hashes of the files beside it are taken from the workload.
    let rows = workload.rows().map(|data| &data.sha256);
    let others = rows.chain(workload.files.iter().map(|file| &file.sha256));
    let schemas = workload.schemas().map(JsonSchema::sha256);
    let described = workload.descriptors().map(Descriptors::sha256);
    let keys = workload.inputs.keys().iter().filter_map(Key::file_sha256);
    let scripts = script_files(&workload);
    let of_scripts = scripts
        .iter()
        .map(|(name, content)| meaning::with(name, &lab_workload::sha256(content)));
    let more = schemas.chain(described).chain(keys);
    let more: Vec<String> = more.chain(of_scripts).collect();
    let others = others.chain(&more);
    let sha256 = others.fold(sha256, |one, other| meaning::with(&one, other));
    let is_workload = |(name, _): &&(String, Vec<u8>)| name.starts_with("workload");
    let name = match archived.iter().filter(is_workload).count() {
        0 => "workload.yaml".to_owned(),
        number => format!("workload-{}.yaml", number + 1),
    };
    archived.push((name, secrets::without(&bytes, places)));
    for file in scripts {
        if archived.iter().all(|known| *known != file) {
            archived.push(file);
        }
    }
    Ok(Some(WorkloadRead {
        workload: Arc::new(workload),
        written: Arc::new(written),
        sha256,
        words: template_words::words(&root),
    }))
}

/// Returns the files of the script that plays the sessions, under their names in the archive, which is flat.
fn script_files(workload: &Workload) -> Vec<(String, Vec<u8>)> {
    let scripted = workload.scripted.iter();
    let sources = scripted.flat_map(|scripted| scripted.sources.iter());
    let file = |source: &ScriptSource| {
        let flat = source.name.replace("../", "up_").replace(['/', '\\'], "_");
        (format!("script-{flat}"), source.content.clone())
    };
    sources.map(file).collect()
}

fn validate(
    file: &StudyFile,
    read: &Workloads,
    published: Vec<Published>,
    problems: &mut Problems,
) -> Option<Study> {
    let own = read.each.first()?;
    let (workload, written) = (Arc::clone(&own.workload), Arc::clone(&own.written));
    let populations = read.of_populations();
    check_short_name("study", &file.study, problems);
    mix::check_names(file, problems);
    mix::check_shared(file, &workload, &populations, problems);
    let matrix = matrix::factors(file, problems);
    let most = MAX_TRIALS as u64;
    let trials = number("trials", file.trials.as_ref(), 1..=most, problems);
    let repeats = number("repeats", file.repeats.as_ref(), 0..=10, problems);
    let seed = number("seed", file.seed.as_ref(), 0..=u64::MAX, problems);
    let order = order(file.order.as_ref(), problems);
    let dates_from = dates_from(file.dates_from.as_ref(), problems);
    let parts = Parts::of(file, &workload, &populations);
    let thresholds = thresholds(&file.thresholds, &parts, problems);
    let abort_on = abort::aborts(file.abort_on.as_ref(), problems);
    let checks = checks::limits(&file.checks.clone().unwrap_or_default(), problems);
    let smallest_difference = smallest_difference(file.smallest_difference.as_ref(), problems);
    let decides = decides::decides(file, &workload, &parts, problems);
    let control = switch(file.control.as_ref(), problems);
    let raw_baseline = raw_baseline(file, &workload, problems);
    let matrix = matrix?;
    let trials = trials.map_or(1, |n| n as u32);
    check_count(file, &matrix, trials, control, problems)?;
    let cells = matrix::cells(file, &matrix, problems)?;
    let find = find::find(file, &parts, problems)?;
    let own = (&*workload, &*written, &populations[..]);
    let cell_template = cell_template(file, &matrix, own, problems)?;
    let all = (&workload, &*written, &populations[..]);
    check_cells(file, &cells, &cell_template, all, problems);
    let requires = requires::requires(file.requires.as_ref(), problems);
    let study = Study {
        name: file.study.text(),
        title: file.title.text(),
        about: about(file),
        workload,
        populations,
        matrix,
        cells,
        trials,
        repeats: repeats.map_or(REPEATS, |n| n as u32),
        seed: seed.unwrap_or(DEFAULT_SEED),
        requires,
        thresholds: implied(thresholds, find.is_some()),
        abort_on,
        checks,
        published,
        order,
        dates_from,
        smallest_difference,
        decides,
        control,
        duet: false,
        apart: false,
        pairing: None,
        raw_baseline,
        profile: profile::profile(file.profile.as_ref(), problems),
        find,
        cell_template,
        workload_sha256: read.sha256(),
        workload_file: written,
    };
    Some(duet::paired(study, file, problems))
}

fn about(file: &StudyFile) -> String {
    let about = file.about.as_ref();
    about.map_or_else(String::new, |about| about.text().trim().to_owned())
}

/// A search exceeds the sustainable load, so its own limits are judged.
fn implied(thresholds: Vec<Threshold>, searches: bool) -> Vec<Threshold> {
    if searches {
        return thresholds;
    }
    with_error_rate(thresholds, Threshold::implied_error_rate())
}

/// A whole number of the study; `None` when it is absent or wrong.
fn number(
    what: &str,
    at: Option<&At<Scalar>>,
    range: std::ops::RangeInclusive<u64>,
    problems: &mut Problems,
) -> Option<u64> {
    parsed(at?, what, |text| units::whole_number(text, range), problems)
}

fn smallest_difference(at: Option<&At<Scalar>>, problems: &mut Problems) -> f64 {
    let part = |text: &str| units::fraction(text, 0.001..=1.0);
    let given = at.and_then(|at| parsed(at, "smallest_difference", part, problems));
    given.unwrap_or(SMALLEST_DIFFERENCE)
}

/// Validates the raw baseline, which requires a sequence of transfers that a local server stores.
fn raw_baseline(file: &StudyFile, workload: &Workload, problems: &mut Problems) -> bool {
    let at = file.raw_baseline.as_ref();
    if !switch(at, problems) {
        return false;
    }
    let sequence = file.load.value.sequence.as_ref();
    let users = sequence.and_then(|at| at.value.users.as_ref());
    let (message, help) = if workload.transfer.is_none() {
        let help = "the workload says under `transfer` what a session carries";
        ("there is nothing to write", help)
    } else if sequence.is_none() {
        let help = "write `load: { sequence: { sessions: 10 } }`";
        ("only a sequence has a raw baseline", help)
    } else if users.is_some_and(|users| users.value != Scalar::Int(1)) {
        let help = "leave `users` out: the raw pass writes one file after the other";
        ("`raw_baseline` needs a sequence of one user", help)
    } else if systems(file).any(|system| system.attach.is_some()) {
        let help = "only a system that the study starts has its data on a disk of this machine";
        ("a system that is attached to has no raw baseline", help)
    } else {
        return true;
    };
    if let Some(at) = at {
        problems.push(at.span.first_line().problem(message, "here").help(help));
    }
    false
}

fn systems(file: &StudyFile) -> impl Iterator<Item = &SystemFile> {
    let variants = file.variants.iter().flat_map(|table| table.value.iter());
    let variants = variants.map(|(_, system)| &system.value);
    file.system
        .iter()
        .map(|system| &system.value)
        .chain(variants)
}

fn order(at: Option<&At<Scalar>>, problems: &mut Problems) -> Order {
    let Some(at) = at else {
        return Order::default();
    };
    match at.text().as_str() {
        "shuffled" => Order::Shuffled,
        "listed" => Order::Listed,
        other => {
            let (message, help) = unknown_name("order", other, &["shuffled", "listed"]);
            let problem = at.span.first_line().problem(message, "here");
            problems.push(problem.help(help));
            Order::default()
        }
    }
}

fn dates_from(at: Option<&At<Scalar>>, problems: &mut Problems) -> Date {
    let Some(at) = at else {
        return DEFAULT_DATES_FROM;
    };
    at.text().parse().unwrap_or_else(|_| {
        let message = format!("`{}` is not a date", at.text());
        let problem = at.span.first_line().problem(message, "here");
        problems.push(problem.help("write `2026-01-05`"));
        DEFAULT_DATES_FROM
    })
}

/// Cells × blocks, counted before any cell is made.
fn check_count(
    file: &StudyFile,
    matrix: &[Factor],
    trials: u32,
    control: bool,
    problems: &mut Problems,
) -> Option<()> {
    let cells = matrix
        .iter()
        .fold(1usize, |n, f| n.saturating_mul(f.levels.len()));
    let per_block = cells.saturating_add(usize::from(control));
    if per_block.saturating_mul(trials as usize) <= MAX_TRIALS {
        return Some(());
    }
    let span = match (&file.matrix, &file.trials) {
        (Some(matrix), _) if cells > MAX_TRIALS => matrix.span.first_line(),
        (_, Some(trials)) => trials.span.clone(),
        _ => file.study.span.clone(),
    };
    let count = per_block.saturating_mul(trials as usize);
    let message = format!("{count} trials are more than {MAX_TRIALS}");
    let mut problem = span.problem(message, "here");
    problem.help = Some("there is a trial for each cell of the matrix and each of `trials`".into());
    problems.push(problem);
    None
}

fn cell_template(
    file: &StudyFile,
    matrix: &[Factor],
    (workload, written, populations): (&Workload, &WorkloadFile, &[StudyWorkload]),
    problems: &mut Problems,
) -> Option<CellTemplate> {
    let factors: Vec<String> = matrix.iter().map(|f| f.name.clone()).collect();
    let system = system::templates(file, &factors, workload, problems);
    let mut settings = Settings {
        known: &factors,
        problems,
    };
    let load = demand::template(file, workload, populations, &mut settings);
    let parameters = parameters::template(file, written, populations, &mut settings);
    Some(CellTemplate {
        system: system?,
        load: load?,
        parameters: parameters?,
    })
}
