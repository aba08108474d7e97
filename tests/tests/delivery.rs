//! Times that no single request shows: of a message from one user to another, and of a checkout.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use plimsoll_tests::web::{self, Received};

const WORKLOAD: &str = r#"
workload: chat
session:
  steps:
    - step: Send
      wait: 20ms
      when: index % 2 == 0
      request: POST /room
      json: { text: "from {{ index }}", sent_us: "{{ now_us() }}" }
    - step: Receive
      when: index % 2 == 1
      request: GET /next
      capture: { sent_us: $.sent_us }
      measure: { delivery: { from: "{{ (now_us() - sent_us | int) / 1000 }}", unit: ms } }
"#;

/// The server's delay of a message, ms.
const KEPT_MS: u64 = 40;

/// The messages of a room that no user has received.
#[derive(Default)]
struct Room {
    messages: Mutex<VecDeque<String>>,
    changed: Condvar,
}

impl Room {
    fn put(&self, message: String) {
        let mut messages = self.messages.lock().expect("no panic");
        messages.push_back(message);
        self.changed.notify_one();
    }

    /// The next message, once there is one.
    fn next(&self) -> Option<String> {
        let messages = self.messages.lock().expect("no panic");
        let longest = Duration::from_secs(20);
        let waited = self
            .changed
            .wait_timeout_while(messages, longest, |all| all.is_empty());
        waited.expect("no panic").0.pop_front()
    }
}

fn answer(request: &Received, room: &Room) -> (String, String) {
    let json = "200 OK\r\nContent-Type: application/json";
    if request.method() == "POST" {
        room.put(String::from_utf8_lossy(&request.body).into_owned());
        return ("204 No Content".to_owned(), String::new());
    }
    let Some(message) = room.next() else {
        return ("504 Silence".to_owned(), String::new());
    };
    keep(KEPT_MS);
    (json.to_owned(), message)
}

/// Waits this many ms, like a server at work.
fn keep(ms: u64) {
    // Nothing ends this wait but its time.
    let (held, kept) = (Mutex::new(()), Duration::from_millis(ms));
    let held = held.lock().expect("no panic");
    let _ = Condvar::new().wait_timeout_while(held, kept, |()| true);
}

#[test]
fn the_time_of_a_message_between_two_users_is_measured() {
    let room = Room::default();
    let port = web::serve(move |request| answer(request, &room));
    let study = format!(
        "study: chat\ntitle: A message\nworkload: chat\nrepeats: 0\n\
         system: {{ attach: {{ url: \"http://127.0.0.1:{port}\" }} }}\nload: {{ users: 4, hold: 2s }}\n"
    );
    let folder = web::folder(&[
        ("chat.workload.yaml", WORKLOAD.as_bytes()),
        ("chat.study.yaml", study.as_bytes()),
    ]);
    let (result, _) = web::result(folder.path(), ("chat.study.yaml", "run"), &[]);
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{}", trial["error_examples"]);
    let measures = trial["measures"].as_array().expect("measures");
    let [delivery] = measures.as_slice() else {
        panic!("{measures:?}")
    };
    assert_eq!(delivery["unit"], "ms", "{delivery}");
    let values = &delivery["values"];
    assert!(
        values["count"].as_u64().is_some_and(|count| count > 10),
        "{delivery}"
    );
    // A receiver waits for messages that are not sent yet; the measured time begins when one is sent.
    let mean = values["mean"].as_f64().expect("a mean");
    assert!(mean >= KEPT_MS as f64, "{delivery}");
}

/// The server's time for a payment, ms.
const PAYMENT_MS: u64 = 60;

/// A shop with slow payments.
fn shop(request: &Received) -> (String, String) {
    let path = request.target().0;
    if path.ends_with("/pay") {
        keep(PAYMENT_MS);
    }
    let json = "200 OK\r\nContent-Type: application/json";
    (json.to_owned(), r#"{"cart": 7}"#.to_owned())
}

#[test]
fn the_time_of_a_checkout_is_measured_with_and_without_think_times() {
    let port = web::serve(shop);
    let folder = web::folder_of_page("transactions.md", port, &[]);
    let (result, ran) = web::result(folder.path(), ("shop.study.yaml", "run"), &[]);
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{}", trial["error_examples"]);
    let all = trial["named_transactions"].as_array().expect("a list");
    let named = |name: &str| {
        let mut found = all.iter().filter(|one| one["name"] == name);
        found.next().unwrap_or_else(|| panic!("{name} in {all:?}"))
    };
    let p50 = |of: &serde_json::Value, figure: &str| {
        of[figure]["p50"].as_f64().unwrap_or_else(|| panic!("{of}"))
    };
    let (checkout, payment) = (named("Checkout"), named("Payment"));
    let count = checkout["completed"].as_u64();
    assert!(count.is_some_and(|count| count > 10), "{checkout}");
    assert!(p50(payment, "time_ms") >= PAYMENT_MS as f64, "{payment}");
    // Users think for 20 ms or more before they choose a card.
    let (time, elapsed) = (p50(checkout, "time_ms"), p50(checkout, "elapsed_ms"));
    assert!(elapsed >= time + 15.0, "{checkout}");
    assert!(named("session")["completed"].as_u64() > Some(10), "{all:?}");
    let thresholds = trial["thresholds"].as_array().expect("thresholds");
    let mut own = thresholds
        .iter()
        .filter(|one| !one["transaction"].is_null());
    assert_eq!(own.clone().count(), 4, "{thresholds:?}");
    assert!(
        own.all(|one| one["holds"] == true),
        "{thresholds:?} {}",
        ran.0
    );
}
