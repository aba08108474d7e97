//! The phases of a request, over real sockets: known delays appear in their phases.

use crate::common::{Make, Observed, Peer, Server, ms, pass, run_until};
use lab_counts::Hist;
use lab_driver::Phase;
use lab_workload::Wait;

fn phase(observed: &Observed, step: usize, phase: Phase) -> Hist<2> {
    let mut sum = Hist::<2>::default();
    for window in &observed.windows {
        sum.add(&window.steps[step].times.phases[phase as usize])
            .unwrap();
    }
    sum
}

/// Responds after 40 ms, with the second half of the body 60 ms later.
fn slow(mut peer: Peer<std::net::TcpStream>) {
    while peer.request().is_some() {
        pass(ms(40));
        let began = peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        pass(ms(60));
        if !(began && peer.send("hello")) {
            break;
        }
    }
}

#[test]
fn a_slow_beginning_is_waited_for_and_a_slow_rest_received() {
    let server = Server::start(slow);
    let drive = Make::new(&[])
        .step(Wait::Constant(ms(5)), "GET /slow")
        .drive(&server.base());
    let received = |observed: &Observed| phase(observed, 0, Phase::Receive).max();
    let observed = run_until(drive, |observed| {
        observed.done() >= 5 && received(observed) >= 20_000
    });
    let count = observed.transactions(0);
    let (wait, receive) = (
        phase(&observed, 0, Phase::Wait),
        phase(&observed, 0, Phase::Receive),
    );
    assert_eq!((wait.len(), receive.len()), (count, count));
    // A client that reads the beginning late, on a busy machine, has waited longer, and then receives for less.
    let (least, received) = (wait.min(), receive.max());
    let whole = wait.mean() + receive.mean();
    assert!(
        least >= 39_000 && received >= 20_000 && whole >= 98_000.0,
        "{least} {received} {whole}"
    );
    // One connection, kept; its server's name was resolved once, before the load.
    assert_eq!(phase(&observed, 0, Phase::Connect).len(), 1);
    assert_eq!(phase(&observed, 0, Phase::Tls).len(), 0);
    assert_eq!(phase(&observed, 0, Phase::Dns).len(), 0);
    // Together they are the whole.
    let whole = observed.times(0).mean();
    let connect = phase(&observed, 0, Phase::Connect).mean() / count as f64;
    let parts = connect + wait.mean() + receive.mean();
    assert!((parts / whole - 1.0).abs() < 0.1, "{parts} of {whole}");
}

#[test]
fn a_failed_request_has_no_phases_and_another_server_is_asked_for() {
    let other = Server::answering(|_| crate::common::ok(""));
    let there = other.base().to_string().replace("127.0.0.1", "localhost");
    let server = Server::answering(|_| "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n".to_owned());
    let drive = Make::new(&[])
        .step(Wait::Constant(ms(5)), "GET /fails")
        .step(Wait::None, &format!("GET {there}/there"))
        .drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 6);
    assert!(
        Phase::ALL
            .iter()
            .all(|of| phase(&observed, 0, *of).is_empty())
    );
    let count = observed.transactions(1);
    // The other request replaces the connection each time.
    for of in [Phase::Dns, Phase::Connect, Phase::Wait, Phase::Receive] {
        assert_eq!(phase(&observed, 1, of).len(), count, "{of:?}");
    }
}
