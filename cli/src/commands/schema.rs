//! `plimsoll schema`: the JSON Schemas of study, workload, and result files, and the list of checks.

use crate::beginning::{SchemaArgs, SchemaKind};
use crate::commands::print;
use crate::exit::{Exit, Failure};

pub(crate) fn run(args: &SchemaArgs) -> Result<Exit, Failure> {
    let schema = match args.kind {
        SchemaKind::Study => lab_study::schema_study(),
        SchemaKind::Workload => lab_study::schema_workload(),
        SchemaKind::Result => lab_report::write::result_schema(),
        SchemaKind::Checks => return print(&lab_report::write::checks_markdown()),
    };
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::new(Exit::Internal, &error))?;
    print(&format!("{text}\n"))
}
