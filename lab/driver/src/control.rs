//! The orders to the workers: the next setup step, begin, stop. Orders are never withdrawn.

use tokio::sync::watch;

use lab_client::Nanos;

/// The order to all workers.
#[derive(Debug)]
pub(crate) struct Control(watch::Sender<Order>);

/// How far the workers may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// The current setup step; all users have finished the earlier ones.
    pub(crate) setup_step: usize,
    /// The trial's 0 on the workers' clock, once it has begun.
    pub(crate) zero: Option<Nanos>,
    /// Stop at once.
    pub(crate) stop: bool,
}

impl Control {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Order::default()))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Order> {
        self.0.subscribe()
    }

    pub(crate) fn setup_step(&self, step: usize) {
        self.0.send_modify(|order| order.setup_step = step);
    }

    /// Sets the trial's 0, once; later calls change nothing. Returns the valid value.
    pub(crate) fn begin(&self, zero: Nanos) -> Nanos {
        self.0.send_modify(|order| {
            order.zero.get_or_insert(zero);
        });
        self.0.borrow().zero.unwrap_or(zero)
    }

    /// Adds an order from another process; earlier orders stay valid.
    pub(crate) fn adopt(&self, new: Order) {
        self.0.send_modify(|order| {
            order.setup_step = order.setup_step.max(new.setup_step);
            order.zero = order.zero.or(new.zero);
            order.stop |= new.stop;
        });
    }

    /// Returns the trial's 0, if the trial has begun.
    pub(crate) fn zero(&self) -> Option<Nanos> {
        self.0.borrow().zero
    }

    pub(crate) fn stop(&self) {
        self.0.send_modify(|order| order.stop = true);
    }
}
