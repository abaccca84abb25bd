//! The `anabranch` binary: a server on the embedded engine, and the command line that talks to it.
//!
//! Read in this order: what can be asked for (`cli`), the server from start to drain (`up`, `config`), the API that
//! commands use when a server runs ([`api`], `host`, `http`, [`remote`]), who keeps what (`stores`), how a command
//! finds its data (`connect`), on which engine (`backend`), and the commands themselves
//! (`stream`, `queue`, `blob`, `table`, `bots`, `cdc`, `backup`, `doctor`, `policy`, `bench`).
//!
//! Invariant: this is the only crate that sees everything, and nothing depends on it. Commands are written against
//! the ports of the model and cannot tell a server from a directory.

mod cli;

mod config;
mod monitor;
mod up;

pub mod api;
mod host;
mod http;
pub mod remote;
mod stores;
mod tls;

mod backend;
mod backup;
mod blob;
mod bots;
mod cdc;
mod command;
mod connect;
mod consumer;
mod queue;
mod stream;
mod table;

mod bench;
mod doctor;
mod fleet;
mod policy;

mod confirm;
mod emf;
mod failure;
mod limits;
mod logging;
mod open_files;
mod output;
mod patience;
mod progress;
mod quantity;
mod runtime;

pub use host::Host;
pub use remote::Remote;
pub use stores::Stores;

/// Does what the command line asks for and returns the exit code.
pub fn run() -> std::process::ExitCode {
    cli::run()
}
