//! The capacity of the server: the busiest resource, demand per transaction, scaling with users.

use crate::support::{Made, Shape};

fn levels(users: &str) -> Made {
    let overrides = vec![("matrix.users".to_owned(), users.to_owned())];
    Made {
        overrides,
        shapes: vec![Shape::default(); 7],
        ..Made::default()
    }
}

#[test]
fn the_busiest_resource_is_named_with_its_capacity() {
    let analysis = Made::default().analysis();
    let cell = &analysis.cells[1];
    // 60 % of the system's one core at some 133 transactions per s: full at 133 ÷ 0.6.
    let throughput = cell.throughput_per_s.unwrap().mean;
    let full = format!("{:.0} transactions per s", throughput / 0.6);
    let said = analysis.findings.join("\n");
    assert!(
        said.contains("At 200 users the system used 60.0 % of its one core")
            && said.contains("the bottleneck is the system's CPU"),
        "{said}"
    );
    assert!(said.contains(&full), "{full}: {said}");
    let each = cell.host["disk_transfers_per_transaction"].unwrap();
    let rate = cell.host["disk_transfers_per_s"].unwrap();
    assert!((each - rate / throughput).abs() < 1e-9);
    assert_eq!(cell.host["disk_kb_per_transaction"], None, "never sampled");
}

#[test]
fn six_levels_from_one_user_on_show_how_throughput_scales() {
    let analysis = levels("[1, 2, 5, 10, 20, 40, 80]").analysis();
    assert_eq!(analysis.summary.valid, 7, "{:#?}", analysis.headline);
    let usl = analysis.usl.unwrap();
    // Made up to follow its plan: each user adds as much as the first.
    let per_user = analysis.trials[6].throughput_per_s.unwrap() / 80.0;
    assert!(
        (usl.gamma_per_s.mean / per_user - 1.0).abs() < 0.1,
        "{usl:?}"
    );
    assert!(usl.alpha.mean.abs() < 0.02, "{usl:?}");
    assert_eq!(usl.peak_users, None);
    let said = analysis.findings.join("\n");
    assert!(
        said.contains("Scaling (USL)") && said.contains("no peak is shown"),
        "{said}"
    );
}

#[test]
fn too_few_levels_or_no_single_user_show_none() {
    assert_eq!(levels("[1, 2, 5, 10, 20]").analysis().usl, None);
    assert_eq!(levels("[2, 4, 6, 10, 20, 40]").analysis().usl, None);
    let json = serde_json::to_string(&levels("[1, 2]").analysis()).unwrap();
    assert!(!json.contains("\"usl\""));
}
