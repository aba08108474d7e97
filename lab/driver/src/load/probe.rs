//! The probe: one request at fixed times, in parallel with the load.

use std::time::Duration;

use crate::client::Client;
use crate::renewal::{Authorized, Need};
use crate::user::{Due, Life, Member, Next, Sending, User};
use lab_client::RequestId;
use lab_client::time::nanos;

/// Sends the probe at its planned times from the trial's 0 on, until the task is dropped. Response times count from the
/// planned time, even if the previous response arrived too late to send then.
pub(crate) async fn run_probe<C: Client>(
    shared: Member<C>,
    user: Box<User<C>>,
    (request, every): (RequestId, Duration),
) {
    let mut life = Life::new(user, &shared.timers);
    let every = nanos(every).max(1_000);
    let step = shared.probe_step;
    let mut planned = shared.zero.get();
    let mut free_from = planned;
    loop {
        planned = planned.saturating_add(every);
        let meant = planned.max(free_from);
        life.sleep_until(&shared.client, meant).await;
        let mut due = Due {
            planned: Some(planned),
            meant,
        };
        let mut blocked = 0;
        if shared.lacks_token(&mut life.user.scope, request..request + 1, None) {
            match shared.authorize(&mut life, due, Need::default()).await {
                Authorized::Due(after, waited) => (due, blocked) = (after, waited),
                Authorized::Without(_) => {
                    shared.skip(step);
                    free_from = life.state.at.max(life.state.not_before);
                    continue;
                }
            }
        }
        let mut sending = Sending::new(step, due, blocked);
        loop {
            shared.within_trial(due.meant).await;
            let exchange = shared.send(&mut life.user, request, false).await;
            let ended = shared.record((exchange, Vec::new()), &mut sending, due);
            life.state.take(&ended, due, shared.failure_pause);
            let Some(at) = ended.at else { break };
            free_from = at.max(life.state.not_before);
            if ended.next != Next::Redirect {
                break;
            }
            due = Due {
                planned: None,
                meant: at,
            };
        }
    }
}
