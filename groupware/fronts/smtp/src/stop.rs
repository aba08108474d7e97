//! Waits for the server's end.

use tokio::sync::watch;

/// Waits until the server is told to stop.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
