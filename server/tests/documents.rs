//! The documents tell the truth: the functions of a record's journey exist, links lead somewhere, and what a program can
//! compare with the code is compared.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of the table rows below a heading, up to the next heading.
fn table<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let start = text.find(heading).unwrap_or_else(|| panic!("there is no `{heading}`")) + heading.len();
    let section = text[start..].split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|--"));
    rows.skip(1).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_functions_of_a_records_journey_exist() {
    let text = read("ARCHITECTURE.md");
    let first_heading = text.lines().find(|line| line.starts_with("## "));
    assert_eq!(first_heading, Some("## A record's journey"), "it opens with the journey");
    let journey = table(&text, "## A record's journey");
    assert!(journey.len() >= 9, "{journey:?}");
    for row in &journey {
        let (file, function) = (row[1].trim_matches('`'), row[2].trim_matches('`'));
        let code = read(file);
        let found = ["(", "<"].iter().any(|open| code.contains(&format!("fn {function}{open}")));
        assert!(found, "{file} has no function `{function}`");
    }
    let durable = journey.iter().find(|row| row[3].contains("**durable**")).expect("a step makes it durable");
    let code = read(durable[1].trim_matches('`'));
    let body = code.split(&format!("fn {}(", durable[2].trim_matches('`'))).nth(1).expect("the function");
    let body = body.split("\n    }\n").next().expect("its body");
    assert!(body.contains(".file.sync()"), "the step that makes a record durable waits for the disk");
}

#[test]
fn links_lead_somewhere() {
    let mut documents = vec!["README.md".to_owned(), "ARCHITECTURE.md".to_owned()];
    for folder in ["docs", "docs/decisions"] {
        for entry in fs::read_dir(root().join(folder)).expect("the folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
            if name.ends_with(".md") {
                documents.push(format!("{folder}/{name}"));
            }
        }
    }
    for document in documents {
        let folder = root().join(&document).parent().expect("a folder").to_owned();
        let text = read(&document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.starts_with("http") && !link.starts_with('#') {
                let target = link.split('#').next().unwrap_or(link);
                assert!(folder.join(target).exists(), "{document} links to {link}, which is not there");
            }
        }
    }
}

#[test]
fn files_that_the_documents_name_exist() {
    for document in ["ARCHITECTURE.md", "docs/on-disk.md", "README.md"] {
        let text = read(document);
        for word in text.split('`').skip(1).step_by(2) {
            let is_path = word.contains('/') && word.ends_with(".rs") && !word.contains(' ');
            assert!(!is_path || root().join(word).exists(), "{document} names {word}, which is not there");
        }
    }
}

#[test]
fn crates_know_only_what_the_architecture_allows() {
    for (name, allowed) in [
        ("model", &[][..]),
        ("engine", &["model"][..]),
        ("aws", &["model"][..]),
        ("wire", &["model"][..]),
        ("sim", &["model"][..]),
        ("consumer", &["model"][..]),
        ("producer", &["model"][..]),
        ("bus", &["consumer", "model", "producer"][..]),
    ] {
        let manifest = read(&format!("{name}/Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next());
        for line in dependencies.expect("dependencies").lines() {
            if let Some(other) =
                line.strip_prefix("anabranch-").and_then(|rest| rest.split(['.', ' ']).next())
            {
                assert!(allowed.contains(&other), "{name} must not know {other}");
            }
        }
    }
}

/// The columns of Parquet are those of the code, in its order and with its types.
#[test]
fn the_columns_of_archives_are_listed() {
    let code = read("bus/src/archive/columns/mod.rs");
    let declared: Vec<_> = code
        .split('"')
        .filter_map(|text| {
            let (presence, rest) = text.split_once(' ')?;
            let (kind, rest) = rest.split_once(' ')?;
            let (name, logical) = rest.split_once(' ').unwrap_or((rest, ""));
            let optional = if presence == "optional" { ", may be null" } else { "" };
            let kind = match (kind, logical) {
                ("binary", "(STRING)") => "STRING",
                ("binary", "(JSON)") => "JSON",
                ("int64", "(TIMESTAMP(MILLIS,true))") => "TIMESTAMP(MILLIS, UTC)",
                ("int64", "") => "INT64",
                _ => return None,
            };
            Some((format!("`{name}`"), format!("{kind}{optional}")))
        })
        .collect();
    let text = read("docs/archive.md");
    let listed = table(&text, "## Documents and columns");
    let listed: Vec<_> = listed
        .iter()
        .map(|row| (row[2].split(';').next().unwrap_or_default().to_owned(), row[3].to_owned()))
        .collect();
    assert_eq!(declared, listed);
}

/// The README lists every line that a configuration file may have, and no other.
#[test]
fn the_lines_of_the_configuration_are_listed() {
    let code = read("server/src/config.rs");
    let file =
        code.split("struct File {").nth(1).and_then(|rest| rest.split('}').next()).expect("the struct");
    let mut declared: Vec<_> = file
        .lines()
        .filter_map(|line| line.trim().split_once(": Option<").map(|(name, _)| name.to_owned()))
        .collect();
    let text = read("README.md");
    let named = |row: &Vec<&str>| row[0].split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut listed: Vec<_> = table(&text, "## Configuration").iter().flat_map(named).collect();
    declared.sort();
    listed.sort();
    assert_eq!(declared, listed);
}
