//! The identity of the state at the start of a trial, and the values for the requests that make it. It prepares
//! nothing.

use lab_study::Preparation;
use lab_study::plan::{Plan, Trial};
use lab_workload::{Level, Parameters};

/// The identity of the state at the start of a trial, without its users; `None` if none is kept.
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

/// The number of users of each population; others have other names.
fn populations(trial: &Trial) -> String {
    let each = trial.load.mix.iter();
    let each = each.map(|one| format!(", {} {} {:?}", one.users, one.name, one.parameters));
    each.collect()
}

/// Values for requests of a trial besides the variables of users: its parameters, its levels, and those of the
/// preparation.
pub(crate) fn constants(plan: &Plan, trial: &Trial) -> Parameters {
    let mut constants = trial.parameters.clone();
    constants.extend(trial.cell.clone());
    constants.extend(trial.system.preparation().values.clone());
    let seed =
        i64::try_from(plan.seed).map_or_else(|_| Level::Text(plan.seed.to_string()), Level::Int);
    constants.entry("seed".to_owned()).or_insert(seed);
    constants
}

/// The text of the values that a preparation names: other values have no effect on the state.
fn named(preparation: &Preparation, constants: &Parameters) -> String {
    let texts = serde_json::to_string(&(&preparation.provision, &preparation.fill));
    let texts = texts.unwrap_or_default();
    let named = constants
        .iter()
        .filter(|(name, _)| texts.contains(name.as_str()));
    format!("{texts} {:?}", named.collect::<Vec<_>>())
}
