//! The state that a trial begins in: what tells it from others, and what the requests that make it may
//! name. It prepares nothing.

use lab_study::Preparation;
use lab_study::plan::{Plan, Trial};
use lab_workload::{Level, Parameters};

/// What tells the state that a trial begins in from others, but for its users; `None` where none is
/// kept.
pub(crate) fn state(plan: &Plan, trial: &Trial) -> Option<String> {
    let preparation = trial.system.preparation();
    let keep = preparation.keep.as_ref()?;
    let constants = constants(plan, trial);
    let named = named(preparation, &constants);
    let alike = match &keep.alike {
        Some(alike) => alike.clone(),
        None => serde_json::to_string(&trial.system).unwrap_or_default(),
    };
    Some(format!(
        "{} users, {named}, {alike}, {:?}, in {:?}{}",
        trial.load.users,
        trial.parameters,
        trial.host.storage,
        populations(trial),
    ))
}

/// How many users each population has; others have other names.
fn populations(trial: &Trial) -> String {
    let each = trial.load.mix.iter();
    let each = each.map(|one| format!(", {} {} {:?}", one.users, one.name, one.parameters));
    each.collect()
}

/// What requests of a trial may name beside the variables of users: its parameters, its levels, and
/// what the preparation adds.
pub(crate) fn constants(plan: &Plan, trial: &Trial) -> Parameters {
    let mut constants = trial.parameters.clone();
    constants.extend(trial.cell.clone());
    constants.extend(trial.system.preparation().values.clone());
    let seed =
        i64::try_from(plan.seed).map_or_else(|_| Level::Text(plan.seed.to_string()), Level::Int);
    constants.entry("seed".to_owned()).or_insert(seed);
    constants
}

/// The text of what a preparation names of these values: a state that they have no part in is the
/// same whatever they are.
fn named(preparation: &Preparation, constants: &Parameters) -> String {
    let texts = serde_json::to_string(&(&preparation.provision, &preparation.fill));
    let texts = texts.unwrap_or_default();
    let named = constants
        .iter()
        .filter(|(name, _)| texts.contains(name.as_str()));
    format!("{texts} {:?}", named.collect::<Vec<_>>())
}
