//! Requests that are SQL statements.

use lab_workload::template::Escape;
use lab_workload::{ProtocolRequest, Request, Template, Way};

use super::request::Compiler;

use crate::file::{RequestFile, StatementFile};
use lab_units::parts::{At, Scalar};

/// Maximum values of a statement: the protocol stores their number in two bytes.
const MAX_VALUES: usize = 65_535;

impl Compiler<'_> {
    /// Compiles a statement.
    pub(super) fn statement(
        &mut self,
        statement: &StatementFile,
        file: &RequestFile,
    ) -> Option<Request> {
        let (key, sql) = match (&statement.query, &statement.prepared) {
            (Some(query), None) => ("query", query),
            (None, Some(prepared)) => ("prepared", prepared),
            (Some(_), Some(prepared)) => {
                return self.refuse(&prepared.span, "a request is a `query` or `prepared`");
            }
            (None, None) => {
                let (_, place) = statement.place()?;
                return self.refuse(place, "`values` belong to a `query`");
            }
        };
        let text = self.template(key, sql, Escape::None);
        let values = self.values(statement);
        let way = match (key, &statement.values) {
            ("prepared", _) => Way::Prepared,
            (_, Some(_)) => Way::Parsed,
            (_, None) => Way::Simple,
        };
        if let (Some(text), Way::Prepared) = (&text, way)
            && text.as_literal().is_none()
        {
            let place = sql.span.first_line();
            let message = "what is prepared is the same for all users";
            let problem = place.problem(message, "this differs");
            self.problems
                .push(problem.help("write `$1` in it, and what differs under `values`"));
            return None;
        }
        let said = text.zip(values);
        self.request_with_content(
            said.map(|(sql, values)| ProtocolRequest::Statement { sql, values, way }),
            file,
        )
    }

    fn values(&mut self, statement: &StatementFile) -> Option<Vec<Template>> {
        let Some(values) = &statement.values else {
            return Some(Vec::new());
        };
        if values.value.len() > MAX_VALUES {
            let message = format!("a statement has at most {MAX_VALUES} values");
            return self.refuse(&values.span, &message);
        }
        let one = |at: &At<Scalar>| self.template("values", at, Escape::None);
        let all: Vec<Option<Template>> = values.value.iter().map(one).collect();
        all.into_iter().collect()
    }
}
