//! Generates the first study and workload of a user's own server, with further examples as comments.

use std::fmt::Write as _;

use lab_units::yaml::{comment, literal, short_name, text};

/// The inputs of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    /// The name of study and workload; made a short name.
    pub name: String,
    /// The server, without a path.
    pub url: String,
    /// Path and query of the first request, from `/`.
    pub target: String,
    /// Concurrent users.
    pub users: u32,
    /// The limit that 95 of 100 responses must meet, as in files: `500ms`.
    pub limit: String,
}

/// The two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The name of both, without extensions.
    pub name: String,
    /// `NAME.study.yaml`
    pub study: String,
    /// `NAME.workload.yaml`
    pub workload: String,
}

/// Study and workload, for one folder.
#[must_use]
pub fn files(first: &First) -> Files {
    let name = short_name(&first.name, "first");
    Files {
        study: study(first, &name),
        workload: workload(first, &name),
        name,
    }
}

const BELOW_STUDY: &str = "
# More than one level: name them here, and write `users: \"{{ users }}\"` above.
#   matrix: { users: [10, 50, 100] }
# How many users does it carry? Leave `users` and `matrix` out, and write
#   find: { users: { max: 1000 }, subject_to: { response_time: [\"p(95) < 500ms\"] } }
# Is the new version better? Six blocks or more can show it:
#   variants: { old: { attach: { url: … } }, new: { attach: { url: … } } }
#   trials: 6
# A server that plimsoll starts and stops, afresh for each trial:
#   system: { command: { start: [./server, --port, \"{{ port }}\"], folder: /opt/server } }
";

fn study(first: &First, name: &str) -> String {
    let mut out = comment(
        0,
        &format!(
            "A study asks one question. Made by `plimsoll init`; all of it is yours to change.\n\
             \x20 plimsoll try  {name}.study.yaml    one user: every request and answer\n\
             \x20 plimsoll plan {name}.study.yaml    what it will do, and for how long\n\
             \x20 plimsoll run  {name}.study.yaml    measures, and writes a report"
        ),
    );
    let _ = writeln!(out, "study: {name}");
    let title = format!("{} under {} users", first.url, first.users);
    let _ = writeln!(out, "title: {}", text(&title));
    let _ = writeln!(
        out,
        "workload: ./{name}.workload.yaml    # what one user does"
    );
    out.push_str("\nsystem:\n  attach:                           # a server that runs already\n");
    let _ = writeln!(out, "    url: {}", text(&first.url));
    if first.url.starts_with("https:") {
        out.push_str("  # tls: { ca: ca.pem }             # its authority, if this machine doesn't know it\n");
    }
    out.push_str("\nload:\n");
    let _ = writeln!(out, "  users: {:<27}# at once", first.users);
    out.push_str("  ramp: 3s                          # until all of them are there\n");
    out.push_str("  hold: 30s                         # what is measured\n");
    out.push_str("\nthresholds:                         # what the server is to keep\n");
    let _ = writeln!(out, "  response_time: [\"p(95) < {}\"]", first.limit);
    out.push_str("  error_rate: [\"rate < 1%\"]\n");
    out.push_str(BELOW_STUDY);
    out
}

const BELOW_WORKLOAD: &str = "
    # What else your users do, such as
    # - step: Log in
    #   wait: 2s..8s                      # uniform; or exponential(5s)
    #   request: POST /login
    #   form: { username: \"user{{ index }}\", password: \"{{ secret('PASSWORD') }}\" }
    #   expect: 303
    #   capture: { token: '/name=\"csrf\" value=\"([^\"]+)\"/' }
    # - step: Buy
    #   wait: 5s
    #   request: POST /orders
    #   json: { item: 7, csrf: \"{{ token }}\" }
    #   capture: { order: $.id }
    # A session of your own, recorded by a browser: plimsoll import har session.har
";

fn workload(first: &First, name: &str) -> String {
    let mut out = comment(
        0,
        "A workload says what one user does, again and again. Made by `plimsoll init`.",
    );
    let _ = writeln!(out, "workload: {name}");
    out.push_str("follow: 5                           # redirects are gone along with\n");
    out.push_str("session:\n  steps:\n    - step: Open the page\n");
    out.push_str("      wait: 1s..3s                  # think time before it\n");
    let line = format!("GET {}", literal(&first.target));
    let _ = writeln!(out, "      request: {}", text(&line));
    out.push_str("      expect: 2xx                   # all else is an error\n");
    out.push_str(BELOW_WORKLOAD);
    out
}

#[cfg(test)]
mod tests {
    use std::io;

    use lab_study::plan::{PlanOptions, plan};
    use lab_study::{load_study, load_workload};
    use proptest::prelude::*;

    use super::*;

    struct Two(Files);

    impl lab_study::Files for Two {
        fn read(&self, path: &str) -> io::Result<Vec<u8>> {
            let Files {
                name,
                study,
                workload,
            } = &self.0;
            match path {
                path if path == format!("{name}.study.yaml") => Ok(study.clone().into_bytes()),
                path if path == format!("{name}.workload.yaml") => {
                    Ok(workload.clone().into_bytes())
                }
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    fn first() -> First {
        First {
            name: "Shop.example:8080".to_owned(),
            url: "http://shop.example:8080".to_owned(),
            target: "/items?q={{a}}".to_owned(),
            users: 25,
            limit: "250ms".to_owned(),
        }
    }

    #[test]
    fn both_files_read_as_they_were_meant() {
        let files = files(&first());
        let path = format!("{}.study.yaml", files.name);
        let loaded = load_study(&path, &Two(files.clone()), &[]).unwrap();
        let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
        assert_eq!(plan.trials.len(), 1);
        assert_eq!(
            (plan.trials[0].load.users, plan.trials[0].load.hold_ms),
            (25, 30_000)
        );
        assert_eq!(plan.question.thresholds[0].text, "p(95) < 250ms");
        assert!(!files.study.contains("tls:"), "{}", files.study);
        for text in [&files.study, &files.workload] {
            let wide = text.lines().filter(|line| line.chars().count() > 100);
            assert_eq!(wide.count(), 0, "{text}");
        }
    }

    /// Over TLS, a comment of the study shows an authority, at its right place.
    #[test]
    fn a_server_over_tls_may_have_an_authority_of_its_own() {
        let files = files(&First {
            url: "https://shop.example".to_owned(),
            ..first()
        });
        let study = files.study.replace("  # tls:", "  tls:");
        assert_ne!(study, files.study);
        let two = Two(Files {
            study,
            ..files.clone()
        });
        let path = format!("{}.study.yaml", files.name);
        let loaded = load_study(&path, &two, &[]).unwrap();
        let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
        let reach = format!("{:?}", plan.trials[0].reach);
        assert!(reach.contains("ca.pem"), "{reach}");
    }

    /// The content of comments is valid, too.
    #[test]
    fn the_steps_in_comments_are_a_workload() {
        let files = files(&first());
        let taken = |line: &str| {
            line.strip_prefix("    # ")
                .map(|rest| format!("    {rest}\n"))
        };
        let steps: String = files
            .workload
            .lines()
            .filter(|line| !line.contains("What else") && !line.contains("A session of"))
            .filter_map(taken)
            .collect();
        let workload = format!("workload: w\nsession:\n  steps:\n{steps}");
        let two = Files {
            name: "w".to_owned(),
            study: String::new(),
            workload,
        };
        let loaded = load_workload("w.workload.yaml", &Two(two)).unwrap();
        assert_eq!(loaded.session.steps.len(), 2);
    }

    proptest! {
        #[test]
        fn any_name_and_target_make_files_that_read(
            name in "\\PC{0,60}",
            target in "/[!-~]{0,60}",
        ) {
            let files = files(&First { name, target, ..first() });
            let path = format!("{}.study.yaml", files.name);
            let loaded = load_study(&path, &Two(files.clone()), &[]);
            prop_assert!(loaded.is_ok(), "{}\n{}", files.study, files.workload);
        }
    }
}
