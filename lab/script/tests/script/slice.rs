//! A script with a second file, from its text to its requests.

use lab_script::{Outcome, SiteKind, Turn};

use crate::play::{Play, answered, call, load};

const SHOP: &str = r#"import http from 'k6/http';
import { sleep, check } from 'k6';
import { helper } from './lib/helper.js';

export const options = { vus: 10, thresholds: { http_req_duration: ['p(95)<500'] } };

export default function () {
  const r = http.get(`${__ENV.URL}/items/${1}`);
  check(r, { 'is found': (r) => r.status === 200, 'has an id': (r) => r.json().id === 7 });
  helper(r)
  sleep(1)
}
"#;

const HELPER: &str = r#"import http from 'k6/http';
const paths = ['/a', '/b'];
export function helper(r) {
  paths.forEach((path) => http.post(`${__ENV.URL}${path}`, r.body));
}
"#;

fn files() -> Vec<(&'static str, &'static str)> {
    vec![("shop.js", SHOP), ("lib/helper.js", HELPER)]
}

#[test]
fn plays_script_of_two_files() {
    let program = load(&files());
    assert_eq!(program.functions(), ["default"]);
    assert_eq!(program.options()["vus"], 10);
    assert_eq!(program.variables(), ["URL"]);
    let sites: Vec<_> = program
        .sites()
        .iter()
        .map(|site| (site.kind, site.line, site.name.as_str()))
        .collect();
    assert!(
        sites.contains(&(SiteKind::Request, 8, "GET /items/{…}")),
        "{sites:?}"
    );
    let mut play = Play::new(&program);
    assert_eq!(play.iteration(0), Ok(None));
    assert_eq!(
        play.sent,
        [
            "GET http://shop/items/1",
            "POST http://shop/a",
            "POST http://shop/b"
        ]
    );
    assert_eq!(play.waits, [1_000_000]);
    assert_eq!(play.checks(), ["is found", "has an id"]);
}

#[test]
fn plays_thousand_users_at_once() {
    let program = load(&files());
    let mut play = Play::new(&program);
    let mut turns: Vec<Turn> = (0..1_000)
        .map(|user| play.runtime.begin(user, &call("default", user, 0)))
        .collect();
    let mut rounds = 0;
    while turns.iter().any(|turn| !matches!(turn, Turn::Done { .. })) {
        rounds += 1;
        for (user, turn) in turns.iter_mut().enumerate() {
            let outcome = match turn {
                Turn::Request(request) => Outcome::Answers(vec![answered(request)]),
                Turn::Wait { .. } => Outcome::Waited,
                Turn::Done { .. } => continue,
                other => panic!("{other:?}"),
            };
            *turn = play.runtime.resume(user as u32, outcome);
        }
        play.runtime.events(&mut play.events);
    }
    assert_eq!(rounds, 4);
    assert_eq!(play.checks().len(), 2_000);
}
