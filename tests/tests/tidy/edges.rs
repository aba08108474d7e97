//! The permitted dependencies between crates; and no modules of a crate import each other in a circle.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::modules::Graph;
use crate::tree::{complain, crates, files, root, show};

/// The permitted dependencies of each crate on other crates of the workspace. A new edge is a decision: the map in
/// ARCHITECTURE.md explains the present ones. The lab and the groupware never depend on each other; fronts never depend
/// on each other; parsers depend on nothing.
const EDGES: &[(&str, &[&str])] = &[
    (
        "groupware-auth",
        &[
            "groupware-mail",
            "groupware-net",
            "groupware-people",
            "groupware-runtime",
            "groupware-store",
        ],
    ),
    (
        "groupware-backup",
        &[
            "groupware-content",
            "groupware-documents",
            "groupware-mail",
            "groupware-objects",
            "groupware-people",
            "groupware-store",
        ],
    ),
    (
        "groupware-calendar",
        &[
            "groupware-ids",
            "groupware-people",
            "groupware-proto-ical",
            "groupware-recurrence",
            "groupware-store",
            "groupware-text",
        ],
    ),
    ("groupware-calendarfiles", &["groupware-proto-ical"]),
    ("groupware-content", &["groupware-ids"]),
    (
        "groupware-data",
        &[
            "groupware-content",
            "groupware-documents",
            "groupware-mail",
            "groupware-objects",
            "groupware-people",
            "groupware-postgres",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-documents",
        &["groupware-ids", "groupware-store", "groupware-text"],
    ),
    (
        "groupware-fixtures",
        &[
            "groupware-auth",
            "groupware-calendar",
            "groupware-mail",
            "groupware-people",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-front-admin",
        &[
            "groupware-auth",
            "groupware-calendar",
            "groupware-content",
            "groupware-fixtures",
            "groupware-http",
            "groupware-mail",
            "groupware-people",
            "groupware-proto-ical",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
            "groupware-takeout",
        ],
    ),
    (
        "groupware-front-domino",
        &[
            "groupware-calendar",
            "groupware-content",
            "groupware-documents",
            "groupware-http",
            "groupware-mail",
            "groupware-people",
            "groupware-proto-http",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
            "groupware-text",
        ],
    ),
    (
        "groupware-front-lookup",
        &[
            "groupware-http",
            "groupware-lookup",
            "groupware-proto-http",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-front-pages",
        &[
            "groupware-auth",
            "groupware-calendar",
            "groupware-content",
            "groupware-http",
            "groupware-mail",
            "groupware-people",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
            "groupware-takeout",
            "groupware-text",
        ],
    ),
    (
        "groupware-front-smtp",
        &[
            "groupware-auth",
            "groupware-mail",
            "groupware-mailauth",
            "groupware-net",
            "groupware-people",
            "groupware-proto-smtp",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-front-tus",
        &[
            "groupware-content",
            "groupware-documents",
            "groupware-http",
            "groupware-proto-http",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-http",
        &[
            "groupware-auth",
            "groupware-content",
            "groupware-net",
            "groupware-people",
            "groupware-proto-http",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
            "groupware-text",
        ],
    ),
    ("groupware-ids", &[]),
    (
        "groupware-jobs",
        &[
            "groupware-content",
            "groupware-documents",
            "groupware-lookup",
            "groupware-people",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-lookup",
        &["groupware-ids", "groupware-proto-lookup", "groupware-store"],
    ),
    (
        "groupware-mail",
        &[
            "groupware-ids",
            "groupware-people",
            "groupware-proto-mime",
            "groupware-store",
            "groupware-text",
        ],
    ),
    ("groupware-mailauth", &["groupware-proto-mime"]),
    ("groupware-mailfiles", &["groupware-text"]),
    ("groupware-net", &["groupware-proto-proxy"]),
    (
        "groupware-objects",
        &[
            "groupware-content",
            "groupware-documents",
            "groupware-store",
        ],
    ),
    ("groupware-people", &["groupware-store"]),
    ("groupware-postgres", &["groupware-store", "groupware-text"]),
    ("groupware-process", &[]),
    ("groupware-proto-http", &[]),
    ("groupware-proto-ical", &["groupware-ids"]),
    ("groupware-proto-lookup", &[]),
    ("groupware-proto-mime", &["groupware-text"]),
    ("groupware-proto-proxy", &[]),
    ("groupware-proto-smtp", &[]),
    (
        "groupware-recurrence",
        &["groupware-proto-ical", "groupware-text"],
    ),
    ("groupware-runtime", &["groupware-net", "groupware-people"]),
    (
        "groupware-server",
        &[
            "groupware-auth",
            "groupware-content",
            "groupware-data",
            "groupware-documents",
            "groupware-fixtures",
            "groupware-front-admin",
            "groupware-front-domino",
            "groupware-front-lookup",
            "groupware-front-pages",
            "groupware-front-smtp",
            "groupware-front-tus",
            "groupware-http",
            "groupware-jobs",
            "groupware-lookup",
            "groupware-mail",
            "groupware-mailauth",
            "groupware-net",
            "groupware-objects",
            "groupware-people",
            "groupware-postgres",
            "groupware-process",
            "groupware-runtime",
            "groupware-service",
            "groupware-store",
        ],
    ),
    (
        "groupware-service",
        &[
            "groupware-auth",
            "groupware-calendar",
            "groupware-documents",
            "groupware-mail",
            "groupware-net",
            "groupware-people",
            "groupware-runtime",
            "groupware-store",
        ],
    ),
    ("groupware-store", &["groupware-text"]),
    (
        "groupware-takeout",
        &[
            "groupware-calendar",
            "groupware-content",
            "groupware-documents",
            "groupware-mail",
            "groupware-mailfiles",
            "groupware-store",
        ],
    ),
    ("groupware-text", &[]),
    (
        "lab-analysis",
        &[
            "lab-archive",
            "lab-asked",
            "lab-counts",
            "lab-plan",
            "lab-profile",
            "lab-result",
            "lab-stats",
            "lab-trial",
        ],
    ),
    ("lab-archive", &["lab-counts", "lab-profile", "lab-stats"]),
    (
        "lab-ask",
        &["lab-asked", "lab-filters", "lab-language", "lab-workload"],
    ),
    ("lab-asked", &["lab-filters", "lab-monitor", "lab-stats"]),
    (
        "lab-client",
        &["lab-counts", "lab-filters", "lab-units", "lab-workload"],
    ),
    (
        "lab-comparison",
        &[
            "lab-analysis",
            "lab-archive",
            "lab-plan",
            "lab-stats",
            "lab-trial",
        ],
    ),
    (
        "lab-conduct",
        &[
            "lab-archive",
            "lab-asked",
            "lab-client",
            "lab-counts",
            "lab-driver",
            "lab-host",
            "lab-machine",
            "lab-monitor",
            "lab-sampling",
            "lab-stats",
            "lab-study",
            "lab-workload",
        ],
    ),
    ("lab-counts", &["lab-stats"]),
    ("lab-dialogues", &["lab-client", "lab-workload"]),
    ("lab-host", &["lab-archive", "lab-monitor", "lab-study"]),
    ("lab-import", &["lab-units", "lab-workload"]),
    ("lab-document", &["lab-analysis", "lab-profile"]),
    (
        "lab-driver",
        &[
            "lab-client",
            "lab-counts",
            "lab-dialogues",
            "lab-queues",
            "lab-recorder",
            "lab-script",
            "lab-scripted",
            "lab-stats",
            "lab-workload",
        ],
    ),
    (
        "lab-estimate",
        &["lab-analysis", "lab-comparison", "lab-plan", "lab-study"],
    ),
    (
        "lab-export",
        &[
            "lab-archive",
            "lab-counts",
            "lab-plan",
            "lab-stats",
            "lab-trial",
            "lab-workload",
        ],
    ),
    ("lab-filters", &[]),
    ("lab-fleet", &["lab-driver"]),
    (
        "lab-history",
        &[
            "lab-analysis",
            "lab-archive",
            "lab-comparison",
            "lab-plan",
            "lab-stats",
        ],
    ),
    (
        "lab-k6",
        &["lab-import", "lab-trial", "lab-units", "lab-workload"],
    ),
    (
        "lab-language",
        &["lab-script", "lab-scripted", "lab-units", "lab-workload"],
    ),
    (
        "lab-live",
        &[
            "lab-analysis",
            "lab-archive",
            "lab-counts",
            "lab-plan",
            "lab-report",
            "lab-stats",
        ],
    ),
    (
        "lab-machine",
        &[
            "lab-archive",
            "lab-asked",
            "lab-client",
            "lab-driver",
            "lab-host",
            "lab-monitor",
            "lab-study",
        ],
    ),
    ("lab-modules", &[]),
    ("lab-monitor", &[]),
    (
        "lab-plan",
        &["lab-counts", "lab-prediction", "lab-stats", "lab-workload"],
    ),
    ("lab-prediction", &["lab-workload"]),
    ("lab-profile", &["lab-stats"]),
    ("lab-queues", &["lab-workload"]),
    (
        "lab-recorder",
        &["lab-client", "lab-counts", "lab-workload"],
    ),
    (
        "lab-result",
        &[
            "lab-archive",
            "lab-asked",
            "lab-counts",
            "lab-plan",
            "lab-profile",
            "lab-stats",
            "lab-trial",
        ],
    ),
    (
        "lab-sampling",
        &["lab-archive", "lab-monitor", "lab-profile"],
    ),
    (
        "lab-rehearsal",
        &["lab-client", "lab-driver", "lab-workload"],
    ),
    (
        "lab-report",
        &[
            "lab-analysis",
            "lab-asked",
            "lab-comparison",
            "lab-document",
            "lab-history",
            "lab-plan",
            "lab-profile",
            "lab-stats",
        ],
    ),
    ("lab-script", &["lab-modules", "lab-turns", "lab-units"]),
    ("lab-scripted", &["lab-script", "lab-workload"]),
    ("lab-stats", &[]),
    (
        "lab-study",
        &[
            "lab-ask",
            "lab-language",
            "lab-plan",
            "lab-prediction",
            "lab-workload",
        ],
    ),
    (
        "lab-trial",
        &[
            "lab-archive",
            "lab-counts",
            "lab-plan",
            "lab-profile",
            "lab-stats",
        ],
    ),
    ("lab-template", &["lab-filters"]),
    (
        "lab-terminal",
        &[
            "lab-archive",
            "lab-conduct",
            "lab-estimate",
            "lab-host",
            "lab-study",
        ],
    ),
    ("lab-turns", &[]),
    ("lab-units", &["lab-filters", "lab-template"]),
    ("lab-workload", &["lab-filters", "lab-template"]),
    (
        "plimsoll",
        &[
            "groupware-backup",
            "groupware-calendarfiles",
            "groupware-mailfiles",
            "groupware-server",
            "groupware-text",
            "lab-analysis",
            "lab-archive",
            "lab-comparison",
            "lab-conduct",
            "lab-driver",
            "lab-export",
            "lab-fleet",
            "lab-estimate",
            "lab-history",
            "lab-host",
            "lab-import",
            "lab-k6",
            "lab-live",
            "lab-machine",
            "lab-monitor",
            "lab-plan",
            "lab-profile",
            "lab-rehearsal",
            "lab-report",
            "lab-study",
            "lab-terminal",
            "lab-trial",
        ],
    ),
    (
        "plimsoll-bench",
        &[
            "groupware-calendar",
            "groupware-people",
            "groupware-postgres",
            "groupware-store",
            "lab-archive",
            "lab-counts",
            "lab-driver",
            "lab-monitor",
            "lab-study",
            "lab-workload",
            "plimsoll-tests",
        ],
    ),
    ("plimsoll-forgetful", &[]),
    (
        "plimsoll-fuzz",
        &[
            "groupware-calendar",
            "groupware-content",
            "groupware-documents",
            "groupware-front-pages",
            "groupware-lookup",
            "groupware-mail",
            "groupware-mailfiles",
            "groupware-objects",
            "groupware-postgres",
            "groupware-proto-http",
            "groupware-proto-ical",
            "groupware-proto-lookup",
            "groupware-proto-mime",
            "groupware-proto-proxy",
            "groupware-proto-smtp",
            "groupware-store",
            "lab-archive",
            "lab-asked",
            "lab-client",
            "lab-dialogues",
            "lab-driver",
            "lab-filters",
            "lab-fleet",
            "lab-import",
            "lab-machine",
            "lab-monitor",
            "lab-profile",
            "lab-sampling",
            "lab-script",
            "lab-study",
            "lab-workload",
        ],
    ),
    ("plimsoll-tests", &[]),
];

#[test]
fn crates_depend_on_each_other_only_as_the_map_says() {
    let ours: Vec<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    let mut offenders = Vec::new();
    let found = dependencies();
    for (name, on) in &found {
        let allowed = EDGES.iter().find(|(listed, _)| listed == name);
        match allowed {
            None => offenders.push(format!("{name} is not on the list")),
            Some((_, allowed))
                if ours.contains(&on.as_str()) && !allowed.contains(&on.as_str()) =>
            {
                offenders.push(format!("{name} -> {on}"));
            }
            Some(_) => {}
        }
    }
    offenders.dedup();
    complain(
        "edges between crates that the list doesn't have",
        &offenders,
    );
    let idle: Vec<String> = EDGES
        .iter()
        .flat_map(|(name, allowed)| allowed.iter().map(move |on| (*name, *on)))
        .filter(|(name, on)| !found.iter().any(|(n, o)| n == name && o == on))
        .map(|(name, on)| format!("{name} -> {on}"))
        .collect();
    complain("these edges are gone: take them off the list", &idle);
}

#[test]
fn the_lab_and_the_groupware_never_depend_on_each_other() {
    let crossing = |name: &str, on: &str| {
        (name.starts_with("lab-") && on.starts_with("groupware-"))
            || (name.starts_with("groupware-") && on.starts_with("lab-"))
            || (name.starts_with("groupware-front-") && on.starts_with("groupware-front-"))
    };
    let offenders: Vec<String> = EDGES
        .iter()
        .flat_map(|(name, allowed)| allowed.iter().map(move |on| (*name, *on)))
        .filter(|(name, on)| crossing(name, on))
        .map(|(name, on)| format!("{name} -> {on}"))
        .collect();
    complain("they meet only in cli and on the wire", &offenders);
}

/// Each crate's direct dependencies as (crate, dependency), without dev-dependencies.
fn dependencies() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 8, "the workspace is all here");
    packages
        .iter()
        .flat_map(|package| {
            let name = package["name"].as_str().expect("name");
            package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .map(move |on| {
                    (
                        name.to_owned(),
                        on["name"].as_str().expect("name").to_owned(),
                    )
                })
        })
        .collect()
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let sources = files(".rs");
    let mut offenders = Vec::new();
    for folder in crates() {
        for src in roots_of_modules(&folder.join("src"), &sources) {
            for circle in Graph::read(&src, &sources).circles() {
                offenders.push(format!("{}: {}", show(&src), circle.join(", ")));
            }
        }
    }
    complain("cut these circles", &offenders);
}

/// A crate's `src`, and the folders below it that are separate programs.
fn roots_of_modules(src: &Path, sources: &[PathBuf]) -> Vec<PathBuf> {
    let programs = sources
        .iter()
        .filter(|file| file.ends_with("main.rs"))
        .filter_map(|file| file.parent())
        .filter(|folder| folder.starts_with(src) && *folder != src)
        .map(Path::to_path_buf);
    std::iter::once(src.to_path_buf()).chain(programs).collect()
}
