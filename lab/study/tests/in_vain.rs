//! Settings without effect, and settings that can never work, are found before a run.

use crate::faults::{STUDY, WORKLOAD, load, seen};

fn said(study: &str, workload: &str) -> String {
    match load(study.as_bytes(), workload.as_bytes()) {
        Ok(_) => String::new(),
        Err(error) => seen(&error),
    }
}

#[test]
fn a_factor_that_no_setting_names_is_an_error() {
    let unused = STUDY.replace("{{ users }}", "50");
    let told = said(&unused, WORKLOAD);
    assert!(
        told.contains("the factor `users` changes nothing: no setting names it"),
        "{told}"
    );
    assert!(
        told.contains("write `{{ users }}` where its levels belong"),
        "{told}"
    );
    // A name in prose is no use of it.
    let prose = unused.replace("Pages at two levels", "Pages for users");
    assert!(said(&prose, WORKLOAD).contains("changes nothing"));
    // Labels go with a factor that is used.
    let labelled = STUDY.replace(
        "  users: [10, 20]\n",
        "  users: [10, 20]\n  size: [small, large]\n  zip: [[users, size]]\n",
    );
    assert_eq!(said(&labelled, WORKLOAD), "");
    // A mistyped use is reported once.
    let mistyped = STUDY.replace("{{ users }}", "{{ user }}");
    let told = said(&mistyped, WORKLOAD);
    assert!(
        told.contains("`user`") && !told.contains("changes nothing"),
        "{told}"
    );
}

#[test]
fn a_parameter_that_the_workload_names_nowhere_is_an_error() {
    let study = format!("{STUDY}parameters: {{ pages: \"{{{{ users }}}}\" }}\n");
    let of = |parameters: &str| format!("{parameters}\n{WORKLOAD}");
    let told = said(&study, &of("parameters: { pages: 3 }"));
    let expected = "the parameter `pages` changes nothing: the workload names it nowhere";
    assert!(told.contains(expected), "{told}");
    let used = of("parameters: { pages: 3 }").replace("GET /list", "GET /list?n={{ pages }}");
    assert_eq!(said(&study, &used), "");
}

#[test]
fn constants_that_never_work_are_told_with_their_place() {
    let with =
        |expression: &str| WORKLOAD.replace("GET /list", &format!("GET /list?a={expression}"));
    for (expression, expected) in [
        (
            "{{ text_of_size('2 KB') }}",
            "`text_of_size('2 KB')` never works: `2 KB` is not a whole number",
        ),
        ("{{ text_of_size('2 KB') }}", "`text_of_size(2000)`"),
        (
            "{{ text_of_size('2 KB') | upper }}",
            "`2 KB` is not a whole number",
        ),
        (
            "{{ pad(1, 200) | upper }}",
            "a width of 200 is not within 0 to 100",
        ),
        (
            "{% if true %}{{ date('x') }}{% endif %}",
            "`x` is not a whole number",
        ),
        ("{{ 'a' | int }}", "never works"),
    ] {
        let told = said(STUDY, &with(expression));
        assert!(told.contains(expected), "{expression}: {told}");
    }
    // Expressions that depend on the user, or on chance, may work.
    for expression in [
        "{{ 10 // index }}",
        "{{ 10 // int_in(0, 3) }}",
        "{{ text_of_size(2000) | upper | length }}",
        "{% for i in range(3) %}{{ i }}{% endfor %}",
    ] {
        assert_eq!(said(STUDY, &with(expression)), "", "{expression}");
    }
}

#[test]
fn files_of_a_system_may_loop() {
    let system = |text: &str| {
        STUDY.replace(
            "  groupware: { http_threads: 4 }\n",
            &format!("  command:\n    start: [sh]\n    files:\n      list: \"{text}\"\n"),
        )
    };
    let loops = system("{% for i in range(users) %}{{ i }}:{{ port }}\\n{% endfor %}");
    let loaded = load(loops.as_bytes(), WORKLOAD.as_bytes());
    let loaded = loaded.unwrap_or_else(|error| panic!("{}", seen(&error)));
    let lab_study::LoadedAny::Study(loaded) = loaded else {
        panic!("a study");
    };
    let plan = lab_study::plan::plan(&loaded.study, &Default::default()).unwrap();
    let ten = plan
        .trials
        .iter()
        .find(|trial| trial.load.users == 10)
        .unwrap();
    let lab_study::SystemSpec::Command(command) = &ten.system else {
        panic!("a command");
    };
    let text = &command.files[0].1;
    assert_eq!(text.lines().count(), 10);
    assert!(text.ends_with("9:{{ port }}\n"), "{text}");
    // Braces of other programs' syntax are not templates.
    assert_eq!(said(&system("%{%d/%b/%Y}t {# {{ port }}"), WORKLOAD), "");
    let told = said(&system("{% for i in range(usres) %}{% endfor %}"), WORKLOAD);
    assert!(
        told.contains("`usres`") && told.contains("`users`"),
        "{told}"
    );
}

#[test]
fn a_folder_has_a_name() {
    let system = STUDY.replace(
        "  groupware: { http_threads: 4 }\n",
        "  command: { start: [sh], folder: \"\" }\n",
    );
    assert!(said(&system, WORKLOAD).contains("this names no folder"));
}
