//! Parts of forms: a label, its field, and its error.

use maud::{Markup, html};

/// Errors of fields, by their names, in the order of detection.
#[derive(Debug, Default)]
pub(crate) struct Wrong(Vec<(&'static str, String)>);

impl Wrong {
    pub(crate) fn add(&mut self, field: &'static str, text: impl Into<String>) {
        if self.of(field).is_none() {
            self.0.push((field, text.into()));
        }
    }

    pub(crate) fn of(&self, field: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == field);
        found.map(|(_, text)| text.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The errors, above the form, with links to the fields.
    pub(crate) fn summary(&self) -> Markup {
        html! {
            @if !self.is_empty() {
                div.wrong-summary role="alert" {
                    p { "Something is missing or wrong:" }
                    ul {
                        @for (field, text) in &self.0 {
                            li { a href={ "#" (field) } { (text) } }
                        }
                    }
                }
            }
        }
    }
}

/// A field of one line.
pub(crate) struct Input<'a> {
    pub(crate) name: &'static str,
    pub(crate) label: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) value: &'a str,
    pub(crate) hint: Option<&'a str>,
    pub(crate) autocomplete: Option<&'static str>,
    pub(crate) list: Option<&'static str>,
    pub(crate) required: bool,
    pub(crate) autofocus: bool,
    pub(crate) max: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn text(name: &'static str, label: &'a str, value: &'a str) -> Self {
        Self {
            name,
            label,
            kind: "text",
            value,
            hint: None,
            autocomplete: Some("off"),
            list: None,
            required: false,
            autofocus: false,
            max: 1000,
        }
    }

    pub(crate) fn render(&self, wrong: &Wrong) -> Markup {
        let error = wrong.of(self.name);
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                input id=(self.name) name=(self.name) type=(self.kind) value=(self.value)
                    maxlength=[(self.kind == "text").then_some(self.max)]
                    autocomplete=[self.autocomplete] list=[self.list]
                    required[self.required] autofocus[self.autofocus]
                    aria-invalid=[error.map(|_| "true")]
                    aria-describedby=[describer(self.name, self.hint, error)];
                (below(self.name, self.hint, error))
            }
        }
    }
}

/// A field of several lines.
pub(crate) fn area(
    name: &'static str,
    label: &str,
    value: &str,
    rows: u8,
    wrong: &Wrong,
) -> Markup {
    let error = wrong.of(name);
    html! {
        div.field {
            label for=(name) { (label) }
            // A line feed directly after the tag is not part of the text.
            textarea id=(name) name=(name) rows=(rows) aria-invalid=[error.map(|_| "true")]
                aria-describedby=[describer(name, None, error)] { "\n" (value) }
            (below(name, None, error))
        }
    }
}

fn describer(name: &str, hint: Option<&str>, error: Option<&str>) -> Option<String> {
    match (error, hint) {
        (Some(_), _) => Some(format!("{name}-wrong")),
        (None, Some(_)) => Some(format!("{name}-hint")),
        (None, None) => None,
    }
}

fn below(name: &str, hint: Option<&str>, error: Option<&str>) -> Markup {
    html! {
        @if let Some(error) = error {
            p.wrong id={ (name) "-wrong" } { (error) }
        } @else if let Some(hint) = hint {
            p.hint id={ (name) "-hint" } { (hint) }
        }
    }
}
