//! A study with a workload of one step, in memory.

use std::io;

use lab_study::Files;

/// The text of the study, and the start of its workload's session.
pub(crate) struct Folder {
    pub(crate) study: String,
    pub(crate) pace: &'static str,
}

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let step = match self.pace {
            "" => "{ step: s, wait: 1s, request: GET / }",
            _ => "{ step: s, request: GET / }",
        };
        let pace = self.pace;
        Ok(match path.ends_with(".study.yaml") {
            true => self.study.clone().into_bytes(),
            false => format!(
                "workload: w\nuser: {{ name: \"u{{{{ index }}}}\" }}\nsession: {{ {pace}steps: [{step}] }}\n"
            )
            .into_bytes(),
        })
    }
}
