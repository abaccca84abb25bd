//! `anabranch up` as a process of its own.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::Clock as _;

use super::blocking;
use super::machine::resident_mib;
use crate::failure::Failure;

/// A server on free ports. Dropping kills it.
pub(crate) struct Server {
    process: Child,
    /// From its start to the line that says it is ready.
    pub(crate) ready_after: Duration,
    /// Where it listens: what an address begins with.
    pub(crate) url: String,
}

impl Server {
    /// Starts it and waits for the line that says it is ready.
    pub(crate) async fn start(folder: &Path) -> Result<Server, Failure> {
        let data = folder.to_owned();
        let started = blocking(move || Server::start_and_wait(&data)).await?;
        started.map_err(|error| Failure::io("start a server on", folder, &error))
    }

    fn start_and_wait(data: &Path) -> io::Result<Server> {
        let clock = SystemClock::new();
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "up",
            "--listen",
            "127.0.0.1:0",
            "--monitor",
            "127.0.0.1:0",
            "--log",
            "error",
            "--data",
        ]);
        command.arg(data).env_remove("ANABRANCH_CONFIG").stdin(Stdio::null()).stdout(Stdio::piped());
        let start = clock.elapsed();
        let mut server =
            Server { process: command.spawn()?, ready_after: Duration::ZERO, url: String::new() };
        let mut line = String::new();
        if let Some(output) = server.process.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        server.ready_after = clock.elapsed() - start;
        server.url =
            listening(&line).ok_or_else(|| io::Error::other("it ended before it was ready"))?.to_owned();
        Ok(server)
    }

    /// Its memory now.
    pub(crate) fn resident_mib(&self) -> f64 {
        resident_mib(self.process.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself needs no kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where it listens: the first address of the line that says it is ready.
fn listening(line: &str) -> Option<&str> {
    let url = line.split_whitespace().find(|word| word.starts_with("http://"))?;
    Some(url.trim_end_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_first_of_the_line() {
        let line = "anabranch is ready: http://127.0.0.1:4566, data in d, monitor http://127.0.0.1:4580 (ready in 9 ms)";
        assert_eq!(listening(line), Some("http://127.0.0.1:4566"));
        assert_eq!(listening(""), None);
    }
}
