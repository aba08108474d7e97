//! Values of responses, in the encodings of pages.

use super::*;

fn of(page: &str, kind: &str, body: &str) -> Imported {
    let form = "application/x-www-form-urlencoded";
    let entries = vec![
        entry(0, get("/form"), answer(200, kind, page), "document"),
        entry(
            3000,
            post("/save", form, body),
            answer(200, "text/html", ""),
            "document",
        ),
    ];
    let imported = import(&log(entries), &options()).unwrap();
    load(&imported);
    imported
}

fn frozen(imported: &Imported) -> usize {
    let said = imported.said.iter();
    said.filter(|line| line.contains("stays as recorded"))
        .count()
}

#[test]
fn tokens_are_captured_however_a_page_writes_them() {
    for (page, capture) in [
        (
            "<input type=hidden name=\"proof\" value=\"Zx9&#43;q/&#x2F;7w&#61;&#61;\">",
            "html(input[name=\"proof\"])@value",
        ),
        (
            "<INPUT TYPE='hidden' NAME=proof VALUE=Zx9+q//7w==>",
            "html(input[name=\"proof\"])@value",
        ),
        (
            "<!-- <input name=proof value=old> --><main id=app data-proof='Zx9+q//7w=='>",
            "html(main[id=\"app\"])@data-proof",
        ),
        (
            "<script>\n var set = {proof: 'Zx9+q//7w=='};\n</script>",
            "/ var set = \\\\{proof: '([^\\\"'<>&\\\\s]+)/",
        ),
    ] {
        let imported = of(page, "text/html", "proof=Zx9%2Bq%2F%2F7w%3D%3D&n=1");
        let workload = &imported.workload;
        let written = capture.replace('"', "\\\"").replace("\\\\\"", "\\\"");
        assert!(workload.contains(&written), "{written}\n{workload}");
        assert!(!workload.contains("Zx9"), "{workload}");
        assert_eq!(frozen(&imported), 0, "{:?}", imported.said);
    }
    let json = of(
        r#"{"proof":"Zx9+q\/\/7w\u003d="}"#,
        "application/json",
        "proof=Zx9%2Bq%2F%2F7w%3D%3D",
    );
    assert!(json.workload.contains("$.proof"), "{}", json.workload);
}

/// Values of a response that aren't captured are named.
#[test]
fn values_that_stay_as_recorded_are_reported() {
    let imported = of(
        r"<script>start(JSON.parse('{\u0022seal\u0022:\u0022k8Qz\u002Bp41\u0022}'))</script>",
        "text/html",
        "seal=k8Qz%2Bp41&word=tomorrow&page=12",
    );
    let said = imported.said.join("\n");
    assert!(
        said.contains(
            "POST /save: `seal` stays as recorded, though the answer to GET /form held it"
        ),
        "{said}"
    );
    assert!(!said.contains("k8Qz") && !said.contains("`word`"), "{said}");
    // A value typed before any response contained it is the person's.
    let typed = of("<p>nothing", "text/html", "seal=k8Qz%2Bp41");
    assert_eq!(frozen(&typed), 0, "{:?}", typed.said);
}

/// Numbers in JSON keep their digits.
#[test]
fn numbers_of_answers_are_captured_digit_for_digit() {
    const GIVEN: &str = r#"{"user": {"id": 30521}, "order": {"big_id": 618446744073709551557618446744073709551557}}"#;
    let entries = vec![
        entry(
            0,
            get("/me"),
            answer(200, "application/json", GIVEN),
            "fetch",
        ),
        entry(
            2000,
            post(
                "/pay",
                "application/json",
                r#"{"id": 30521, "big_id": 618446744073709551557618446744073709551557, "tip": 1.10, "card": {"id": "30521"}}"#,
            ),
            answer(200, "application/json", "{}"),
            "fetch",
        ),
    ];
    let imported = import(&log(entries), &options()).unwrap();
    load(&imported);
    let workload = &imported.workload;
    for line in [
        "id: \"{{ user_id | int }}\"",
        "id: \"{{ user_id | string }}\"",
        " | number }}",
        "tip: 1.10",
    ] {
        assert!(workload.contains(line), "{line}\n{workload}");
    }
    assert!(!workload.contains("618446"), "{workload}");
}
