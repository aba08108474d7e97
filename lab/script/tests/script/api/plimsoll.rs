//! The module `plimsoll`.

use lab_script::{Event, MetricKind};

use super::{error, run};

const IMPORTS: &str =
    "import { step, transaction, wait, measure, secret, shared, tcp } from 'plimsoll'";

#[test]
fn names_steps_and_transactions() {
    let script = format!(
        "{IMPORTS}; import http from 'k6/http';
export default function () {{ return transaction('checkout', () => {{ step('cart', () => http.get('http://shop/')); return 3; }}); }}"
    );
    let done = run(&script, "");
    assert_eq!(*done.value(), 3);
    let groups = done
        .events
        .iter()
        .filter(|event| matches!(event, Event::Group { begins: true, .. }));
    assert_eq!(groups.count(), 2);
}

#[test]
fn waits_in_range_and_measures() {
    let script = format!(
        "{IMPORTS};
export default function () {{ for (let i = 0; i < 20; i++) wait('1s..1.5s'); wait('250ms'); measure('queue', 7); measure('paint', 2, 's'); }}"
    );
    let done = run(&script, "");
    let (last, drawn) = done.waits.split_last().unwrap();
    assert_eq!(*last, 250_000);
    assert!(
        drawn
            .iter()
            .all(|micros| (1_000_000..=1_500_000).contains(micros)),
        "{drawn:?}"
    );
    assert!(drawn.iter().any(|micros| *micros != drawn[0]));
    let metrics: Vec<_> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Metric {
                name,
                kind,
                value,
                time,
                ..
            } => Some((name.as_str(), *kind, *value, *time)),
            _ => None,
        })
        .collect();
    assert_eq!(
        metrics,
        [
            ("queue", MetricKind::Trend, 7.0, false),
            ("paint", MetricKind::Trend, 2000.0, true)
        ]
    );
}

#[test]
fn says_what_is_missing() {
    assert!(error(IMPORTS, "wait('soon')").contains("a duration such as '2s'"));
    assert!(error(IMPORTS, "wait('5s..1s')").contains("ends before it begins"));
    assert!(error(IMPORTS, "secret('TOKEN')").contains("-e TOKEN="));
    assert!(error(IMPORTS, "shared.counter('x')").contains("docs/shared.md"));
    assert!(error(IMPORTS, "tcp.connect('x')").contains("docs/clients.md"));
}
