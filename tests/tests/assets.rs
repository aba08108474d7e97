//! A page with its assets, which a server answers only once all of a user's are there.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use plimsoll_tests::web::{self, Received};

const WORKLOAD: &str = r#"
workload: shop
session:
  steps:
    - step: Product page
      wait: 5ms..15ms
      request: GET /page
      headers: { X-User: "{{ index }}" }
      capture: { pictures: "html(img)@src" }
      parallel:
        at_once: 6
        requests:
          - { request: GET /app.js, name: Script, headers: { X-User: "{{ index }}" } }
          - { request: GET /app.css, headers: { X-User: "{{ index }}" } }
        each: { in: pictures, as: picture, at_most: 9, name: Picture, request: "GET {{ picture }}", headers: { X-User: "{{ index }}" } }
    - { step: Leave, request: GET /leave }
"#;

const PAGE: &str =
    "<img src=\"/1.png\"><img src=\"/2.png\"><img src=\"/3.png\"><img src=\"/4.png\">";
const ASSETS: u64 = 6;

/// The assets of each user that have come so far.
#[derive(Default)]
struct Waiting {
    came: Mutex<HashMap<String, u64>>,
    changed: Condvar,
}

impl Waiting {
    /// Awaits all assets of the page that this one is a part of; false where they don't come.
    fn all_here(&self, user: String) -> bool {
        let mut came = self.came.lock().expect("no panic");
        let number = came.entry(user.clone()).or_default();
        *number += 1;
        let wanted = number.div_ceil(ASSETS) * ASSETS;
        self.changed.notify_all();
        let waited = self
            .changed
            .wait_timeout_while(came, Duration::from_secs(20), |came| {
                came.get(&user).is_some_and(|number| *number < wanted)
            });
        !waited.expect("no panic").1.timed_out()
    }
}

fn answer(request: &Received, waiting: &Waiting) -> (String, String) {
    let ok = |body: &str| {
        (
            "200 OK\r\nContent-Type: text/html".to_owned(),
            body.to_owned(),
        )
    };
    match request.target().0 {
        "/page" => ok(PAGE),
        "/leave" => ok(""),
        _ if waiting.all_here(request.header("x-user").unwrap_or_default()) => ok("asset"),
        _ => ("504 Alone".to_owned(), String::new()),
    }
}

#[test]
fn a_page_is_fetched_with_its_assets_and_has_a_time() {
    let waiting = Waiting::default();
    let port = web::serve(move |request| answer(request, &waiting));
    let study = format!(
        "study: shop\ntitle: A page\nworkload: shop\nrepeats: 0\n\
         system: {{ attach: {{ url: \"http://127.0.0.1:{port}\" }} }}\nload: {{ users: 3, hold: 2s }}\n\
         thresholds:\n  transaction_time{{transaction:Product page}}: [\"p(95) < 20s\"]\n  \
         response_time{{step:Picture}}: [\"p(95) < 20s\"]\n"
    );
    let folder = web::folder(&[
        ("shop.workload.yaml", WORKLOAD.as_bytes()),
        ("shop.study.yaml", study.as_bytes()),
    ]);
    let (result, ran) = web::result(folder.path(), ("shop.study.yaml", "run"), &[]);
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{}", trial["error_examples"]);
    let counts: HashMap<&str, u64> = trial["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| {
            let count = step["transactions"].as_u64().expect("a count");
            (
                step["step"]
                    .as_str()
                    .or(step["name"].as_str())
                    .expect("a name"),
                count,
            )
        })
        .collect();
    let pages = counts["Leave"];
    assert!(pages > 20, "{counts:?}");
    // A page is the first request and the style sheet; those that the end of the hold cuts are a few.
    let near = |name: &str, each: u64| counts[name].abs_diff(pages * each) <= 3 * each;
    assert!(
        near("Product page", 2) && near("Script", 1) && near("Picture", 4),
        "{counts:?}"
    );
    let transactions = trial["named_transactions"]
        .as_array()
        .expect("transactions");
    let page = transactions
        .iter()
        .find(|one| one["transaction"] == "Product page" || one["name"] == "Product page")
        .unwrap_or_else(|| panic!("{transactions:?}"));
    assert!(
        page["completed"].as_u64().is_some_and(|count| count > 20),
        "{page}"
    );
    assert!(
        ran.0.contains("Product page") || result.to_string().contains("transaction:Product page"),
        "{}",
        ran.0
    );
}
