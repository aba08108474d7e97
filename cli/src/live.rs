//! Decides whether a run has a live page, and at which address: by the command line, else by default if the user of the
//! run's terminal can open it in a browser.

use std::io::{IsTerminal, stderr};
use std::net::{AddrParseError, Ipv4Addr, SocketAddr};

use clap::Args;
use lab_live::Token;

use crate::history::ANY_PORT;

/// The value for no page.
const OFF: &str = "off";

/// The live page of a run.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// Address of the live page, which shows the run and can pause, skip, and stop it; its URL, with a
    /// token, is printed. By default, a run on a terminal has a page for this machine only, but not in
    /// a pipeline (CI) or over SSH
    #[arg(
        long,
        env = "PLIMSOLL_LIVE",
        value_name = "ADDR|off",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ANY_PORT,
        value_parser = asked
    )]
    live: Option<PageFlag>,
    /// Token in the page's address (default: random). With a given token, a Prometheus configuration
    /// can name `ADDR/TOKEN/metrics` before the run. At least 16 letters, digits, `-`, or `_`
    #[arg(long, env = "PLIMSOLL_LIVE_TOKEN", value_name = "TOKEN", value_parser = token, hide_env_values = true)]
    live_token: Option<Token>,
    /// Serve no page; `PLIMSOLL_LIVE=off` makes that permanent
    #[arg(long, overrides_with = "live")]
    no_live: bool,
}

/// The option for the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageFlag {
    Off,
    At(SocketAddr),
}

/// The address of a run's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// No page.
    None,
    /// A default page: the run continues without it if it can't be served.
    Offered(SocketAddr),
    /// A requested page.
    Asked(SocketAddr),
}

impl LiveArgs {
    pub(crate) fn page(&self) -> Page {
        let says = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        self.page_where(stderr().is_terminal() && has_browser(says))
    }

    /// Returns the token in the page's address.
    pub(crate) fn token(&self) -> Option<Token> {
        self.live_token.clone()
    }

    fn page_where(&self, is_seen: bool) -> Page {
        match (self.no_live, self.live) {
            (true, _) | (_, Some(PageFlag::Off)) => Page::None,
            (false, Some(PageFlag::At(address))) => Page::Asked(address),
            (false, None) if is_seen => Page::Offered(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            (false, None) => Page::None,
        }
    }
}

/// Returns true if the terminal's user has a browser that can reach this machine's loopback addresses. Pipelines may
/// have terminals without a user, and SSH's terminal is on another machine.
fn has_browser(says: impl Fn(&str) -> Option<String>) -> bool {
    let is_pipeline = says("CI").is_some_and(|text| !matches!(text.as_str(), "false" | "0"));
    let is_plain = says("TERM").is_none_or(|term| term == "dumb");
    !is_pipeline && !is_plain && says("SSH_CONNECTION").is_none()
}

fn token(text: &str) -> Result<Token, String> {
    let wanted = || "16 letters, digits, `-`, or `_` at least, 128 at most".to_owned();
    Token::given(text).ok_or_else(wanted)
}

fn asked(text: &str) -> Result<PageFlag, AddrParseError> {
    match text {
        OFF => Ok(PageFlag::Off),
        address => address.parse().map(PageFlag::At),
    }
}

/// Parses the address of `watch`, which always needs its page: `PLIMSOLL_LIVE=off` is about runs.
pub(crate) fn watched(text: &str) -> Result<SocketAddr, AddrParseError> {
    match text {
        OFF => ANY_PORT.parse(),
        address => address.parse(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        live: LiveArgs,
    }

    fn page(flags: &[&str], is_seen: bool) -> Page {
        let line = Line::try_parse_from([&["run"], flags].concat());
        line.unwrap_or_else(|error| panic!("{error}"))
            .live
            .page_where(is_seen)
    }

    #[test]
    fn there_is_a_page_where_somebody_sees_it_unless_the_flags_say_otherwise() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let at = SocketAddr::from(([127, 0, 0, 1], 8081));
        for (flags, seen, unseen) in [
            (&[][..], Page::Offered(any), Page::None),
            (&["--live"][..], Page::Asked(any), Page::Asked(any)),
            (
                &["--live=127.0.0.1:8081"][..],
                Page::Asked(at),
                Page::Asked(at),
            ),
            (&["--live=off"][..], Page::None, Page::None),
            (&["--no-live"][..], Page::None, Page::None),
            (&["--live", "--no-live"][..], Page::None, Page::None),
            (
                &["--no-live", "--live"][..],
                Page::Asked(any),
                Page::Asked(any),
            ),
        ] {
            assert_eq!(page(flags, true), seen, "{flags:?}");
            assert_eq!(page(flags, false), unseen, "{flags:?}");
        }
    }

    #[test]
    fn pipelines_and_terminals_of_other_machines_have_no_browser() {
        let seen = |set: &[(&str, &str)]| {
            has_browser(|name| {
                let of_name = set.iter().find(|(set, _)| *set == name);
                of_name.map(|(_, text)| (*text).to_owned())
            })
        };
        let term = ("TERM", "xterm-256color");
        assert!(seen(&[term]));
        assert!(seen(&[term, ("CI", "false")]));
        assert!(!seen(&[term, ("CI", "true")]));
        assert!(!seen(&[
            term,
            ("SSH_CONNECTION", "10.0.0.7 50022 10.0.0.5 22")
        ]));
        assert!(!seen(&[("TERM", "dumb")]));
        assert!(!seen(&[]));
    }

    #[test]
    fn watching_has_an_address_whatever_runs_have() {
        assert_eq!(watched(OFF), ANY_PORT.parse());
        assert_eq!(watched("127.0.0.1:8081"), "127.0.0.1:8081".parse());
        assert!(watched("nowhere").is_err());
    }
}
