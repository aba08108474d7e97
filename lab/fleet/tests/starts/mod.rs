//! Differences between the agents' start times, over many trials.

use std::time::Duration;

use lab_driver::Assignment;
use lab_fleet::Crew;

use super::{Web, drive, run_by};

/// Prints start differences, as many as `PLIMSOLL_STARTS` requests (3): as seen by the server, whose threads wait for a
/// core themselves, and the later agent's lateness by its own clock, with the offset error printed below. Each agent
/// has one user: with more, the first ones would keep the server from the other agent's. Nothing is asserted about
/// times.
pub(super) fn print(crew: &Crew, web: &Web) {
    let wanted = std::env::var("PLIMSOLL_STARTS").ok();
    let starts: usize = wanted
        .map_or(3, |text| text.parse().expect("a whole number"))
        .max(1);
    let drive = Assignment {
        users: 2,
        window: Duration::from_millis(100),
        ..drive(web, Duration::from_millis(200))
    };
    let (mut apart, mut late) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        web.asked.lock().unwrap().clear();
        let (summary, windows) = run_by(crew, &drive, || {});
        assert_eq!(summary.unwrap().errors, 0);
        apart.push(first_apart(web));
        late.push(Duration::from_micros(windows[0].lateness.max()));
    }
    for (what, mut times) in [("apart", apart), ("late", late)] {
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        println!(
            "fleet: first requests of agents whose clocks are 1,000 s apart were {what} by {:?} (median of {starts}), \
             {:?} (nine of ten), {:?} (most)",
            at(50),
            at(90),
            at(100)
        );
    }
}

/// Returns the gap between the first requests of two agents' users. Users alternate between agents.
fn first_apart(web: &Web) -> Duration {
    let asked = web.asked.lock().unwrap();
    let of_users = asked.iter().filter_map(|(at, line)| {
        let user = line.strip_prefix("GET /get/")?.split('/').next()?;
        Some((*at, user.parse::<usize>().unwrap()))
    });
    let mut first = [Duration::MAX; 2];
    for (at, user) in of_users {
        first[user % 2] = first[user % 2].min(at);
    }
    first[0].abs_diff(first[1])
}
