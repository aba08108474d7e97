//! A page with its assets, which a server answers only once all requests of a user are there.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use plimsoll_tests::web::{self, Received};

const PAGE: &str =
    "<img src=\"/1.png\"><img src=\"/2.png\"><img src=\"/3.png\"><img src=\"/4.png\">";
const ASSETS: u64 = 6;

/// The requested assets of each user so far.
#[derive(Default)]
struct Waiting {
    came: Mutex<HashMap<String, u64>>,
    changed: Condvar,
}

impl Waiting {
    /// Waits for all assets of the page with this one; returns false if they aren't requested.
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
    let folder = web::folder_of_page("assets.md", port, &[]);
    let (result, ran) = web::result(folder.path(), ("page.study.yaml", "run"), &[]);
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{}", trial["error_examples"]);
    let counts: HashMap<&str, u64> = trial["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| {
            let count = step["transactions"].as_u64().expect("a count");
            (step["name"].as_str().expect("a name"), count)
        })
        .collect();
    let pages = counts["Leave"];
    assert!(pages > 20, "{counts:?}");
    // A page is the first request and the style sheet; the deadline truncates a few.
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
        .find(|one| one["name"] == "Product page")
        .unwrap_or_else(|| panic!("{transactions:?}"));
    assert!(
        page["completed"].as_u64().is_some_and(|count| count > 20),
        "{page}"
    );
    let thresholds = trial["thresholds"].as_array().expect("thresholds");
    let of_page = thresholds
        .iter()
        .find(|one| one["transaction"] == "Product page");
    assert_eq!(of_page.expect("a threshold")["holds"], true, "{}", ran.0);
}
