//! Requests of a script that are sent at the same time, on sessions beside the user's, as those of `parallel`.

use std::collections::{BTreeMap, VecDeque};

use futures_util::stream::{FuturesUnordered, StreamExt};
use lab_client::Unmade;
use lab_script::{Answer, Request};

use super::convert::{answer, parts, unsent};
use super::turns::{Session, log_unsent, why_unmade};
use crate::client::Client;
use crate::parallel::{Ready, Sum};
use crate::session::DueRequest;
use crate::user::{Due, Life, Shared};

/// Most requests of a user at once, as in k6; and to one server.
pub(crate) const MOST_AT_ONCE: usize = 20;
const MOST_AT_ONCE_OF_SERVER: usize = 6;

impl<C: Client> Shared<C> {
    /// Sends all requests, and returns their responses; `None` if the user leaves.
    pub(super) async fn answer_all(
        &self,
        life: &mut Life<C>,
        session: &mut Session<'_>,
        requests: Vec<Request>,
    ) -> Option<Vec<Answer>> {
        let due = self.next_due(life, session).await?;
        self.within_trial(due.meant).await;
        let from = due.planned.unwrap_or(due.meant);
        self.transactions.due(life.user.place, from);
        // Each request in progress is recorded in a slot of its own.
        self.clear_under_way(life.user.place);
        let steps: Vec<usize> = requests
            .iter()
            .map(|one| session.playing.step(one.name.as_deref(), one.site))
            .collect();
        let mut sum = Sum::default();
        let mut answers: Vec<Answer> = vec![Answer::default(); requests.len()];
        let mut ready = self.made_of(life, (&requests, &steps), (&mut sum, &mut answers));
        let queue = ready.iter().map(|one| (steps[one.number], from));
        self.parallel_sessions
            .wait(life.user.place, queue.collect());
        let mut places: Vec<usize> = (0..MOST_AT_ONCE).rev().collect();
        let mut under_way = FuturesUnordered::new();
        let mut of_servers: BTreeMap<&str, usize> = BTreeMap::new();
        let of = |one: &Ready| server(&requests[one.number]);
        let mut turn = due;
        loop {
            while turn.meant < life.state.until
                && under_way.len() < MOST_AT_ONCE
                && let Some(at) = next(ready.iter().map(of), &of_servers)
                && let (Some(one), Some(place)) = (ready.remove(at), places.pop())
            {
                *of_servers.entry(of(&one)).or_default() += 1;
                self.parallel_sessions.next(life.user.place, at);
                let step = steps[one.number];
                let asked = DueRequest {
                    request: self.script.session[step].requests.start,
                    step,
                    due: turn,
                    blocked: turn.meant.saturating_sub(due.meant),
                    is_made: true,
                    token: None,
                };
                under_way.push(self.send_parallel(life, (step, asked), (one, place)));
            }
            let Some(mut over) = under_way.next().await else {
                break;
            };
            places.push(over.place);
            let busy = of_servers.entry(server(&requests[over.number]));
            busy.and_modify(|busy| *busy -= 1);
            turn = Due {
                planned: None,
                meant: over.life.state.at.max(due.meant),
            };
            let whole = self.client.take_answer(&mut over.life.user.session);
            let (number, went) = (over.number, (over.outcome.class, over.outcome.phases));
            answers[number] = answer(whole, went, &requests[number].url);
            self.take_over(life, &mut sum, over);
        }
        drop(under_way);
        self.parallel_sessions
            .wait(life.user.place, VecDeque::new());
        let step = steps.first().copied().unwrap_or_default();
        self.sum_up(life, &sum, due, (step, Vec::new()));
        (!life.state.leaves() || ready.is_empty()).then_some(answers)
    }

    /// Renders all requests, in their order.
    fn made_of(
        &self,
        life: &mut Life<C>,
        (requests, steps): (&[Request], &[usize]),
        (sum, answers): (&mut Sum, &mut [Answer]),
    ) -> VecDeque<Ready> {
        let mut ready = VecDeque::with_capacity(requests.len());
        for (number, request) in requests.iter().enumerate() {
            self.set_cookies(life, request);
            let id = self.script.session[steps[number]].requests.start;
            let made = parts(request)
                .map_err(Unmade::Failed)
                .and_then(|parts| self.client.make_of(&life.user.session, id, &parts));
            let user = &mut *life.user;
            user.scope.begin_request();
            match made {
                Ok(made) => ready.push_back(Ready {
                    number,
                    made,
                    scope: user.scope.branch(false),
                    timing: user.timing.clone(),
                }),
                Err(unmade) => {
                    let why = why_unmade(unmade);
                    if let Some(playing) = &self.playing {
                        log_unsent(playing, request, &why);
                    }
                    answers[number] = unsent(&why, &request.url);
                    sum.fail(Some(lab_client::ErrorClass::Check));
                    let step = self.first_step + steps[number];
                    let mut recorder = self.recorder.borrow_mut();
                    recorder.unmade(self.clock.nanos(), step, why.into());
                }
            }
        }
        ready
    }
}

/// Returns the place of the first request whose server may get one more.
fn next<'r>(
    mut servers: impl Iterator<Item = &'r str>,
    under_way: &BTreeMap<&str, usize>,
) -> Option<usize> {
    servers.position(|server| {
        let busy = under_way.get(server).copied().unwrap_or_default();
        busy < MOST_AT_ONCE_OF_SERVER
    })
}

/// Returns the server of a request's address.
fn server(request: &Request) -> &str {
    let rest = request.url.split_once("://");
    let rest = rest.map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_six_requests_at_once_and_others_go_before() {
        let mut under_way = BTreeMap::from([("a", 5)]);
        let queue = ["a", "a", "b"];
        assert_eq!(next(queue.into_iter(), &under_way), Some(0));
        under_way.insert("a", 6);
        assert_eq!(next(queue.into_iter(), &under_way), Some(2));
        under_way.insert("b", 6);
        assert_eq!(next(queue.into_iter(), &under_way), None);
    }
}
