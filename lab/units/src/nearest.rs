//! Finds the valid name nearest to a wrong one.

/// The choice most similar to `wrong`, if any is similar enough.
pub fn nearest<'a>(wrong: &str, choices: &[&'a str]) -> Option<&'a str> {
    // Long names are compared by their start: the cost grows with the product of the lengths.
    let wrong: String = wrong.chars().take(80).collect::<String>().to_lowercase();
    let score = |choice: &str| strsim::jaro_winkler(&wrong, &choice.to_lowercase());
    choices
        .iter()
        .map(|choice| (score(choice), *choice))
        .filter(|(score, _)| *score >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, choice)| choice)
}

/// "`a`, `b`, and `c`"; at most sixty are listed.
pub fn one_of(choices: &[&str]) -> String {
    const SHOWN: usize = 60;
    let mut names: Vec<String> = choices
        .iter()
        .take(SHOWN)
        .map(|c| format!("`{c}`"))
        .collect();
    if choices.len() > SHOWN {
        names.push(format!("{} more", choices.len() - SHOWN));
    }
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests;
