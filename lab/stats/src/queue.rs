//! A single server with a queue: what its response times must be.
//!
//! Used to measure the measurer: a server whose service times are known, under arrivals that are
//! known, has response times that can be computed, and a lab that reports others is wrong.

/// Response times of a server that serves one after the other, in order of arrival, by Lindley's
/// recursion: a request begins when it arrived or when the one before it is done, whichever is later.
///
/// `arrivals` ascend; both are in the same unit. Source: Lindley, "The Theory of Queues with a Single
/// Server", Proc. Cambridge Phil. Soc. 48 (1952).
pub fn lindley<'a>(arrivals: &'a [f64], services: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    let mut done = f64::NEG_INFINITY;
    arrivals
        .iter()
        .zip(services)
        .map(move |(arrival, service)| {
            done = done.max(*arrival) + service;
            done - arrival
        })
}

/// M/M/1: Poisson arrivals, exponential service, one server. Source: Kleinrock, *Queueing Systems*,
/// volume 1, 1975, section 3.2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mm1 {
    arrivals_per_s: f64,
    service_s: f64,
}

impl Mm1 {
    /// `None` unless both are positive and the server keeps up (utilisation below 1).
    #[must_use]
    pub fn new(arrivals_per_s: f64, service_s: f64) -> Option<Self> {
        let sound = arrivals_per_s > 0.0 && service_s > 0.0 && arrivals_per_s * service_s < 1.0;
        sound.then_some(Self {
            arrivals_per_s,
            service_s,
        })
    }

    /// ρ, the part of the time that the server is busy.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.arrivals_per_s * self.service_s
    }

    /// Mean response time, in seconds: S ÷ (1 − ρ).
    #[must_use]
    pub fn response_s(&self) -> f64 {
        self.service_s / (1.0 - self.utilisation())
    }

    /// The response time, in seconds, that the part `p` of the requests doesn't exceed: response
    /// times are exponential, too.
    #[must_use]
    pub fn response_quantile_s(&self, p: f64) -> f64 {
        -(-p).ln_1p() * self.response_s()
    }

    /// Requests in the server, waiting or served: ρ ÷ (1 − ρ), which Little's law gives as well.
    #[must_use]
    pub fn inside(&self) -> f64 {
        self.utilisation() / (1.0 - self.utilisation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_by_hand() {
        let responses: Vec<f64> = lindley(&[0.0, 1.0, 2.0, 10.0], &[2.0, 2.0, 1.0, 1.0]).collect();
        assert_eq!(responses, [2.0, 3.0, 3.0, 1.0]);
        assert_eq!(lindley(&[], &[1.0]).count(), 0);
    }

    #[test]
    fn the_formulas_agree() {
        let queue = Mm1::new(80.0, 0.01).unwrap();
        assert!((queue.utilisation() - 0.8).abs() < 1e-12);
        assert!((queue.response_s() - 0.05).abs() < 1e-12);
        assert!(
            (queue.inside() - 80.0 * queue.response_s()).abs() < 1e-9,
            "Little's law"
        );
        assert!((queue.response_quantile_s(0.5) - 0.05 * std::f64::consts::LN_2).abs() < 1e-12);
        assert_eq!(Mm1::new(100.0, 0.01), None);
        assert_eq!(Mm1::new(f64::NAN, 0.01), None);
    }
}
