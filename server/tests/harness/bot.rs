//! `anabranch run` as a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, finish, read_all};

/// A process with bots that has said that it runs. Dropping it kills it.
pub struct Bot {
    child: Option<Child>,
    log: Option<JoinHandle<String>>,
}

impl Bot {
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the binary");
        let log = read_all(child.stderr.take().expect("a pipe"));
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, receiver) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(PATIENCE).unwrap_or_default();
        if !line.starts_with("anabranch runs ") {
            let _ = child.kill();
            panic!("it does not run: {line} {}", log.join().expect("the log"));
        }
        Bot { child: Some(child), log: Some(log) }
    }

    /// Asks it to stop, as `timeout` does: the process, and then its group. It finishes what it has in hand.
    #[track_caller]
    pub fn stop(mut self) {
        let child = self.child.take().expect("it runs");
        for _ in 0..2 {
            kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        let ran = finish(child);
        let log = self.log.take().expect("a log").join().expect("the log");
        assert_eq!(ran.code, 0, "{log}");
        assert!(log.contains("a bot has ended"), "{log}");
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
