//! The contents of a report, in order: headings, sentences, lists, figures, charts.
//!
//! Sections consist of blocks with a meaning; a renderer lays them out for its medium and skips what the medium can't
//! show. Nothing here knows a width, a colour, or markup.

pub mod chart;

use crate::chart::{Chart, Mark};
use lab_analysis::format::{figure, or_none};
use lab_analysis::model::LoadLine;
use lab_profile::bars::Bars;
use lab_profile::flame::Graph;

/// A report, or a comparison of two runs.
#[derive(Debug, Clone)]
pub struct Document {
    /// The kind of document: `Plimsoll report`.
    pub kind: &'static str,
    /// The subject.
    pub title: String,
    /// The run and its time, a line each.
    pub origin: Vec<String>,
    /// The result; a sentence or two.
    pub verdict: Badge,
    /// Whether it contains no result: then it is short on small media.
    pub is_void: bool,
    /// Notes that a reader needs first.
    pub badges: Vec<Badge>,
    /// The headline: one sentence on the result.
    pub headline: String,
    /// The most load that a system sustains, and the levels that were tried.
    pub load_lines: Vec<LoadLine>,
    /// Sentences that the figures support.
    pub findings: Vec<String>,
    /// The rest, in order.
    pub sections: Vec<Section>,
    /// The program that made it, and its input.
    pub made_by: String,
}

/// A short statement with a rating.
#[derive(Debug, Clone)]
pub struct Badge {
    /// The statement.
    pub text: String,
    /// The rating.
    pub tone: Tone,
}

/// A rating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// Neither good nor bad.
    Plain,
    /// As it should be.
    Good,
    /// Worth attention.
    Warn,
    /// Not as it should be.
    Bad,
}

/// A heading with blocks under it. A section without content for a medium is skipped.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Its role in the document.
    pub role: Role,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
}

/// The role of a section in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reasons why a run isn't as planned: before everything else.
    Lead,
    /// A part of the report.
    Body,
    /// No result: separate from the report, in grey, and marked with these words on every part.
    Apart(&'static str),
    /// The environment of the measurement: a terminal shows it first and without a heading, all other media last.
    Circumstances,
    /// Details for reference: only a page has room for them.
    Page,
}

/// A block of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// One or more sentences.
    Paragraph(String),
    /// Sentences beside each other.
    List(Vec<String>),
    /// Lines as a program printed them, under the program's name.
    Printed(String, Vec<String>),
    /// Names with values; `sentence` replaces them on media without columns.
    Facts {
        /// All of them in one sentence.
        sentence: String,
        /// Name and value.
        items: Vec<(&'static str, String)>,
    },
    /// The few most important figures; a page only.
    KeyFigures(Vec<KeyFigure>),
    /// Rows under heads of columns.
    Table(Table),
    /// A table for reference, under its title; a page only.
    Fold(String, Table),
    /// A table whose main results the report states elsewhere; not on a terminal.
    Lookup(Table),
    /// Names down, cells of the study across, published figures beside ours.
    Figures(Figures),
    /// A table per measure, one factor down, the other across.
    Matrices(Vec<Matrix>),
    /// Charts; a page only.
    Charts(Charts),
    /// Functions by call path (flame graph); a page only.
    Flame(Graph),
    /// The time of groups of threads by use; a page only.
    Spent(Bars),
}

/// One of the most important figures.
#[derive(Debug, Clone)]
pub struct KeyFigure {
    /// The name.
    pub name: &'static str,
    /// The figure.
    pub text: String,
    /// Its unit; may be empty.
    pub unit: &'static str,
    /// The published figure in its place.
    pub published: Option<Published>,
}

/// A published figure beside ours.
#[derive(Debug, Clone)]
pub struct Published {
    /// As published.
    pub text: String,
    /// The same as a number.
    pub value: Option<f64>,
    /// Ours ÷ published.
    pub ratio: Option<f64>,
}

/// Groups of rows under heads of columns; the first cell of a row is its name.
#[derive(Debug, Clone)]
pub struct Table {
    /// The title.
    pub name: &'static str,
    /// The subject of a row: `trial`.
    pub row: &'static str,
    /// The subject of a group; empty if there is one group without a name.
    pub group: &'static str,
    /// A head per cell of a row.
    pub columns: Vec<Column>,
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// Whether sorting its rows is useful.
    pub sorts: bool,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its head.
    pub head: String,
    /// The kind of its contents.
    pub kind: Kind,
}

/// The kind of a column's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Figures.
    Number,
    /// A word or a few.
    Text,
    /// Sentences.
    Prose,
    /// Published figures.
    Published,
    /// Ours ÷ published.
    Ratio,
}

/// A row of a table; on media without columns, a sentence.
#[derive(Debug, Clone)]
pub struct Row {
    /// A cell per column.
    pub cells: Vec<Cell>,
    /// The same in a sentence; `None` if figures are in columns on all media, or the group's summary states it.
    pub sentence: Option<String>,
    /// Whether it is excluded from every result.
    pub struck: bool,
    /// Whether it is less important than the others.
    pub muted: bool,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The sort key; without one, the text.
    pub value: Option<f64>,
    /// The rating.
    pub tone: Tone,
    /// Whether it is an outcome: a page marks it, and without colour a bad one is in capitals.
    pub is_outcome: bool,
    /// The target of its link on a page.
    pub link: Option<String>,
}

/// Rows that belong together.
#[derive(Debug, Clone)]
pub struct Group {
    /// The name of the group; may be empty.
    pub name: String,
    /// The introduction.
    pub heading: Heading,
    /// The rows, in order.
    pub rows: Vec<Row>,
}

/// The introduction of a group of rows.
#[derive(Debug, Clone)]
pub enum Heading {
    /// Not at all.
    None,
    /// By its name.
    Name,
    /// By a sentence that sums them up; the reader may skip rows without a problem.
    Summary(Badge),
}

/// Figures of each cell of the study, published ones beside them.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The title.
    pub name: &'static str,
    /// The subject of a row.
    pub of: &'static str,
    /// The cells of the study.
    pub cells: Vec<CellHead>,
    /// The figures of an entry, if there is more than one.
    pub parts: Vec<Part>,
    /// The rows.
    pub rows: Vec<FigureRow>,
    /// The notes on all published figures; `None` without any.
    pub published: Option<PublishedNote>,
}

/// The notes on published figures beside ours.
#[derive(Debug, Clone)]
pub struct PublishedNote(pub Option<String>);

/// A cell of the study as the head of a column.
#[derive(Debug, Clone)]
pub struct CellHead {
    /// The cell in words.
    pub label: String,
    /// Valid trials.
    pub valid: usize,
    /// All trials.
    pub trials: usize,
}

/// One of the figures of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The name.
    pub name: &'static str,
    /// Whether it is only shown on media with room for it.
    pub is_detail: bool,
}

/// A row of figures.
#[derive(Debug, Clone)]
pub struct FigureRow {
    /// The name.
    pub name: String,
    /// One per cell of the study.
    pub entries: Vec<FigureEntry>,
    /// Whether any of them has a published figure.
    pub has_published: bool,
}

/// The entry of a row for one cell of the study.
#[derive(Debug, Clone, Default)]
pub struct FigureEntry {
    /// One per part.
    pub figures: Vec<Figure>,
    /// The known bound if operations took too long; it replaces the figures that are no detail.
    pub bound: Option<Figure>,
    /// The published figures.
    pub published: Option<Published>,
}

/// A figure and its value.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The text.
    pub text: String,
    /// The sort key.
    pub value: Option<f64>,
}

/// One measure over two factors.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The measure with its unit.
    pub title: String,
    /// The factor across.
    pub factor: String,
    /// Its levels.
    pub levels: Vec<String>,
    /// A level of the factor down with its entries.
    pub rows: Vec<(String, Vec<MatrixEntry>)>,
}

/// The entry where two levels cross.
#[derive(Debug, Clone)]
pub struct MatrixEntry {
    /// The mean.
    pub mean: String,
    /// Its interval; empty for a single trial.
    pub spread: String,
    /// The published figure; may be empty.
    pub published: String,
}

/// Charts beside each other, with the meaning of their marks.
#[derive(Debug, Clone, Default)]
pub struct Charts {
    /// The title; may be empty.
    pub lead: String,
    /// The meaning of the marks.
    pub key: Vec<(Mark, String)>,
    /// The charts.
    pub cards: Vec<Card>,
}

/// A card with one chart or more.
#[derive(Debug, Clone)]
pub struct Card {
    /// The title.
    pub title: String,
    /// The unit of its figures, or how many there are.
    pub unit: String,
    /// A rating of its contents.
    pub badge: Option<Badge>,
    /// Its charts or figures.
    pub content: Content,
}

/// The contents of a card.
#[derive(Debug, Clone)]
pub enum Content {
    /// One chart; a text if there is nothing to draw.
    Chart(Option<Chart>, &'static str),
    /// Charts with names and units below each other.
    Panels(Vec<(&'static str, &'static str, Option<Chart>)>),
    /// Names with values.
    Facts(Vec<(&'static str, String)>),
}

impl Section {
    /// A part of the report.
    #[must_use]
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self {
            title: title.into(),
            role: Role::Body,
            blocks,
        }
    }

    /// A section for which only a page has room.
    #[must_use]
    pub fn of_page(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self {
            role: Role::Page,
            ..Self::new(title, blocks)
        }
    }
}

impl Table {
    /// A table of one group, which has no name.
    #[must_use]
    pub fn new(
        name: &'static str,
        row: &'static str,
        columns: Vec<Column>,
        rows: Vec<Row>,
    ) -> Self {
        Self {
            name,
            row,
            group: "",
            columns,
            groups: vec![Group {
                name: String::new(),
                heading: Heading::None,
                rows,
            }],
            sorts: true,
        }
    }

    /// All rows, of all groups.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}

impl Row {
    /// A row without marks.
    #[must_use]
    pub fn new(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            sentence: None,
            struck: false,
            muted: false,
        }
    }

    /// Marks the row as less important than the others if `muted`.
    #[must_use]
    pub fn muted(self, muted: bool) -> Self {
        Self { muted, ..self }
    }
}

impl Column {
    /// The kind of contents under a column's head.
    #[must_use]
    pub fn new(head: impl Into<String>, kind: Kind) -> Self {
        Self {
            head: head.into(),
            kind,
        }
    }
}

impl Figure {
    /// A figure; without one, the mark for a missing value.
    #[must_use]
    pub fn new(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: or_none(value, show),
            value,
        }
    }
}

impl Cell {
    /// A text without a rating.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            value: None,
            tone: Tone::Plain,
            is_outcome: false,
            link: None,
        }
    }

    /// A figure; without one, the mark for a missing value.
    #[must_use]
    pub fn number(value: Option<f64>) -> Self {
        Self {
            value,
            ..Self::text(or_none(value, figure))
        }
    }

    /// The outcome of a judgement.
    #[must_use]
    pub fn outcome(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            tone,
            is_outcome: true,
            ..Self::text(text)
        }
    }

    /// The text on media without colour.
    #[must_use]
    pub fn without_colour(&self) -> String {
        if self.is_outcome && self.tone == Tone::Bad {
            return self.text.to_uppercase();
        }
        self.text.clone()
    }
}
