//! Runs the real binary: servers on free ports, and commands with their output.
//!
//! Every wait has a limit and ends with an event: a line, the end of a process, an answer.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub mod bot;
pub mod http;
pub mod laws;
pub mod reference;
pub mod telemetry;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The longest that anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary with an environment of its own.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    for name in [
        "CONFIG",
        "DATA",
        "ENGINE",
        "LISTEN",
        "METRICS",
        "MONITOR",
        "LOG",
        "LOG_FORMAT",
        "TLS",
        "TLS_CERT",
        "TLS_KEY",
    ] {
        command.env_remove(format!("ANABRANCH_{name}"));
    }
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn succeeded(self) -> Ran {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// The command failed with `code`, with one line that says what is wrong and one that says what to do.
    #[track_caller]
    pub fn failed(self, code: i32, what: &[&str]) -> Ran {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.stderr.starts_with("error: "), "{self:#?}");
        assert!(self.stderr.contains("\nhint: "), "{self:#?}");
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("RUST_BACKTRACE"), "{self:#?}");
        for part in what {
            assert!(self.stderr.contains(part), "`{part}` is missing: {self:#?}");
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// Runs a command to its end with `input` on standard input.
#[track_caller]
pub fn run_with_input(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that fails early does not read everything, which is no concern of this thread.
    std::thread::spawn(move || stdin.write_all(&input));
    finish(child)
}

#[track_caller]
pub fn run(command: Command) -> Ran {
    run_with_input(command, b"")
}

/// Waits for the end of a process, at most so long.
#[track_caller]
pub fn finish(mut child: Child) -> Ran {
    let stdout = child.stdout.take().map(read_all);
    let stderr = child.stderr.take().map(read_all);
    let status = wait(child);
    let text =
        |reader: Option<JoinHandle<String>>| reader.map(|reader| reader.join().unwrap()).unwrap_or_default();
    Ran { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[track_caller]
fn wait(mut child: Child) -> ExitStatus {
    let pid = Pid::from_child(&child);
    let (sender, receiver) = mpsc::sync_channel(1);
    let waiter = std::thread::spawn(move || {
        let status = child.wait().unwrap();
        let _ = sender.send(());
        status
    });
    if receiver.recv_timeout(PATIENCE).is_err() {
        kill_process(pid, Signal::KILL).unwrap();
        panic!("process {pid:?} did not end in time");
    }
    waiter.join().unwrap()
}

/// A data directory, whoever holds it.
pub struct Data {
    folder: tempfile::TempDir,
}

impl Data {
    pub fn new() -> Self {
        Data { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// `anabranch stream …` on this directory.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.command_on("stream", arguments)
    }

    /// `anabranch KIND …` on this directory.
    pub fn command_on<A: AsRef<OsStr>>(&self, kind: &str, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = binary();
        command.arg(kind).args(arguments).arg("--data").arg(self.path());
        command
    }

    #[track_caller]
    pub fn stream(&self, arguments: &[&str]) -> Ran {
        run(self.command(arguments))
    }

    #[track_caller]
    pub fn put_lines(&self, stream: &str, lines: &str) -> Ran {
        run_with_input(self.command(["put", stream, "--lines"]), lines.as_bytes())
    }

    #[track_caller]
    pub fn serve(&self) -> Server {
        Server::start(&self.path(), &[])
    }
}

/// A running server. Dropping it kills it.
pub struct Server {
    child: Option<Child>,
    pub pid: u32,
    pub ready_line: String,
    pub listen: SocketAddr,
    pub monitor: SocketAddr,
    rest_of_stdout: Option<JoinHandle<String>>,
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts a server on free ports and waits until it is ready.
    #[track_caller]
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut command = binary();
        command.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]).arg(data);
        Server::spawn(command.args(arguments))
    }

    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = read_all(child.stderr.take().unwrap());
        let stdout = child.stdout.take().unwrap();
        let (sender, receiver) = mpsc::sync_channel(1);
        let rest_of_stdout = std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let _ = sender.send(line);
            let mut rest = String::new();
            stdout.read_to_string(&mut rest).unwrap();
            rest
        });
        let line = receiver.recv_timeout(PATIENCE).unwrap_or_default();
        if line.is_empty() {
            let _ = child.kill();
            panic!("the server is not ready: {}", log.join().unwrap());
        }
        let address = |before: &str| {
            let (_, rest) = line.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {line}"));
            rest.split([',', ' ']).next().unwrap().parse().unwrap()
        };
        Server {
            pid: child.id(),
            listen: address("://"),
            monitor: address("monitor http://"),
            child: Some(child),
            ready_line: line,
            rest_of_stdout: Some(rest_of_stdout),
            log: Some(log),
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    /// Asks the server to stop and waits until it has.
    #[track_caller]
    pub fn stop(self) -> Ran {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits for the end of the server.
    #[track_caller]
    pub fn ended(mut self) -> Ran {
        let status = wait(self.child.take().unwrap());
        let stdout = self.rest_of_stdout.take().unwrap().join().unwrap();
        let stderr = self.log.take().unwrap().join().unwrap();
        Ran { code: status.code().unwrap_or(-1), stdout, stderr }
    }

    /// Ends the server without warning.
    pub fn kill(mut self) {
        self.kill_child();
    }

    fn kill_child(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill_child();
    }
}
