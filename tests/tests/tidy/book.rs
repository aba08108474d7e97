//! The pages under `docs/` make a book: each is in its table of contents, and no link is broken.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tree::{complain, files, root, show};

fn pages() -> Vec<PathBuf> {
    let pages = files(".md").into_iter();
    let docs = root().join("docs");
    pages
        .filter(|page| page.starts_with(&docs) || *page == root().join("README.md"))
        .collect()
}

/// The targets of a page's links, outside of its code.
fn links(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            found.extend(rest.split(')').next().map(str::to_owned));
        }
    }
    found
}

/// The anchors that headings of a page have.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    if link.contains("://") || link.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path.is_empty() {
        true => page.to_path_buf(),
        false => page.parent().expect("a folder").join(path),
    };
    let Ok(text) = fs::read(&target) else {
        return false;
    };
    anchor.is_empty()
        || anchors(&String::from_utf8_lossy(&text))
            .iter()
            .any(|one| one == anchor)
}

#[test]
fn no_link_of_the_book_leads_nowhere() {
    let mut offenders = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("readable");
        for link in links(&text) {
            count += 1;
            if !leads_somewhere(&page, &link) {
                offenders.push(format!("{}: {link}", show(&page)));
            }
        }
    }
    assert!(count > 10, "found only {count} links");
    complain("mend the link, or what it leads to", &offenders);
}

#[test]
fn each_page_is_in_the_table_of_contents() {
    let contents = root().join("docs/SUMMARY.md");
    let listed = links(&fs::read_to_string(&contents).expect("a table of contents"));
    let docs = pages()
        .into_iter()
        .filter(|page| page.starts_with(root().join("docs")));
    let missing: Vec<String> = docs
        .filter(|page| *page != contents)
        .filter(|page| {
            let name = page
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            !listed.iter().any(|link| link == name)
        })
        .map(|page| show(&page))
        .collect();
    complain("list it in docs/SUMMARY.md", &missing);
}
