//! The settings of the server: a flag wins over the environment, which wins over the file, which wins over the
//! default. Clap has joined flags and environment before this file sees them.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use crate::failure::Failure;
use crate::quantity::Size;
use crate::up::UpArgs;

/// Where data lives if nobody says otherwise.
pub(crate) const DATA_DEFAULT: &str = "./anabranch-data";
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4566);
const MONITOR_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4580);
const MEMORY_DEFAULT: Size = Size(64 << 20);
/// The least memory: a quarter of it holds one request of the largest size.
const MEMORY_MIN: Size = Size(64 << 20);

/// All settings, checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) monitor: SocketAddr,
    pub(crate) memory_bytes: u64,
    pub(crate) shard_limits: bool,
}

/// The configuration file, in TOML. Every value has a default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    data: Option<PathBuf>,
    listen: Option<Address>,
    monitor: Option<Address>,
    memory: Option<Size>,
    shard_limits: Option<bool>,
}

impl Settings {
    /// Joins the sources and checks the result.
    pub(crate) fn load(args: &UpArgs) -> Result<Self, Failure> {
        let file = args.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let given =
            |flag: &Option<Address>, file: Option<Address>| flag.clone().or(file).map(|given| given.0);
        let settings = Settings {
            data: args.data.clone().or(file.data).unwrap_or_else(|| DATA_DEFAULT.into()),
            listen: given(&args.listen, file.listen).unwrap_or(LISTEN_DEFAULT),
            monitor: given(&args.monitor, file.monitor).unwrap_or(MONITOR_DEFAULT),
            memory_bytes: file.memory.unwrap_or(MEMORY_DEFAULT).0,
            shard_limits: file.shard_limits.unwrap_or(false),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Failure> {
        check_loopback("listen", self.listen)?;
        check_loopback("monitor", self.monitor)?;
        if self.listen == self.monitor && self.listen.port() != 0 {
            return Err(Failure::usage(
                format!("listen and monitor have the same address {}", self.listen),
                "give one of them another port; port 0 takes a free one",
            ));
        }
        if self.memory_bytes < MEMORY_MIN.0 {
            return Err(Failure::usage(
                format!(
                    "memory of {} is too little: it must be at least {MEMORY_MIN}",
                    Size(self.memory_bytes)
                ),
                "change `memory` in the configuration file",
            ));
        }
        Ok(())
    }
}

/// Nobody is asked who he is, so nobody from outside may come in.
fn check_loopback(name: &str, address: SocketAddr) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "the {name} address {address} can be reached from other machines, and this build has no \
             authentication: anyone could read and delete your data"
        ),
        format!(
            "use 127.0.0.1:{port} or [::1]:{port}; from elsewhere, tunnel to it (ssh -L {port}:127.0.0.1:{port} HOST)",
            port = address.port()
        ),
    ))
}

fn read_file(path: &Path) -> Result<File, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::io("read the configuration file", path, &error))?;
    toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        Failure::usage(
            format!("{}, line {line}: {}", path.display(), error.message().trim()),
            "the file may set data, listen, monitor, memory and shard_limits",
        )
    })
}

/// An address to listen on: an IP address or `localhost`, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Address(pub(crate) SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("{}:{port}", Ipv4Addr::LOCALHOST),
            None => text.to_owned(),
        };
        numeric.parse().map(Address).map_err(|_| {
            "an address is an IP address and a port, for instance 127.0.0.1:4566; port 0 takes a free one"
                .to_owned()
        })
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
