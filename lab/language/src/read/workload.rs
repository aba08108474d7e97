//! Validates a workload file: names, waits, templates, captures.

use std::sync::Arc;
use std::time::Duration;

use lab_workload::template::{Escape, Symbols};
use lab_workload::{
    Attached, Data, Descriptors, Each, InputName, Inputs, JsonSchema, Key, MAX_VARIABLES, PASSWORD,
    Probe, Session, Template, Transfer, Workload,
};

use super::choice;
use super::files::{Files, decode, environment};
use super::names::{called_at, check_short_name, level, switch, transposed};
use super::request::Compiler;
use super::script::{self, Script};
use super::shared::Pools;
use super::{
    attached, auth, control, data, descriptors, keys, measure, parallel, schema, shared, steps,
    variable,
};
use crate::error::{LoadError, Problems};
use crate::file::{ProbeFile, SessionFile, TransferFile, WorkloadFile};
use crate::node::Node;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Scalar, Table};
use lab_workload::Parameters as Cell;

const MAX_BODY: u64 = 1 << 40;
/// Maximum bytes that a session may declare.
const MAX_TRANSFER: u64 = 1 << 40;
/// Maximum users of a load.
const MAX_USERS: u64 = 1_000_000;

/// Data read for a workload apart from its own file.
#[derive(Clone, Copy)]
struct Resources<'a> {
    data: Option<&'a Arc<Data>>,
    files: &'a [Attached],
    keys: &'a [Key],
    schemas: &'a [JsonSchema],
    descriptors: Option<&'a Descriptors>,
    pools: &'a Pools,
    /// The script that plays the session.
    script: Option<&'a Script>,
}

/// Reads the workload from a file's tree, with its own parameters.
///
/// # Errors
/// All errors in the workload.
pub fn read(root: &Node, files: &dyn Files) -> Result<(Workload, WorkloadFile), LoadError> {
    let file = decode::<WorkloadFile>(root)?;
    let mut problems = Problems::default();
    let rows = file.data.as_ref();
    let rows = rows.map(|rows| data::data(rows, files, &mut problems).map(Arc::new));
    let pools = shared::pools(&file.shared, files, &mut problems);
    let attached = attached::read(&file, files, &mut problems);
    let keys = keys::read(&file, files, &mut problems);
    let schemas = schema::read(&file, files, &mut problems);
    let described = descriptors::read(&file, files, &mut problems);
    let script = script::read(&file, files, &mut problems);
    let resources = (pools, transposed(rows), attached, &keys, schemas, described);
    let mut workload = match (resources, &script) {
        (
            (Some(pools), Some(data), Some(files), Some(keys), Some(schemas), Some(described)),
            Some(script),
        ) => {
            let resources = Resources {
                data: data.as_ref(),
                files: &files,
                keys,
                schemas: &schemas,
                descriptors: described.as_ref(),
                pools: &pools,
                script: script.as_ref(),
            };
            validate(&file, resources, &mut problems)
        }
        _ => None,
    };
    if let Some(workload) = &mut workload
        && shared::check_counters(root, workload, &mut problems)
    {
        let keys = keys.unwrap_or_default();
        let script = script.flatten();
        let inputs = match &script {
            Some(script) => script.inputs(workload.requested_inputs()),
            None => inputs(root, (workload, &keys), files, &mut problems),
        };
        workload.inputs = Arc::new(inputs.with_keys(keys));
    }
    problems.finish(workload.map(|workload| (workload, file)))
}

/// Returns the workload with a value for each of its parameters, and everything else as in `own`.
///
/// # Errors
/// Values that are invalid in it.
pub fn workload_with(
    file: &WorkloadFile,
    parameters: &Cell,
    own: &Workload,
) -> Result<Workload, LoadError> {
    let mut problems = Problems::default();
    let schemas: Vec<JsonSchema> = own.schemas().cloned().collect();
    let script = own.scripted.as_ref();
    let script = script.map(|scripted| Script::of(&own.session, scripted));
    let resources = Resources {
        data: own.data.as_ref(),
        files: &own.files,
        keys: own.inputs.keys(),
        schemas: &schemas,
        descriptors: own.descriptors(),
        pools: &shared::pools_of(own),
        script: script.as_ref(),
    };
    let workload = validate_with(file, parameters, resources, &mut problems);
    problems.finish(workload.map(|workload| Workload {
        inputs: Arc::clone(&own.inputs),
        ..workload
    }))
}

/// Returns the validated workload with its own parameters; `None` if a problem was reported.
fn validate(
    file: &WorkloadFile,
    resources: Resources<'_>,
    problems: &mut Problems,
) -> Option<Workload> {
    check_short_name("workload", &file.workload, problems);
    let parameters = parameters(file, problems)?;
    validate_with(file, &parameters, resources, problems)
}

/// Returns the parameters with the workload's own values; `None` if a problem was reported.
fn parameters(file: &WorkloadFile, problems: &mut Problems) -> Option<Cell> {
    let mut good = true;
    for (name, value) in file.parameters.iter() {
        good &= variable::check(name, problems);
        if value.text().contains("{{") {
            let message = "a parameter is a plain value; a study may set it from its factors";
            problems.push(value.span.first_line().problem(message, "here"));
            good = false;
        }
    }
    good.then(|| file.defaults())
}

impl WorkloadFile {
    /// Returns its parameters with their default values.
    #[must_use]
    pub fn defaults(&self) -> Cell {
        let parameters = self.parameters.iter();
        parameters
            .map(|(name, value)| (name.value.clone(), level(value)))
            .collect()
    }
}

/// Returns the validated workload with a value for each of its parameters; `None` if a problem was reported.
fn validate_with(
    file: &WorkloadFile,
    parameters: &Cell,
    resources: Resources<'_>,
    problems: &mut Problems,
) -> Option<Workload> {
    let rows = resources.data.map(Arc::as_ref);
    let variables = variables(file, rows, resources.pools, problems)?;
    let symbols = Symbols {
        variables: &variables,
        parameters,
        keys: resources.keys,
        is_repeatable: switch(file.session.repeatable.as_ref(), problems),
    };
    let user = user(&file.user, symbols, rows, problems);
    let outside = without_session_rows(&variables, rows, resources.pools);
    let mut compiler = compiler(symbols, resources, problems);
    compiler.cookies = compiler.cookies(&file.cookies, true)?;
    compiler.sign = compiler.sign(file.sign.as_ref())?;
    compiler.variables = &outside;
    let speech = compiler.speech(file)?;
    compiler.speech = &speech;
    compiler.refuse_sign(file)?;
    let tokens = compiler.obtained(file)?;
    compiler.taking = compiler.taking(file.compressed.as_ref(), file.follow.as_ref())?;
    let shared = shared::read(&file.shared, (resources.pools, &variables), &mut compiler)?;
    compiler.shared = &shared;
    let setup = steps::setup(&file.setup, &mut compiler);
    let probe = file.probe.as_ref().map(|p| probe(p, &mut compiler));
    compiler.variables = &variables;
    let session = match resources.script {
        Some(script) => played(&file.session, script, &mut compiler),
        None => session(&file.session, &mut compiler),
    };
    steps::check_names(&file.setup.iter().collect::<Vec<_>>(), &mut compiler);
    let transfer = file.transfer.as_ref().map(|t| transfer(t, &mut compiler));
    let trace = compiler.optional("trace", &file.trace, traced);
    let max_body = compiler.optional("max_body", &file.max_body, |text| {
        units::size(text, MAX_BODY)
    });
    let least = compiler.optional("least_users", &file.least_users, min_users);
    let (mut setup, mut session) = (setup?, session?);
    if let Some(tokens) = &tokens {
        auth::add_steps(tokens, &mut setup, &mut session.steps);
    }
    Some(Workload {
        name: file.workload.text(),
        about: about(file),
        parameters: parameters.clone(),
        user: user?,
        setup,
        session,
        probe: transposed(probe)?,
        transfer: transposed(transfer)?,
        variables: variables.into(),
        least_users: least?.unwrap_or_default(),
        inputs: Arc::default(),
        data: resources.data.map(Arc::clone),
        shared: shared.clone(),
        files: resources.files.to_vec(),
        max_body: max_body?,
        trace: trace?.filter(|share| *share > 0.0),
        speech: speech.clone(),
        tokens: tokens.map(Box::new),
        scripted: resources.script.map(|script| Arc::clone(&script.scripted)),
    })
}

/// Creates the compiler of the workload's requests, with the data read apart from its file.
fn compiler<'a>(
    symbols: Symbols<'a>,
    resources: Resources<'a>,
    problems: &'a mut Problems,
) -> Compiler<'a> {
    Compiler {
        files: resources.files,
        keys: resources.keys,
        is_repeatable: symbols.is_repeatable,
        schemas: resources.schemas,
        descriptors: resources.descriptors,
        ..Compiler::new(symbols.variables, symbols.parameters, problems)
    }
}

/// Compiles the session; `None` if a problem was reported.
fn session(file: &SessionFile, compiler: &mut Compiler) -> Option<Session> {
    let pace = file.pace.as_ref();
    let pace = transposed(pace.map(|pace| duration("pace", pace, compiler)));
    let visitor = control::visitor(file.visitor.as_ref(), compiler);
    compiler.ends_session = control::ends_session(file.on_failure.as_ref(), false, compiler)?;
    let (steps, groups, transactions) = steps::session(&file.steps, compiler)?;
    Some(Session {
        pace: pace?,
        steps,
        groups,
        transactions,
        visitor: visitor?,
    })
}

/// Returns the session that a script plays.
fn played(file: &SessionFile, script: &Script, compiler: &mut Compiler) -> Option<Session> {
    let pace = file.pace.as_ref();
    let pace = transposed(pace.map(|pace| duration("pace", pace, compiler)));
    let visitor = control::visitor(file.visitor.as_ref(), compiler);
    Some(Session {
        pace: pace?,
        visitor: visitor?,
        ..script.session.clone()
    })
}

fn about(file: &WorkloadFile) -> String {
    let about = file.about.as_ref();
    about.map_or_else(String::new, |at| at.text().trim().to_owned())
}

/// Parses a number of users.
fn min_users(text: &str) -> Result<u32, TextError> {
    let users = units::whole_number(text, 1..=MAX_USERS)?;
    Ok(u32::try_from(users).unwrap_or(u32::MAX))
}

/// Returns the environment variables that templates use, with their values if known.
fn inputs(
    root: &Node,
    (workload, keys): (&Workload, &[Key]),
    files: &dyn Files,
    problems: &mut Problems,
) -> Inputs {
    let of_keys = keys.iter().filter_map(Key::variable).map(|name| InputName {
        name: name.to_owned(),
        secret: true,
    });
    let mut inputs = Inputs::unknown(
        workload
            .requested_inputs()
            .into_iter()
            .chain(of_keys)
            .collect(),
    );
    let mut names: Vec<String> = inputs.names().map(|asked| asked.name.clone()).collect();
    names.dedup();
    for name in names {
        let place = || called_at(root, &name, &["env", "secret"]);
        if let Some(Some(value)) = environment(&name, place, files, problems) {
            inputs.set(&name, &value);
        }
    }
    inputs
}

/// Returns the variables available outside of sessions: the others get a name that no template can write, to keep the
/// slots.
fn without_session_rows(variables: &[String], data: Option<&Data>, pools: &Pools) -> Vec<String> {
    let mut variables = variables.to_vec();
    let rows = data.filter(|data| data.each == Each::Session);
    for (_, slot) in rows.iter().flat_map(|data| &data.columns) {
        // The system's password is always available, whatever the name of a column.
        if *slot > 0 {
            variables[usize::from(*slot)].clear();
        }
    }
    for (_, rows) in pools {
        // The system's password is always available, whatever the name of a column.
        for (_, name) in shared::columns(rows).filter(|(_, name)| *name != PASSWORD) {
            let of_pool = variables.iter_mut().find(|one| *one == name);
            of_pool.into_iter().for_each(String::clear);
        }
    }
    variables
}

/// All variables by slot: `password`, columns of rows, those of `user:`, then captures and `set:` in file order.
fn variables(
    file: &WorkloadFile,
    data: Option<&Data>,
    pools: &Pools,
    problems: &mut Problems,
) -> Option<Vec<String>> {
    let mut names = data::first_variables(data);
    let mut good = true;
    if let (Some(written), Some(name)) = (
        &file.data,
        names.iter().find(|name| is_parameter(file, name)),
    ) {
        let message = format!("`{name}` is a column of the data and a parameter");
        let problem = written.span.first_line().problem(message, "this file");
        problems.push(problem.help("give one of them another name"));
        good = false;
    }
    good &= add_pools(file, pools, &mut names, problems);
    let mut add = |name: &At<String>| {
        good &= variable::check(name, problems);
        if is_parameter(file, &name.value) {
            let message = format!("`{}` is a parameter of the workload", name.value);
            let problem = name.span.problem(message, "the same name again");
            problems.push(problem.help("give one of them another name"));
            good = false;
        }
        if names.len() <= MAX_VARIABLES && !names.contains(&name.value) {
            names.push(name.value.clone());
        }
    };
    file.user.iter().for_each(|(name, _)| add(name));
    let session = choice::leaves(&file.session.steps.value);
    for step in file.setup.iter().chain(session) {
        let step = &step.value;
        step.set.iter().for_each(|(name, _)| add(name));
        shared::taken(step).for_each(&mut add);
        let captures = step.requests().flat_map(|request| request.capture.iter());
        captures.for_each(|(name, _)| add(name));
        let parallel = step.parallel.as_ref();
        let each = parallel.and_then(|parallel| parallel.value.each());
        each.into_iter().for_each(|each| add(&each.value.entry));
    }
    good &= add_measures(file, &mut names, problems);
    match auth::variables(file, &names, problems) {
        Some(of_auth) => names.extend(of_auth.iter().map(|name| (*name).to_owned())),
        None => good = false,
    }
    if let Some(probe) = &file.probe {
        for (name, _) in probe.only.capture.iter() {
            let message = "a probe captures nothing: it would change user 0's session";
            problems.push(name.span.problem(message, "this capture"));
            good = false;
        }
    }
    if names.len() > MAX_VARIABLES {
        let message = format!("a workload has at most {MAX_VARIABLES} variables");
        problems.push(file.workload.span.problem(message, "in this workload"));
        good = false;
    }
    good.then_some(names)
}

/// Adds the columns of pools; returns false if a problem was reported.
fn add_pools(
    file: &WorkloadFile,
    pools: &Pools,
    names: &mut Vec<String>,
    problems: &mut Problems,
) -> bool {
    let mut good = true;
    for (name, _) in file.shared.iter() {
        let of_pool = pools.iter().filter(|(of, _)| *of == name.value);
        for (_, column) in of_pool
            .flat_map(|(_, rows)| shared::columns(rows))
            .filter(|(_, name)| *name != PASSWORD)
        {
            let is_variable = file.user.iter().any(|(known, _)| known.value == *column);
            if names.contains(column) || is_variable || is_parameter(file, column) {
                let message = format!("`{column}` is a column of this pool and another variable");
                let problem = name.span.problem(message, "this pool");
                problems.push(problem.help("give one of them another name"));
                good = false;
            }
            names.push(column.clone());
        }
    }
    good
}

/// Adds the variables of measures after all others; returns false if a problem was reported.
fn add_measures(file: &WorkloadFile, names: &mut Vec<String>, problems: &mut Problems) -> bool {
    let mut good = true;
    for step in choice::leaves(&file.session.steps.value) {
        for name in measure::names(&step.value, problems) {
            let variable = measure::variable(&name.value);
            if names.len() <= MAX_VARIABLES && !names.contains(&variable) {
                names.push(variable);
            }
        }
    }
    for step in &file.setup {
        for request in step.value.requests() {
            good &= measure::refuse(&request.measure, "a setup", problems);
        }
    }
    if let Some(probe) = &file.probe {
        good &= measure::refuse(&probe.only.measure, "a probe", problems);
    }
    good
}

fn is_parameter(file: &WorkloadFile, name: &str) -> bool {
    file.parameters
        .iter()
        .any(|(parameter, _)| parameter.value == name)
}

/// Compiles `user:` variables, which see those before them, and `password` if the file sets none itself.
fn user(
    table: &Table<At<Scalar>>,
    symbols: Symbols<'_>,
    data: Option<&Data>,
    problems: &mut Problems,
) -> Option<Vec<(String, Template)>> {
    let variables = symbols.variables;
    // A name that no template can write keeps the slots of the others.
    let mut known = vec![String::new(); variables.len()];
    let make_known = |name: &str, known: &mut Vec<String>| {
        if let Some(slot) = variables.iter().position(|v| v == name) {
            known[slot] = name.to_owned();
        }
    };
    if !table.iter().any(|(name, _)| name.value == PASSWORD) {
        make_known(PASSWORD, &mut known);
    }
    let own = data.filter(|data| data.each == Each::User);
    for (_, slot) in own.iter().flat_map(|data| &data.columns) {
        known[usize::from(*slot)].clone_from(&variables[usize::from(*slot)]);
    }
    let mut compiled = Some(Vec::new());
    for (name, value) in table.iter() {
        let mut compiler = Compiler {
            keys: symbols.keys,
            is_repeatable: symbols.is_repeatable,
            ..Compiler::new(&known, symbols.parameters, problems)
        };
        let what = format!("variable `{}`", name.value);
        match (&mut compiled, compiler.template(&what, value, Escape::None)) {
            (Some(list), Some(template)) => list.push((name.value.clone(), template)),
            (list, _) => *list = None,
        }
        make_known(&name.value, &mut known);
    }
    compiled
}

fn probe(file: &ProbeFile, compiler: &mut Compiler) -> Option<Probe> {
    let every = duration("every", &file.every, compiler);
    if !parallel::refuse_name(&file.only, compiler.problems) {
        return None;
    }
    if let (None, Some(request)) = (&file.only.request, compiler.lineless(&file.only)) {
        return Some(Probe {
            request: request?,
            every: every?,
        });
    }
    match &file.only.request {
        Some(line) => {
            let request = compiler.request(line, &file.only);
            Some(Probe {
                request: request?,
                every: every?,
            })
        }
        None => {
            let message = "a probe needs the key `request`";
            compiler.problems.push(
                file.every
                    .span
                    .problem(message, "`request` is missing here"),
            );
            None
        }
    }
}

fn transfer(file: &TransferFile, compiler: &mut Compiler) -> Option<Transfer> {
    let place = compiler.setting("place", &file.place, |text| Ok(text.trim().to_owned()));
    let mut size = |what: &str, at: &At<Scalar>| {
        compiler.setting(what, at, |text| match units::size(text, MAX_TRANSFER)? {
            0 => Err(TextError::new("it is zero", 0..text.len())),
            bytes => Ok(bytes),
        })
    };
    let bytes = size("bytes", &file.bytes);
    let chunk_bytes = match &file.chunk {
        Some(chunk) => size("chunk", chunk),
        None => bytes,
    };
    Some(Transfer {
        place: place?,
        bytes: bytes?,
        chunk_bytes: chunk_bytes?.min(bytes?),
    })
}

/// Parses the share of the requests that start a trace.
fn traced(text: &str) -> Result<f64, TextError> {
    match units::switch(text) {
        Ok(on) => Ok(f64::from(u8::from(on))),
        Err(_) => units::fraction(text, 0.0..=1.0),
    }
}

/// Reads a duration above zero.
fn duration(what: &str, at: &At<Scalar>, compiler: &mut Compiler) -> Option<Duration> {
    compiler.setting(what, at, |text| {
        let duration = units::duration(text, units::MAX_WAIT)?;
        match duration.is_zero() {
            true => Err(TextError::new("it is zero", 0..text.len())),
            false => Ok(duration),
        }
    })
}
