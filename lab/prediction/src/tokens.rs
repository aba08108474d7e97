//! Predicts token requests, whose number depends on the lifetime that the server grants.

use lab_workload::{Request, Session, Step};

use crate::prediction::{Prediction, Span};

/// Adds token requests to the prediction of a session, whose last step counts them: from none to one before each
/// attempt of a request that sends a token.
pub(crate) fn with_tokens(mut prediction: Prediction, session: &Session) -> Prediction {
    let mut most = 0.0;
    let (mut attempts, mut most_attempts) = (0.0, 1.0_f64);
    for (step, predicted) in session.steps.iter().zip(&prediction.steps) {
        // A name counts requests of the step before it.
        if !step.is_name() {
            attempts = attempts_with_token(step);
            most_attempts = most_attempts.max(attempts);
        }
        let requests = predicted
            .range
            .map_or(predicted.requests as f64, |range| range.high);
        most += requests * attempts;
    }
    let mut whole = prediction.bounds();
    let none_to = |high: f64| Span { low: 0.0, high };
    whole
        .hold
        .add(none_to(most.min(whole.hold.high * most_attempts)));
    whole.trial.add(none_to(most));
    prediction.range = Some(whole);
    if let Some(tokens) = prediction.steps.last_mut() {
        tokens.range = Some(none_to(most));
    }
    prediction
}

/// The most attempts of a request of the step; 0 if none sends a token.
fn attempts_with_token(step: &Step) -> f64 {
    match step.requests.iter().any(Request::shows_token) {
        true => 1.0 + step.retry.map_or(0.0, |retry| f64::from(retry.at_most)),
        false => 0.0,
    }
}
