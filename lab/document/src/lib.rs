//! What a report says, in the order in which it says it: headings, sentences, lists, figures, charts.
//!
//! A section is written once, into blocks that carry meaning; a renderer lays them out for its medium
//! and leaves out what the medium can't show. Nothing here knows a width, a colour, or markup.

pub mod chart;

use crate::chart::{Chart, Mark};
use lab_analysis::format::{figure, or_none};
use lab_analysis::model::LoadLine;
use lab_profile::bars::Bars;
use lab_profile::flame::Graph;

/// A report, or a comparison of two runs.
#[derive(Debug, Clone)]
pub struct Document {
    /// What kind of document it is: `Plimsoll report`.
    pub kind: &'static str,
    /// What it is about.
    pub title: String,
    /// What ran and when, a line each.
    pub origin: Vec<String>,
    /// What it comes to; a sentence or two.
    pub verdict: Badge,
    /// Whether nothing in it is a result: then it is short where there is little room.
    pub is_void: bool,
    /// What a reader must know at once besides.
    pub badges: Vec<Badge>,
    /// One sentence that says what came out.
    pub headline: String,
    /// The most load that a system carries, and what was tried.
    pub load_lines: Vec<LoadLine>,
    /// Sentences that the figures support.
    pub findings: Vec<String>,
    /// The rest, in order.
    pub sections: Vec<Section>,
    /// Which program made it, from what.
    pub made_by: String,
}

/// A short statement and how good it is.
#[derive(Debug, Clone)]
pub struct Badge {
    /// The statement.
    pub text: String,
    /// How good it is.
    pub tone: Tone,
}

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// Neither good nor bad.
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Not as it should be.
    Bad,
}

/// A heading with what stands under it. A section that has nothing for a medium isn't there.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What it is to the whole.
    pub role: Role,
    /// In order.
    pub blocks: Vec<Block>,
}

/// What a section is to the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Why a run is not what it was meant to be: before everything else.
    Lead,
    /// A part of the report.
    Body,
    /// No result: apart from the report, in grey, and marked with these words all over.
    Apart(&'static str),
    /// Where and how it was measured: a terminal says it first and without a heading, all else last.
    Circumstances,
    /// To look at, to look up, or to learn from: only a page has room for it.
    Page,
}

/// What stands under a heading.
#[derive(Debug, Clone)]
pub enum Block {
    /// One or more sentences.
    Paragraph(String),
    /// Sentences beside each other.
    List(Vec<String>),
    /// Lines as a program printed them, under who did.
    Printed(String, Vec<String>),
    /// Names with values; `sentence` says them where there are no columns.
    Facts {
        /// All of them in one sentence.
        sentence: String,
        /// Name and value.
        items: Vec<(&'static str, String)>,
    },
    /// The few figures that matter most; a page only.
    KeyFigures(Vec<KeyFigure>),
    /// Rows under heads of columns.
    Table(Table),
    /// A table that is for looking things up, under what it holds; a page only.
    Fold(String, Table),
    /// A table of which the report says the gist elsewhere; not on a terminal.
    Lookup(Table),
    /// Names down, cells of the study across, published figures beside ours.
    Figures(Figures),
    /// A measure each, one factor down, the other across.
    Matrices(Vec<Matrix>),
    /// What is drawn; a page only.
    Charts(Charts),
    /// Functions as they were called; a page only.
    Flame(Graph),
    /// What groups of threads spend their time on; a page only.
    Spent(Bars),
}

/// A figure that matters most.
#[derive(Debug, Clone)]
pub struct KeyFigure {
    /// What it is.
    pub name: &'static str,
    /// The figure.
    pub text: String,
    /// Its unit; may be empty.
    pub unit: &'static str,
    /// What was published in its place.
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
    /// What it holds.
    pub name: &'static str,
    /// What a row is about: `trial`.
    pub row: &'static str,
    /// What a group is; empty where there is one without a name.
    pub group: &'static str,
    /// A head per cell of a row.
    pub columns: Vec<Column>,
    /// In order.
    pub groups: Vec<Group>,
    /// Whether another order of rows tells more.
    pub sorts: bool,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its head.
    pub head: String,
    /// What stands in it.
    pub kind: Kind,
}

/// What stands in a column.
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

/// A row of a table; where there are no columns, a sentence.
#[derive(Debug, Clone)]
pub struct Row {
    /// A cell per column.
    pub cells: Vec<Cell>,
    /// The same in a sentence; `None` where figures stand below each other, or the group's summary
    /// says it.
    pub sentence: Option<String>,
    /// Whether it counts nowhere.
    pub struck: bool,
    /// Whether it matters less than the others.
    pub muted: bool,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub struct Cell {
    /// What stands in it.
    pub text: String,
    /// What it is sorted by; the text without one.
    pub value: Option<f64>,
    /// How good it is.
    pub tone: Tone,
    /// Whether it is an outcome: a page marks it, and where there is no colour a bad one stands in
    /// capitals.
    pub is_outcome: bool,
    /// Where a page leads from it.
    pub link: Option<String>,
}

/// Rows that belong together.
#[derive(Debug, Clone)]
pub struct Group {
    /// To what they belong; may be empty.
    pub name: String,
    /// How they are introduced.
    pub heading: Heading,
    /// In order.
    pub rows: Vec<Row>,
}

/// How a group of rows is introduced.
#[derive(Debug, Clone)]
pub enum Heading {
    /// Not at all.
    None,
    /// By its name.
    Name,
    /// By a sentence that sums them up; who reads it may skip the rows that are as they should be.
    Summary(Badge),
}

/// Figures of each cell of the study, published ones beside them.
#[derive(Debug, Clone)]
pub struct Figures {
    /// What they are.
    pub name: &'static str,
    /// What a row is.
    pub of: &'static str,
    /// The cells of the study.
    pub cells: Vec<CellHead>,
    /// The figures of an entry, where there is more than one.
    pub parts: Vec<Part>,
    /// The rows.
    pub rows: Vec<FigureRow>,
    /// What must be said of all published figures; `None` where there are none.
    pub published: Option<PublishedNote>,
}

/// What must be said of published figures that stand beside ours.
#[derive(Debug, Clone)]
pub struct PublishedNote(pub Option<String>);

/// A cell of the study as the head of a column.
#[derive(Debug, Clone)]
pub struct CellHead {
    /// The cell in words.
    pub label: String,
    /// Trials that are measurements.
    pub valid: usize,
    /// All of them.
    pub trials: usize,
}

/// One of the figures of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// Whether it is there only where there is room.
    pub is_detail: bool,
}

/// A row of figures.
#[derive(Debug, Clone)]
pub struct FigureRow {
    /// What they are.
    pub name: String,
    /// One per cell of the study.
    pub entries: Vec<FigureEntry>,
    /// Whether any published figure stands beside one of them.
    pub has_published: bool,
}

/// What stands in a row for one cell of the study.
#[derive(Debug, Clone, Default)]
pub struct FigureEntry {
    /// One per part.
    pub figures: Vec<Figure>,
    /// What is known where operations took too long, in the place of the figures that are no detail.
    pub bound: Option<Figure>,
    /// What was published.
    pub published: Option<Published>,
}

/// A figure and its value.
#[derive(Debug, Clone)]
pub struct Figure {
    /// As read.
    pub text: String,
    /// What it is sorted by.
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

/// What stands where two levels cross.
#[derive(Debug, Clone)]
pub struct MatrixEntry {
    /// The mean.
    pub mean: String,
    /// Its interval; empty of a single trial.
    pub spread: String,
    /// What was published; may be empty.
    pub published: String,
}

/// Charts beside each other, with what their marks mean.
#[derive(Debug, Clone, Default)]
pub struct Charts {
    /// What they show; may be empty.
    pub lead: String,
    /// What the marks mean.
    pub key: Vec<(Mark, String)>,
    /// The charts.
    pub cards: Vec<Card>,
}

/// A card with one chart or more.
#[derive(Debug, Clone)]
pub struct Card {
    /// What it shows.
    pub title: String,
    /// The unit of its figures, or how many there are.
    pub unit: String,
    /// A judgement on what it shows.
    pub badge: Option<Badge>,
    /// Its charts or figures.
    pub content: Content,
}

/// What stands in a card.
#[derive(Debug, Clone)]
pub enum Content {
    /// One chart; words where there is nothing to draw.
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

    /// What only a page has room for.
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

    /// All rows, whatever they belong to.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}

impl Row {
    /// A row without more.
    #[must_use]
    pub fn new(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            sentence: None,
            struck: false,
            muted: false,
        }
    }

    /// The same, if it matters less than the others.
    #[must_use]
    pub fn muted(self, muted: bool) -> Self {
        Self { muted, ..self }
    }
}

impl Column {
    /// What stands in it under its head.
    #[must_use]
    pub fn new(head: impl Into<String>, kind: Kind) -> Self {
        Self {
            head: head.into(),
            kind,
        }
    }
}

impl Figure {
    /// A figure; without one, the mark for none.
    #[must_use]
    pub fn new(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: or_none(value, show),
            value,
        }
    }
}

impl Cell {
    /// A text, neither good nor bad.
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

    /// A figure; without one, the mark for none.
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

    /// What it says where there is no colour.
    #[must_use]
    pub fn without_colour(&self) -> String {
        if self.is_outcome && self.tone == Tone::Bad {
            return self.text.to_uppercase();
        }
        self.text.clone()
    }
}
