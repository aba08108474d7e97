//! Bodies with the content of files: forms as browsers send them (RFC 7578), and single files.

use lab_workload::template::Escape;
use lab_workload::{Body, Piece, Template, sha256};

use super::request::Compiler;

use crate::file::{ContentFile, FieldFile, PartFile};
use lab_units::parts::{At, Scalar, Table};

/// Maximum parts of a form.
const MAX_PARTS: usize = 1_000;

/// Content types by file extension, as in curl's forms.
const TYPES: [(&str, &str); 12] = [
    (".gif", "image/gif"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".txt", "text/plain"),
    (".htm", "text/html"),
    (".html", "text/html"),
    (".pdf", "application/pdf"),
    (".xml", "application/xml"),
    (".json", "application/json"),
    (".csv", "text/csv"),
];

/// A body and its content type.
type Typed = (Body, String);

/// Texts and files of a body under construction.
#[derive(Default)]
struct Making {
    pieces: Vec<Piece>,
    /// Texts of the next piece.
    text: Vec<Template>,
}

impl Making {
    fn literal(&mut self, text: &str) {
        self.text.push(Template::literal(text));
    }

    fn file(&mut self, place: usize) {
        self.end_text();
        self.pieces.push(Piece::File(place));
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = Template::concatenate(&self.text);
            self.text.clear();
            self.pieces.push(Piece::Text(text));
        }
    }

    fn body(mut self) -> Body {
        self.end_text();
        Body::Pieces(self.pieces)
    }
}

impl Compiler<'_> {
    /// Builds a body from a file; `None` if a problem was reported.
    pub(super) fn content(&mut self, content: &ContentFile) -> Option<Typed> {
        let place = self.file(&content.file)?;
        let kind = self.content_type(content.r#type.as_ref())?;
        let kind = kind.unwrap_or_else(|| type_of(&content.file.text()).to_owned());
        Some((Body::Pieces(vec![Piece::File(place)]), kind))
    }

    /// Builds a form with files; `None` if a problem was reported.
    pub(super) fn multipart(&mut self, form: &At<Table<PartFile>>) -> Option<Typed> {
        let parts = &form.value;
        if parts.is_empty() || parts.0.len() > MAX_PARTS {
            let message = format!("a form has 1 to {MAX_PARTS} parts");
            let place = form.span.first_line();
            self.problems.push(place.problem(message, "this form"));
            return None;
        }
        let boundary = self.boundary(parts);
        let mut making = Making::default();
        let mut complete = true;
        for (name, part) in parts.iter() {
            let mut escaped = name.value.clone();
            Escape::PartName.apply(&mut escaped, 0);
            making.literal(&format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{escaped}\""
            ));
            complete &= match part {
                PartFile::Text(text) => self.text_part(text, &mut making),
                PartFile::Full(field) => self.field(field, &mut making),
            }
            .is_some();
            making.literal("\r\n");
        }
        making.literal(&format!("--{boundary}--\r\n"));
        let kind = format!("multipart/form-data; boundary={boundary}");
        complete.then(|| (making.body(), kind))
    }

    /// Returns the boundary of a form's parts: from a hash of its files, so that none contains it.
    fn boundary(&self, parts: &Table<PartFile>) -> String {
        let mut all = String::new();
        for (name, _) in parts.iter() {
            all.push_str(&name.value);
            all.push('\n');
        }
        self.files
            .iter()
            .for_each(|file| all.push_str(&file.sha256));
        format!("plimsoll-{}", &sha256(all.as_bytes())[..32])
    }

    fn text_part(&mut self, text: &At<Scalar>, making: &mut Making) -> Option<()> {
        making.literal("\r\n\r\n");
        making
            .text
            .push(self.template("multipart", text, Escape::None)?);
        Some(())
    }

    fn field(&mut self, field: &At<FieldFile>, making: &mut Making) -> Option<()> {
        let FieldFile {
            file,
            name,
            text,
            r#type,
        } = &field.value;
        let kind = self.content_type(r#type.as_ref())?;
        let said = |kind: &str| format!("\r\nContent-Type: {kind}");
        match (file, text, name) {
            (Some(file), None, name) => {
                let place = self.file(file)?;
                let path = file.text();
                making.literal("; filename=\"");
                making.text.push(match name {
                    Some(name) => self.template("name", name, Escape::PartName)?,
                    None => {
                        let mut own = path.rsplit('/').next().unwrap_or(&path).to_owned();
                        Escape::PartName.apply(&mut own, 0);
                        Template::literal(&own)
                    }
                });
                let kind = kind.unwrap_or_else(|| type_of(&path).to_owned());
                making.literal(&format!("\"{}\r\n\r\n", said(&kind)));
                making.file(place);
                Some(())
            }
            (None, Some(text), None) => {
                making.literal(&kind.map_or_else(String::new, |kind| said(&kind)));
                self.text_part(text, making)
            }
            _ => {
                let message = "a part has a `file` (and its `name`), or a `text`";
                let place = field.span.first_line();
                self.problems.push(place.problem(message, "this part"));
                None
            }
        }
    }

    /// Returns the index of a file among those that were read.
    fn file(&mut self, named: &At<Scalar>) -> Option<usize> {
        let name = named.text();
        self.files.iter().position(|file| file.name == name)
    }

    /// Returns an explicit content type; the inner `None` if there is none.
    fn content_type(&mut self, said: Option<&At<Scalar>>) -> Option<Option<String>> {
        let Some(said) = said else {
            return Some(None);
        };
        let text = said.text().trim().to_owned();
        if text.contains('/') && http::HeaderValue::from_str(&text).is_ok() {
            return Some(Some(text));
        }
        let message = format!("`{text}` is not a content type");
        self.problems.push(
            said.span
                .first_line()
                .problem(message, "this type")
                .help("a content type is such as `image/jpeg`"),
        );
        None
    }
}

fn type_of(path: &str) -> &'static str {
    let lower = path.to_ascii_lowercase();
    let known = TYPES.iter().find(|(end, _)| lower.ends_with(end));
    known.map_or("application/octet-stream", |(_, kind)| kind)
}
