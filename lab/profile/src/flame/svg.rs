//! A flame graph as SVG. Positions and widths are in percent and text keeps its size, so it is readable on a page of
//! any width; longer text is truncated. The page's script zooms and searches.

use std::fmt::Write as _;

use super::{Frame, Graph, Tint};
use crate::svg::{escaped, hundredths};

/// Height of a frame with the gap to the next.
const ROW: usize = 18;
/// The widest that a page makes the graph, in letters.
const LETTERS: f64 = 190.0;
/// A frame with room for fewer letters shows no name.
const FEWEST: usize = 3;
/// Letters of a name in a frame's title.
const MOST_OF_TITLE: usize = 200;

impl Graph {
    /// Returns the graph as an SVG element; the page's style sheet sets the colours. `figure` formats numbers.
    pub fn svg(&self, figure: &dyn Fn(f64) -> String) -> String {
        let name = escaped(&self.name);
        let height = self.depth() * ROW;
        let mut text = format!(
            "<svg class=\"flames\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{name}\">"
        );
        for one in &self.frames {
            frame(&mut text, one, figure);
        }
        text.push_str("</svg>");
        text
    }
}

fn frame(text: &mut String, frame: &Frame, figure: &dyn Fn(f64) -> String) {
    let _ = write!(
        text,
        "<svg{} x=\"{}%\" y=\"{}\" width=\"{}%\" height=\"{}\"><title>{}</title>\
         <rect width=\"100%\" height=\"100%\"/>",
        class(frame.tint),
        hundredths(frame.start),
        frame.depth * ROW,
        hundredths(frame.share),
        ROW - 1,
        escaped(&title(frame, figure)),
    );
    let room = letters(frame.share);
    if room >= FEWEST {
        let name = escaped(&cut(fitting(&frame.name, room), room));
        let _ = write!(text, "<text x=\"4\" y=\"13\">{name}</text>");
    }
    text.push_str("</svg>\n");
}

fn class(tint: Tint) -> String {
    match tint {
        Tint::Plain => String::new(),
        Tint::Outlined => " class=\"o\"".to_owned(),
        Tint::Family(number) => format!(" class=\"f{number}\""),
        Tint::More(grade) => format!(" class=\"m{grade}\""),
        Tint::Less(grade) => format!(" class=\"l{grade}\""),
    }
}

/// Returns the name on a line of its own, then its figures.
fn title(frame: &Frame, figure: &dyn Fn(f64) -> String) -> String {
    let name = cut(&frame.name, MOST_OF_TITLE);
    let file = match frame.file.as_str() {
        "" => String::new(),
        file => format!("; in {file}"),
    };
    let us = frame.us.map_or_else(String::new, |us| {
        format!(", {} µs per transaction", figure(us))
    });
    let (share, own) = (figure(100.0 * frame.share), figure(100.0 * frame.own));
    format!("{name}\n{share} %{us}; itself {own} %{file}")
}

/// The name if it fits, else without its package and modules. The page's script does the same.
fn fitting(name: &str, room: usize) -> &str {
    if name.chars().count() <= room {
        return name;
    }
    let name = name.rsplit('/').next().unwrap_or(name);
    let last_but_one = name.rmatch_indices("::").nth(1);
    last_but_one.map_or(name, |(at, separator)| &name[at + separator.len()..])
}

fn cut(name: &str, most: usize) -> String {
    // A line break ends the name in a title.
    let mut name: String = name
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .collect();
    if let Some((end, _)) = name.char_indices().nth(most) {
        let before = name[..end].char_indices().next_back();
        name.truncate(before.map_or(0, |(at, _)| at));
        name.push('…');
    }
    name
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share is between 0 and 1"
)]
fn letters(share: f64) -> usize {
    (share * LETTERS) as usize
}

#[cfg(test)]
mod tests {
    use super::{cut, fitting};

    #[test]
    fn a_name_without_room_loses_its_package_and_modules() {
        for (name, room, shown) in [
            (
                "cmd/compile/internal/ssa.Compile",
                40,
                "cmd/compile/internal/ssa.Compile",
            ),
            ("cmd/compile/internal/ssa.Compile", 20, "ssa.Compile"),
            (
                "server::fronts::login::{{closure}}",
                20,
                "login::{{closure}}",
            ),
            ("server::handle", 9, "server::…"),
            ("a/", 1, ""),
            ("é::ü::ö::é", 6, "ö::é"),
        ] {
            assert_eq!(cut(fitting(name, room), room), shown);
        }
    }

    #[test]
    fn a_line_break_does_not_end_a_name() {
        assert_eq!(cut("a\nb", 9), "a b");
    }
}
