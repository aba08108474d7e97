//! Moments as text for a terminal.

use std::fmt::Write as _;

use lab_client::{Side as Speaker, Version};

use crate::model::{
    Captured, Ended, Exchanged, Line, Message, Moment, NotDone, Phase, Timing, Totals, coding,
    header,
};
use crate::pretty::{body, cut, one_line};

/// The style of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// With colours.
    pub colour: bool,
    /// Columns.
    pub width: usize,
    /// Most lines of a body; unlimited and unwrapped if `None`.
    pub lines: Option<usize>,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self.colour && !text.is_empty() {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// The limits of a body, in lines and characters.
    fn most(self) -> (usize, usize) {
        match self.lines {
            Some(lines) => (lines, self.width.saturating_sub(2).max(20)),
            None => (usize::MAX, usize::MAX),
        }
    }
}

/// One moment, with a line break at its end.
#[must_use]
pub fn moment(moment: &Moment, style: Style) -> String {
    match moment {
        Moment::Exchanged(exchanged) => exchange(exchanged, style),
        Moment::Logged(line) => {
            let lines = line.lines().map(|line| format!("{}\n", one_line(line)));
            style.paint(DIM, &format!("{}\n", lines.collect::<String>()))
        }
        Moment::NotDone { step, why } => {
            let why = match why {
                NotDone::Chance => "not in this session, by its share",
                NotDone::Condition => "not in this session: its `when` doesn't hold",
                NotDone::Other => "not done",
            };
            let line = format!("{}: {why}\n\n", one_line(step));
            style.paint(DIM, &line)
        }
    }
}

/// The totals, in a line.
#[must_use]
pub fn totals(totals: Totals, style: Style) -> String {
    let Totals {
        well,
        failed,
        skipped,
    } = totals;
    let requests = match well + failed {
        1 => "1 request".to_owned(),
        n => format!("{n} requests"),
    };
    let mut text = match (failed, well) {
        (0, 0) => "nothing was sent".to_owned(),
        (0, _) => format!("{requests}: all went as expected"),
        (_, 0) => format!("{requests}: none went as expected"),
        _ => format!("{requests}: {well} as expected, {failed} not"),
    };
    if skipped > 0 {
        let _ = write!(text, "; {skipped} skipped, as what they need was not there");
    }
    let colour = match (failed, well) {
        (0, 0) => YELLOW,
        (0, _) => GREEN,
        _ => RED,
    };
    style.paint(colour, &text) + "\n"
}

fn exchange(exchanged: &Exchanged, style: Style) -> String {
    let mut out = title(exchanged, style);
    if is_unsent(exchanged) {
        let line = cut(&one_line(&exchanged.line), style.width.saturating_sub(2));
        let _ = writeln!(out, "{}", style.paint(DIM, &format!("  {line}")));
    }
    let last = exchanged.messages.len().saturating_sub(1);
    for (n, message) in exchanged.messages.iter().enumerate() {
        show(message, style, &mut out);
        if n < last {
            let note = "  and again, or on to where the answer sends:";
            let _ = writeln!(out, "{}", style.paint(DIM, note));
        }
    }
    for line in &exchanged.lines {
        said(line, style, &mut out);
    }
    if let Some(text) = timing(&exchanged.timing).filter(|_| !exchanged.lines.is_empty()) {
        let _ = writeln!(out, "{}", style.paint(DIM, &format!("  {text}")));
    }
    verdict(exchanged, style, &mut out);
    for one in &exchanged.captured {
        let _ = writeln!(out, "  {}", captured(one, style));
    }
    out.push('\n');
    out
}

fn is_unsent(exchanged: &Exchanged) -> bool {
    exchanged.messages.is_empty() && exchanged.lines.is_empty()
}

/// A message of one side, with its mark before each line.
fn said(line: &Line, style: Style, out: &mut String) {
    let (mark, colour) = match line.side {
        Speaker::User => (">", CYAN),
        Speaker::Server => ("<", GREEN),
    };
    let mark = style.paint(colour, mark);
    let bytes = line.text.as_bytes();
    let shown = body(bytes, (bytes.len() as u64, 0), None, None, style.most());
    if shown.lines.is_empty() {
        let _ = writeln!(out, "{mark} {}", style.paint(DIM, "(nothing)"));
    }
    for line in &shown.lines {
        let _ = writeln!(out, "{mark} {line}");
    }
    if let Some(more) = shown.more {
        let _ = writeln!(out, "{mark} {}", style.paint(DIM, &format!("({more})")));
    }
}

/// `── setup · Log in ───────────── 12.3 ms`.
fn title(exchanged: &Exchanged, style: Style) -> String {
    let mut name = match exchanged.phase {
        Phase::Setup => format!("setup · {}", one_line(&exchanged.step)),
        Phase::Session => one_line(&exchanged.step),
    };
    if let Some(round) = exchanged.round {
        let _ = write!(name, " · round {}", round + 1);
    }
    if let (n, of @ 2..) = exchanged.place {
        let _ = write!(name, " · {} of {of}", n + 1);
    }
    let name = cut(&name, style.width.saturating_sub(16).max(10));
    let time = match is_unsent(exchanged) {
        true => String::new(),
        false => format!(" {:.1} ms", exchanged.took_ms),
    };
    let used = name.chars().count() + time.chars().count() + 4;
    let line = "─".repeat(style.width.saturating_sub(used).max(2));
    format!(
        "{} {} {}{time}\n",
        style.paint(DIM, "──"),
        style.paint(BOLD, &name),
        style.paint(DIM, &line)
    )
}

fn show(message: &Message, style: Style, out: &mut String) {
    let request = &message.request;
    // HTTP/1.1 is the default and is not shown.
    let spoken = match message.version {
        Version::One => String::new(),
        version => format!(" {version}"),
    };
    let first = format!("{} {}{spoken}", request.method, request.target);
    let sent = Side {
        mark: style.paint(CYAN, ">"),
        first: style.paint(BOLD, &fit(&first, style)),
        headers: &request.headers,
    };
    sent.head(style, out);
    let whole = (request.body.len() as u64, 0);
    sent.body(
        &request.body,
        whole,
        coding(&request.headers).as_deref(),
        style,
        out,
    );
    let Some(response) = &message.response else {
        return;
    };
    let colour = match response.status {
        ..400 => GREEN,
        400.. => RED,
    };
    let first = format!("{} {}", response.status, response.reason);
    let came = Side {
        mark: style.paint(colour, "<"),
        first: style.paint(colour, &fit(&first, style)),
        headers: &response.headers,
    };
    came.head(style, out);
    let whole = (response.body_bytes, response.left_out_bytes);
    came.body(
        &response.body,
        whole,
        response.coding().as_deref(),
        style,
        out,
    );
    if let Some(text) = timing(&message.timing) {
        let _ = writeln!(out, "{}", style.paint(DIM, &format!("  {text}")));
    }
}

fn fit(text: &str, style: Style) -> String {
    match style.lines {
        Some(_) => cut(&one_line(text), style.width.saturating_sub(2).max(20)),
        None => one_line(text),
    }
}

/// The message of one side.
struct Side<'a> {
    mark: String,
    first: String,
    headers: &'a [(String, String)],
}

impl Side<'_> {
    fn head(&self, style: Style, out: &mut String) {
        let _ = writeln!(out, "{} {}", self.mark, self.first);
        for (name, value) in self.headers {
            let line = fit(&format!("{name}: {value}"), style);
            let _ = writeln!(out, "{} {}", self.mark, style.paint(DIM, &line));
        }
    }

    fn body(
        &self,
        bytes: &[u8],
        whole: (u64, u64),
        encoding: Option<&str>,
        style: Style,
        out: &mut String,
    ) {
        let kind = header(self.headers, "content-type");
        let shown = body(bytes, whole, kind, encoding, style.most());
        if shown.lines.is_empty() && shown.more.is_none() {
            return;
        }
        let _ = writeln!(out, "{}", self.mark);
        for line in &shown.lines {
            let _ = writeln!(out, "{} {line}", self.mark);
        }
        if let Some(more) = shown.more {
            let _ = writeln!(
                out,
                "{} {}",
                self.mark,
                style.paint(DIM, &format!("({more})"))
            );
        }
    }
}

fn timing(timing: &Timing) -> Option<String> {
    let parts = [
        ("connect", timing.connect_ms),
        ("wait", timing.wait_ms),
        ("receive", timing.receive_ms),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, ms)| Some(format!("{name} {:.1} ms", ms?)))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn verdict(exchanged: &Exchanged, style: Style, out: &mut String) {
    let (colour, lines) = match &exchanged.ended {
        Ended::Well => return,
        Ended::Failed { class, detail } => (
            RED,
            vec![
                format!("✗ {}: {}", class.name(), one_line(detail)),
                format!("  expected: {}", one_line(&exchanged.expected)),
            ],
        ),
        Ended::Unmade { detail } => (RED, vec![format!("✗ not sent: {}", one_line(detail))]),
        Ended::Skipped { empty } if empty.is_empty() => (
            YELLOW,
            vec!["– skipped: something that it needs is empty".to_owned()],
        ),
        Ended::Skipped { empty } => (
            YELLOW,
            vec![format!("– skipped: nothing (left) in {}", empty.join(", "))],
        ),
    };
    for line in lines {
        // The response's start is shown above in full; the advice for a missing one is at the end of the line.
        let line = cut(&line, style.width.max(40) * 4);
        let _ = writeln!(out, "{}", style.paint(colour, &line));
    }
}

fn captured(one: &Captured, style: Style) -> String {
    let name = style.paint(BOLD, &one.variable);
    let first = cut(
        &one_line(&one.first),
        style.width.saturating_sub(20).max(20),
    );
    match one.count {
        0 => format!("{name} = {}", style.paint(YELLOW, "nothing")),
        1 => format!("{name} = {first}"),
        n => format!("{name} = {n} entries, first {first}"),
    }
}
