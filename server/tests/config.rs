//! Settings: a flag wins over the environment, which wins over the file, which wins over the default.

mod harness;

use std::path::{Path, PathBuf};

use harness::http::exchange;
use harness::{Ran, Server, binary, run};

fn file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("anabranch.toml");
    std::fs::write(&path, text).expect("the folder is ours");
    path
}

fn up_with(text: &str) -> Ran {
    let folder = tempfile::tempdir().expect("there is room");
    let path = file(folder.path(), text);
    let mut command = binary();
    command.current_dir(folder.path()).args(["up", "--config"]).arg(path);
    run(command)
}

#[test]
fn the_nearest_setting_wins() {
    let folder = tempfile::tempdir().unwrap();
    let config = file(
        folder.path(),
        "data = \"from-file\"\nlisten = \"127.0.0.1:0\"\nmonitor = \"127.0.0.1:0\"\nmemory = \"128 MiB\"\n\
         shard_limits = true\n",
    );
    let started = |arguments: &[&str], environment: Option<&str>| {
        let mut command = binary();
        command.current_dir(folder.path()).args(["up", "--config"]).arg(&config).args(arguments);
        if let Some(data) = environment {
            command.env("ANABRANCH_DATA", data);
        }
        let server = Server::spawn(&mut command);
        let line = server.ready_line.clone();
        server.stop().succeeded();
        line
    };
    assert!(started(&[], None).contains("data in from-file,"));
    assert!(started(&[], Some("from-environment")).contains("data in from-environment,"));
    let line = started(&["--data", "from-flag"], Some("from-environment"));
    assert!(line.contains("data in from-flag,"), "{line}");
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let ran = up_with("# ours\ndata = \"d\"\nlissten = \"127.0.0.1:0\"\n");
    ran.failed(2, &["anabranch.toml, line 3", "lissten", "listen"]);
}

#[test]
fn bad_values_are_named_with_their_line() {
    up_with("memory = \"64 MB\"\n").failed(2, &["line 1", "64 MiB"]);
    up_with("\nmemory = 64\n").failed(2, &["line 2"]);
    up_with("memory = \"1 MiB\"\n").failed(2, &["memory of 1 MiB", "64 MiB"]);
    up_with("listen = \"somewhere\"\n").failed(2, &["line 1", "127.0.0.1:4566"]);
    up_with("listen = \"0.0.0.0:1\"\n").failed(2, &["0.0.0.0:1", "authentication"]);
    up_with("shard_limits = \"yes\"\n").failed(2, &["line 1"]);
    up_with("data = \n").failed(2, &["line 1"]);
    up_with("transition_ms = 60001\n").failed(2, &["60001", "60000"]);
    for name in ["", "a b", "a..b", "s3.example.org:4566", "10.0.0.1", "[::1]", "http://a", &"a.".repeat(127)]
    {
        up_with(&format!("hosts = [\"s3.example.org\", \"{name}\"]\n")).failed(2, &["hosts", name]);
    }
    up_with("hosts = \"s3.example.org\"\n").failed(2, &["line 1"]);
    up_with("[access_keys]\nme = \"\"\n").failed(2, &["`me`"]);
    up_with("[access_keys]\n\"a/b\" = \"secret-of-mine\"\n").failed(2, &["`a/b`"]);
    let keys = "monitor = \"0.0.0.0:1\"\n[access_keys]\nme = \"secret\"\n";
    up_with(keys).failed(2, &["0.0.0.0:1", "monitor"]);
}

#[test]
fn what_stands_before_a_name_of_the_server_is_a_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let config = file(
        folder.path(),
        "listen = \"127.0.0.1:0\"\nmonitor = \"127.0.0.1:0\"\nhosts = [\"S3.Example.org\", \"other.test\"]\n",
    );
    let mut command = binary();
    command.current_dir(folder.path()).args(["up", "--config"]).arg(&config);
    let server = Server::spawn(&mut command);
    let ask = |line: &str, host: &str| {
        let head =
            format!("{line} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        exchange(server.listen, head.as_bytes())
    };
    for host in ["photos.s3.example.org", "films.other.test:4566", "songs.localhost:4566"] {
        let made = ask("PUT /", host);
        assert_eq!(made.status, 200, "{host}: {} {}", made.head, made.body);
    }
    let all = ask("GET /", "s3.example.org");
    assert_eq!(all.status, 200, "{} {}", all.head, all.body);
    for bucket in ["photos", "films", "songs"] {
        assert!(all.body.contains(&format!("<Name>{bucket}</Name>")), "{}", all.body);
    }
    assert_eq!(ask("PUT /", "evil.example.org").status, 403, "a name that nobody has given it");
    server.stop().succeeded();
}

#[test]
fn a_missing_file_is_named() {
    let mut command = binary();
    command.args(["up", "--config", "/no/such/file.toml"]);
    run(command).failed(1, &["/no/such/file.toml"]);
}

#[test]
fn a_bad_environment_is_refused() {
    let mut command = binary();
    command.arg("up").env("ANABRANCH_LISTEN", "nowhere");
    let ran = run(command);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("nowhere") && ran.stderr.contains("--listen"), "{ran:#?}");
}
