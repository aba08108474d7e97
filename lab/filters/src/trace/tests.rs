//! Tests of `trace`.

use std::collections::BTreeSet;

use super::*;

const OF: Traced = Traced {
    seed: (1, 0),
    whose: (false, 7),
    request: 3,
    count: 0,
};

fn drawn(tracing: &Tracing) -> Vec<TraceContext> {
    let of = |count| Traced { count, ..OF };
    (0..10_000)
        .filter_map(|count| tracing.draw(of(count)))
        .collect()
}

#[test]
fn a_share_of_the_requests_have_ids_of_their_own_that_come_again() {
    let tracing = |share| Tracing::new(share, 0x6a00_0000, "http://h".to_owned());
    let all = drawn(&tracing(1.0));
    let ids: BTreeSet<String> = all.iter().map(TraceContext::id).collect();
    assert_eq!((all.len(), ids.len()), (10_000, 10_000));
    assert_eq!(drawn(&tracing(1.0)), all);
    assert_eq!(drawn(&tracing(0.0)), []);
    let tenth = drawn(&tracing(0.1));
    // Ten standard deviations of the binomial distribution.
    assert!((700..1_300).contains(&tenth.len()), "{}", tenth.len());
    assert!(tenth.iter().all(|one| all.contains(one)));
    let others = [
        Traced { seed: (2, 0), ..OF },
        Traced { seed: (1, 1), ..OF },
        Traced {
            whose: (true, 7),
            ..OF
        },
        Traced {
            whose: (false, 8),
            ..OF
        },
        Traced { request: 4, ..OF },
    ];
    let others = others.map(|of| tracing(1.0).draw(of).unwrap().id());
    assert!(others.iter().all(|id| !ids.contains(id)), "{others:?}");
    let text = all[0].to_string();
    assert_eq!(
        (text.len(), &text[..11], &text[52..]),
        (55, "00-6a000000", "-01")
    );
}
