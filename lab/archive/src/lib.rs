//! The archive of a run on disk: its format, writer, and reader. It judges nothing.
//!
//! ```text
//! RUN/manifest.json            what ran: study, seed, speed, environment, versions
//! RUN/plan.json                the plan, as `lab-study` made it (opaque here)
//! RUN/files/…                  study, workload, and published files, byte for byte
//! RUN/trials/001/trial.json    raw facts of a trial; its presence marks the trial complete
//! RUN/trials/001/windows.jsonl one [`WindowLine`] a line
//! RUN/trials/001/steps.hlog    HdrHistogram interval log, V2 deflate, µs, tag `NN/outcome/kind`
//! RUN/trials/001/monitor.csv   `t_ms` and one column per counter; an empty field is a gap
//! ```

pub mod model;
