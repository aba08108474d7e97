//! From an archive to result.json, terminal, HTML, Markdown, CSV. Pure: the same archive gives the same report.
