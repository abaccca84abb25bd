//! Backups with the real binary: of a running server, of a directory that nobody holds, and back.

mod harness;

use std::path::Path;
use std::process::Command;

use harness::{Data, Ran, Server, binary, run, run_with_input};
use rustix::process::Signal;

fn backup(data: &Data, target: &Path, more: &[&str]) -> Ran {
    let mut command = binary();
    command.arg("backup").arg(target).arg("--data").arg(data.path()).args(more);
    run(command)
}

fn restore(backup: &Path, data: &Path, more: &[&str]) -> Ran {
    let mut command = binary();
    command.arg("restore").arg(backup).arg("--data").arg(data).args(more);
    run(command)
}

fn on(data: &Path, arguments: &[&str]) -> Command {
    let mut command = binary();
    command.args(arguments).arg("--data").arg(data);
    command
}

/// Longer than a row holds, so it is a file.
fn photo() -> String {
    "a photo, ".repeat(20_000)
}

fn fill(data: &Path) {
    for arguments in
        [&["stream", "create", "rides"][..], &["queue", "create", "orders"], &["blob", "create", "photos"]]
    {
        run(on(data, arguments)).succeeded();
    }
    run_with_input(on(data, &["stream", "put", "rides", "--lines"]), b"one\ntwo\nthree\n").succeeded();
    run_with_input(on(data, &["queue", "send", "orders"]), b"order\n").succeeded();
    run_with_input(on(data, &["blob", "put", "-", "photos/a"]), photo().as_bytes()).succeeded();
}

#[track_caller]
fn assert_filled(data: &Path) {
    let tail = ["stream", "tail", "rides", "--from", "trim-horizon", "--no-follow"];
    let records = run(on(data, &tail)).succeeded();
    for record in ["one", "two", "three"] {
        assert!(records.stdout.contains(record), "{records:#?}");
    }
    assert!(!records.stdout.contains("later"), "{records:#?}");
    let received = run(on(data, &["queue", "receive", "orders"])).succeeded();
    assert!(received.stdout.contains("order"), "{received:#?}");
    assert_eq!(run(on(data, &["blob", "get", "photos/a", "-"])).succeeded().stdout, photo());
}

#[test]
fn a_running_server_is_backed_up_and_its_data_is_back_elsewhere() {
    let data = Data::new();
    let server = data.serve();
    fill(&data.path());
    let target = data.path().with_file_name("backup");
    let made = backup(&data, &target, &["--json"]).succeeded().json();
    assert_eq!(
        (&made["streams"], &made["queues"], &made["tables"], &made["buckets"]),
        (&1.into(), &1.into(), &0.into(), &1.into())
    );
    assert!(made["bytes"].as_u64().is_some_and(|bytes| bytes > photo().len() as u64), "{made}");
    // The server goes on, and the backup does not see it.
    data.put_lines("rides", "later\n").succeeded();
    server.signal(Signal::KILL);
    drop(server);

    let elsewhere = data.path().with_file_name("elsewhere");
    let shown = restore(&target, &elsewhere, &[]).succeeded();
    assert!(shown.stdout.starts_with("BYTES") || shown.stdout.contains("STREAMS"), "{shown:#?}");
    let _server = Server::start(&elsewhere, &[]);
    assert_filled(&elsewhere);
    restore(&target, &elsewhere, &[]).failed(2, &["not empty"]);
    // A directory that is in use is no backup.
    restore(&elsewhere, &data.path().with_file_name("third"), &[]).failed(2, &["another process"]);
}

#[test]
fn a_directory_that_nobody_holds_is_backed_up_and_wrong_targets_are_refused() {
    let data = Data::new();
    fill(&data.path());
    let target = data.path().with_file_name("backup");
    let shown = backup(&data, &target, &[]).succeeded();
    assert!(shown.stdout.contains("BUCKETS") && shown.stdout.contains("backup"), "{shown:#?}");
    backup(&data, &target, &[]).failed(2, &["not empty"]);
    let server = data.serve();
    backup(&data, &data.path().join("inside"), &[]).failed(2, &["lies in"]);
    backup(&data, &target, &[]).failed(2, &["not empty"]);
    drop(server);
    std::fs::remove_file(target.join("FORMAT")).unwrap();
    let elsewhere = data.path().with_file_name("elsewhere");
    restore(&target, &elsewhere, &[]).failed(2, &["cut short"]);
    assert!(!elsewhere.exists());
}
