//! Transactions of a session: their nesting, the steps allowed within them, and their thresholds.

use std::ops::Range;

use lab_prediction::{Prediction, predict};
use lab_workload::{LoadSpec, Round, Transaction, Workload};

use crate::faults::{self, Fault, STUDY, WORKLOAD, load, snapshot};

fn workload(steps: &str) -> Workload {
    faults::workload(format!("workload: w\nsession:\n  steps:\n{steps}"))
}

fn transaction(name: &str, steps: Range<usize>, each: Round) -> Transaction {
    Transaction {
        name: name.to_owned(),
        steps,
        each,
    }
}

#[test]
fn transactions_nest_and_hold_choices_and_groups() {
    let steps = r#"    - { step: Look, request: GET / }
    - transaction: Visit
      steps:
        - { step: Cart, share: 30%, request: GET /cart }
        - one_of:
            - { step: Card, weight: 3, request: POST /card }
            - transaction: Transfer
              steps: [{ step: Bank, request: POST /bank }, { step: Wait, request: GET /state }]
        - transaction: Poll
          until: "round == 2"
          at_most: 3
          steps: [{ step: Ask, request: GET /ask }]
    - { step: Leave, request: GET /bye }
"#;
    let read = workload(steps);
    let session = &read.session;
    assert_eq!(
        session.transactions,
        [
            transaction("Visit", 1..6, Round::Session),
            transaction("Transfer", 3..5, Round::Session),
            transaction("Poll", 5..6, Round::Group),
        ]
    );
    assert_eq!(session.groups.len(), 1);
    assert_eq!(session.groups[0].steps, 5..6);
    let names: Vec<&str> = session.transaction_names().collect();
    assert_eq!(names, ["session", "Visit", "Transfer", "Poll"]);
    // Both steps of the transfer are done in the same sessions.
    let chance = |at: usize| session.steps[at].chance.unwrap();
    assert_eq!(chance(3), chance(4));
    assert_ne!(chance(1).group, chance(2).group);
    assert!(session.steps[5].chance.is_none());
}

#[test]
fn a_workload_keeps_its_transactions_on_the_way_to_generators() {
    let read = workload("    - transaction: A\n      steps: [{ step: B, request: GET / }]\n");
    let message = lab_workload::Message::new(&read).unwrap();
    let json = serde_json::to_string(&message).unwrap();
    let back: lab_workload::Message = serde_json::from_str(&json).unwrap();
    let back = back.workload().unwrap();
    assert_eq!(
        back.session.transactions,
        [transaction("A", 0..1, Round::Session)]
    );
}

#[test]
fn one_request_alone_is_no_transaction() {
    let alone = workload("    - { step: A, request: GET / }\n");
    assert_eq!(alone.session.transaction_names().count(), 0);
    for step in [
        "{ step: A, requests: [GET /, GET /a] }",
        "{ step: A, repeat: 2, request: GET / }",
        "{ step: A, retry: 2, request: GET / }",
        "{ step: A, until: \"round == 2\", at_most: 3, request: GET / }",
    ] {
        let read = workload(&format!("    - {step}\n"));
        let names: Vec<&str> = read.session.transaction_names().collect();
        assert_eq!(names, ["session"], "{step}");
    }
}

#[test]
fn a_plan_counts_transactions_as_it_counts_steps() {
    let load = LoadSpec::of_users(9, 100_000, 1_000);
    let count = |more: &str| -> Prediction {
        let steps = format!(
            "    - {{ step: Look, wait: 8s..12s, request: GET / }}\n    - {{ transaction: Visit, share: 50%, steps: [{{ \
             step: Cart, request: GET /cart }}, {{ step: Pay, request: GET /pay }}] }}\n{more}"
        );
        predict(&workload(&steps), 1, 0, &load, 1 << 20).unwrap()
    };
    let exact = count("");
    let begun = |of: &Prediction| -> Vec<u64> {
        of.named_transactions.iter().map(|one| one.begun).collect()
    };
    let sent = |of: &Prediction, at: usize| of.steps[at].requests;
    assert_eq!(begun(&exact), [sent(&exact, 0), sent(&exact, 1)]);
    assert!(begun(&exact)[1] > 10 && begun(&exact)[1] < begun(&exact)[0] - 10);
    assert!(
        exact
            .named_transactions
            .iter()
            .all(|one| one.range.is_none())
    );
    // Answers decide how many rounds there are, each of which is a transaction of one request.
    let open = count(
        "    - transaction: Poll\n      until: \"round == 2\"\n      at_most: 3\n      steps: [{ step: Ask, wait: 1s, \
         request: GET /ask }]\n",
    );
    let ranges = open.named_transactions.iter().map(|one| one.range);
    let steps = [0, 1, 3].map(|at: usize| open.steps[at].range);
    assert_eq!(ranges.collect::<Vec<_>>(), steps);
    let poll = open.named_transactions[2].range.unwrap();
    assert!(poll.low > 0.0 && poll.high > 2.0 * poll.low, "{poll:?}");
}

const STEP: &str = "    - step: Read the list\n";

#[test]
fn faults_of_transactions() {
    let deep = (0..9).fold("[{ step: In, request: GET / }]".to_owned(), |steps, at| {
        format!("[{{ transaction: T{at}, steps: {steps} }}]")
    });
    let faults = [
        ("no steps", "    - transaction: Pay\n".to_owned()),
        (
            "the name of the whole",
            "    - { transaction: session, steps: [{ step: In, request: GET / }] }\n".to_owned(),
        ),
        (
            "one name twice",
            "    - { transaction: Pay, steps: [{ step: In, request: GET / }] }\n    - { transaction: Pay, steps: \
             [{ step: Out, request: GET / }] }\n"
                .to_owned(),
        ),
        (
            "a wait of its own",
            "    - { transaction: Pay, wait: 3s, steps: [{ step: In, request: GET / }] }\n".to_owned(),
        ),
        (
            "a choice within a share",
            "    - { transaction: Pay, share: 30%, steps: [{ step: In, share: 10%, request: GET / }] }\n"
                .to_owned(),
        ),
        (
            "too deep",
            format!("    - {{ transaction: Pay, steps: {deep} }}\n"),
        ),
    ];
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|(name, text)| (name, STEP, &*format!("{text}{STEP}").leak()))
        .collect();
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}

#[test]
fn faults_of_what_judges_them() {
    let with = |text: &str| -> &'static str { format!("thresholds:\n  {text}\n").leak() };
    let faults: Vec<Fault> = [
        ("no transaction", "transaction_time: [\"p(95) < 1s\"]"),
        ("a step", "transaction_time{step:Log in}: [\"p(95) < 1s\"]"),
        (
            "an unknown one",
            "transaction_elapsed{transaction:sesion}: [\"p(95) < 1s\"]",
        ),
        (
            "a response time",
            "response_time{transaction:session}: [\"p(95) < 1s\"]",
        ),
    ]
    .map(|(name, text)| (name, "thresholds:\n", with(text)))
    .into();
    insta::assert_snapshot!(snapshot(STUDY, &faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}
