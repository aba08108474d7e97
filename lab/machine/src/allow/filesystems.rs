//! File systems that an owner allows runs to make for their trials. Root makes and mounts them: unsafe options could
//! write to another device, or read a folder that no study may read. It makes none.

use std::collections::{BTreeMap, BTreeSet};

use lab_host::disk;
use lab_study::{Filesystem, FilesystemSpec, filesystem, size};
use serde::Deserialize;

/// Mount options that a study may set for any file system: none of them names a file, a device, or a program.
const HARMLESS: [&str; 57] = [
    "acl",
    "allocsize",
    "async",
    "atime",
    "auto_da_alloc",
    "autodefrag",
    "barrier",
    "commit",
    "compress",
    "compress-force",
    "data",
    "datacow",
    "datasum",
    "delalloc",
    "diratime",
    "dirsync",
    "discard",
    "dioread_lock",
    "dioread_nolock",
    "flushoncommit",
    "inode32",
    "inode64",
    "inode_readahead_blks",
    "journal_async_commit",
    "journal_checksum",
    "largeio",
    "lazytime",
    "logbsize",
    "logbufs",
    "max_batch_time",
    "max_inline",
    "min_batch_time",
    "noacl",
    "noatime",
    "noauto_da_alloc",
    "noautodefrag",
    "nobarrier",
    "nodatacow",
    "nodatasum",
    "nodelalloc",
    "nodiratime",
    "nodiscard",
    "nolargeio",
    "nolazytime",
    "noquota",
    "nossd",
    "notreelog",
    "relatime",
    "space_cache",
    "ssd",
    "strictatime",
    "stripe",
    "swalloc",
    "sync",
    "thread_pool",
    "treelog",
    "wsync",
];

/// The section as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    kinds: Vec<String>,
    most: String,
    #[serde(default)]
    options: BTreeSet<String>,
    /// Keyed by the kind of file system: an option that is harmless to one program names a device to another.
    #[serde(default)]
    mkfs: BTreeMap<String, Vec<String>>,
}

/// File systems that may be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filesystems {
    /// The allowed kinds.
    kinds: BTreeSet<Filesystem>,
    /// The largest allowed size.
    most: u64,
    /// Mount options besides the harmless ones, as written.
    options: BTreeSet<String>,
    /// Allowed arguments of mkfs by kind: all the words of a study, one line each.
    mkfs: BTreeSet<(Filesystem, Vec<String>)>,
}

impl Section {
    /// Validates the section.
    pub(super) fn parse(self) -> Result<Filesystems, String> {
        let named = |problem: String| format!("`filesystems`: {problem}");
        let kinds = self.kinds.iter().map(|kind| filesystem(kind));
        let kinds = kinds.collect::<Result<_, _>>();
        let most = size(&self.most, u64::MAX);
        let mkfs = self.mkfs.iter().map(|(kind, lines)| lines_of(kind, lines));
        let mkfs = mkfs.collect::<Result<Vec<_>, _>>();
        Ok(Filesystems {
            kinds: kinds.map_err(|error| named(error.to_string()))?,
            most: most.map_err(|error| named(format!("`most`: {error}")))?,
            options: self.options,
            mkfs: mkfs
                .map_err(|error| named(format!("`mkfs`: {error}")))?
                .concat()
                .into_iter()
                .collect(),
        })
    }
}

/// Parses the allowed mkfs arguments of a kind, one line each.
fn lines_of(kind: &str, lines: &[String]) -> Result<Vec<(Filesystem, Vec<String>)>, String> {
    let kind = filesystem(kind).map_err(|error| error.to_string())?;
    let words = |line: &String| line.split_whitespace().map(str::to_owned).collect();
    Ok(lines.iter().map(|line| (kind, words(line))).collect())
}

impl Filesystems {
    /// Returns true if any file system may be made.
    pub(super) fn any(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// The reasons to refuse a file system, one sentence each, followed by what this machine lacks to make it.
    pub(super) fn refused(&self, spec: &FilesystemSpec) -> Vec<String> {
        let kind = spec.kind.name();
        let not_listed = |what: String, list: &str| {
            format!(
                "{what} is not allowed: its owner has not put it on the list `{list}` of `filesystems`"
            )
        };
        if !self.kinds.contains(&spec.kind) {
            let what = format!("a file system for each trial ({kind})");
            return vec![not_listed(what, "kinds")];
        }
        let mut problems = Vec::new();
        if spec.bytes > self.most {
            problems.push(format!(
                "a file system of {} MB is not allowed: its owner allows {} MB (`most` of `filesystems`)",
                spec.bytes / 1_000_000,
                self.most / 1_000_000
            ));
        }
        let options = spec.options.iter().flat_map(|all| all.split(','));
        let options = options.filter(|one| !self.options.contains(*one) && !is_harmless(one));
        problems
            .extend(options.map(|one| not_listed(format!("the mount option {one}"), "options")));
        if !spec.mkfs.is_empty() && !self.mkfs.contains(&(spec.kind, spec.mkfs.clone())) {
            let what = format!("mkfs.{kind} with {:?}", spec.mkfs.join(" "));
            problems.push(not_listed(what, &format!("mkfs.{kind}")));
        }
        match problems.is_empty() {
            true => disk::unusable(&BTreeSet::from([spec.kind])),
            false => problems,
        }
    }
}

/// Returns true if a mount option only affects how a file system works. A path or a device has characters that such a
/// value has not.
fn is_harmless(option: &str) -> bool {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    HARMLESS.contains(&name) && value.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(options: &str, mkfs: &[&str]) -> FilesystemSpec {
        FilesystemSpec {
            kind: Filesystem::Xfs,
            bytes: 4_000_000_000,
            mkfs: mkfs.iter().map(|word| (*word).to_owned()).collect(),
            options: (!options.is_empty()).then(|| options.to_owned()),
        }
    }

    fn allowed(most: &str) -> Filesystems {
        let section = Section {
            kinds: vec!["xfs".to_owned()],
            most: most.to_owned(),
            options: BTreeSet::from(["pquota".to_owned()]),
            mkfs: BTreeMap::from([
                ("xfs".to_owned(), vec!["-m  reflink=0".to_owned()]),
                ("ext4".to_owned(), vec!["-J device=x".to_owned()]),
            ]),
        };
        section.parse().unwrap()
    }

    /// Asserts what is refused, apart from what this machine lacks.
    #[track_caller]
    fn check(spec: &FilesystemSpec, most: &str, expected: &str) {
        let said = allowed(most).refused(spec);
        let said: Vec<String> = said
            .into_iter()
            .filter(|one| one.contains("not allowed"))
            .collect();
        match expected.is_empty() {
            true => assert_eq!(said, [] as [String; 0]),
            false => assert!(said.len() == 1 && said[0].contains(expected), "{said:?}"),
        }
    }

    #[test]
    fn what_is_on_no_list_is_refused_by_its_name() {
        check(&spec("", &[]), "4 GB", "");
        check(
            &spec(
                "noatime,pquota,logbufs=8,compress=zstd:3",
                &["-m", "reflink=0"],
            ),
            "4 GB",
            "",
        );
        check(
            &spec("", &[]),
            "3 GB",
            "of 4000 MB is not allowed: its owner allows 3000 MB",
        );
        for option in [
            "logdev=/dev/sda1",
            "suid",
            "helper=x",
            "logbsize=/dev/sda",
            "x-mount.mkdir",
            "data=a/b",
            "pquota=1",
        ] {
            let said = format!("the mount option {option} is not allowed");
            check(&spec(&format!("noatime,{option}"), &[]), "4 GB", &said);
        }
        // Whole lines: words that are allowed together are not allowed alone.
        for words in [
            &["-m"][..],
            &["reflink=0"],
            &["-m", "reflink=0", "/dev/sda"],
            &["-p", "/etc"],
            &["-m reflink=0"],
            // An option of ext4.
            &["-J", "device=x"],
        ] {
            check(&spec("", words), "4 GB", "mkfs.xfs with ");
        }
        let other = FilesystemSpec {
            kind: Filesystem::Ext4,
            ..spec("", &[])
        };
        check(&other, "4 GB", "for each trial (ext4) is not allowed");
        let none = Filesystems::default().refused(&spec("", &[]));
        assert!(none[0].contains("(xfs) is not allowed"), "{none:?}");
    }

    #[test]
    fn harmless_options_are_listed_once() {
        assert!(HARMLESS.iter().all(|one| is_harmless(one)));
        let distinct: BTreeSet<&str> = HARMLESS.into_iter().collect();
        assert_eq!(distinct.len(), HARMLESS.len());
    }

    #[test]
    fn a_section_that_makes_no_sense_says_why() {
        let parse = |kind: &str, most: &str, mkfs: &str| {
            let section = Section {
                kinds: vec![kind.to_owned()],
                most: most.to_owned(),
                options: BTreeSet::new(),
                mkfs: BTreeMap::from([(mkfs.to_owned(), Vec::new())]),
            };
            section.parse().unwrap_err()
        };
        assert!(parse("zfs", "1 GB", "xfs").starts_with("`filesystems`: "));
        assert!(parse("xfs", "much", "xfs").starts_with("`filesystems`: `most`: "));
        assert!(parse("xfs", "1 GB", "zfs").starts_with("`filesystems`: `mkfs`: "));
    }
}
