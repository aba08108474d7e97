//! Tests of `agents`.

use super::*;

#[test]
fn agents_are_told_in_words() {
    let said = |which, weights: &[u32]| {
        let weights = weights.to_vec();
        Agents { which, weights }.to_string()
    };
    let labelled = |count| Which::Labelled {
        label: "site".to_owned(),
        value: "eu".to_owned(),
        count,
    };
    let names = || Which::Named(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(said(Which::Any(1), &[]), "1 agent");
    assert_eq!(said(Which::Any(5), &[]), "5 agents");
    assert_eq!(said(names(), &[]), "agents a, b");
    assert_eq!(said(names(), &[2, 1]), "agents a (2), b (1)");
    assert_eq!(said(labelled(None), &[]), "all agents with site=eu");
    assert_eq!(said(labelled(Some(3)), &[]), "3 agents with site=eu");
}

#[test]
fn labels_and_names_are_plain() {
    let both = Ok(("site".to_owned(), "eu=1".to_owned()));
    assert_eq!(label(" site=eu=1"), both);
    assert!(label("eu").is_err() && label("=eu").is_err() && label("site=").is_err());
    assert_eq!(name("gen-3").as_deref(), Ok("gen-3"));
    assert_eq!(machine(" db-1 ").as_deref(), Ok("db-1"));
    assert_eq!(machine("site=eu").as_deref(), Ok("site=eu"));
    assert!(machine("A").is_err() && machine("=eu").is_err());
    assert!(name("").is_err() && name("-a").is_err() && name("A").is_err());
}
