//! The settings of the server: a flag wins over the environment, which wins over the file, which wins over the
//! default. Clap has joined flags and environment before this file sees them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anabranch_bus::flow::Flow;
use anabranch_wire::Keys;
use serde::Deserialize;

use crate::bots;
use crate::failure::Failure;
use crate::quantity::Size;
use crate::tls::Source;
use crate::up::UpArgs;

/// Where data lives if nobody says otherwise.
pub(crate) const DATA_DEFAULT: &str = "./anabranch-data";
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4566);
const MONITOR_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4580);
const MEMORY_DEFAULT: Size = Size(64 << 20);
/// The least memory: a quarter of it holds one request of the largest size.
const MEMORY_MIN: Size = Size(64 << 20);

/// All settings, checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) monitor: SocketAddr,
    pub(crate) memory_bytes: u64,
    pub(crate) shard_limits: bool,
    /// Who may call by the AWS protocols. Without keys anyone may who is on this machine.
    pub(crate) access_keys: Keys,
    /// Names of this server beside `localhost`. What stands before one of them in the host of a request is a bucket.
    pub(crate) hosts: Vec<String>,
    /// How long a stream says that it is not ready yet, after it was made or changed.
    pub(crate) transition: Duration,
    /// Where the certificate comes from, if TLS is spoken.
    pub(crate) tls: Option<Source>,
    /// Bots that run in the server, by the files that declare them.
    pub(crate) flows: Vec<Flow>,
}

/// Longest time that a stream may say so.
const TRANSITION_MS_MAX: u64 = 60_000;

/// The configuration file, in TOML. Every value has a default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    data: Option<PathBuf>,
    listen: Option<Address>,
    monitor: Option<Address>,
    memory: Option<Size>,
    shard_limits: Option<bool>,
    /// Secrets by the names of their keys.
    access_keys: Option<BTreeMap<String, String>>,
    hosts: Option<Vec<String>>,
    transition_ms: Option<u64>,
    tls: Option<bool>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    /// Files with bots; a path is looked for beside this file.
    flows: Option<Vec<PathBuf>>,
}

impl Settings {
    /// Joins the sources and checks the result.
    pub(crate) fn load(args: &UpArgs) -> Result<Self, Failure> {
        let file = args.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let given =
            |flag: &Option<Address>, file: Option<Address>| flag.clone().or(file).map(|given| given.0);
        let tls = tls(args, &file)?;
        let settings = Settings {
            data: args.data.clone().or(file.data).unwrap_or_else(|| DATA_DEFAULT.into()),
            listen: given(&args.listen, file.listen).unwrap_or(LISTEN_DEFAULT),
            monitor: given(&args.monitor, file.monitor).unwrap_or(MONITOR_DEFAULT),
            memory_bytes: file.memory.unwrap_or(MEMORY_DEFAULT).0,
            shard_limits: file.shard_limits.unwrap_or(false),
            access_keys: keys(file.access_keys.unwrap_or_default())?,
            hosts: hosts(file.hosts.unwrap_or_default())?,
            transition: Duration::from_millis(file.transition_ms.unwrap_or(0)),
            tls,
            flows: flows(args.config.as_deref(), &file.flows.unwrap_or_default())?,
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Failure> {
        if self.access_keys.is_empty() {
            check_loopback("listen", self.listen, "no access_keys are configured", "set access_keys, or ")?;
        }
        check_loopback("monitor", self.monitor, "the monitor asks nobody who he is", "")?;
        if self.transition.as_millis() > u128::from(TRANSITION_MS_MAX) {
            return Err(Failure::usage(
                format!("transition_ms of {} is too long", self.transition.as_millis()),
                format!("it may be up to {TRANSITION_MS_MAX}"),
            ));
        }
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

/// Where nobody is asked who he is, nobody from outside may come in.
fn check_loopback(name: &str, address: SocketAddr, why: &str, remedy: &str) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "the {name} address {address} can be reached from other machines, and there is no authentication \
             ({why}): anyone could read and delete your data"
        ),
        format!(
            "{remedy}use 127.0.0.1:{port} or [::1]:{port}; from elsewhere, tunnel to it \
             (ssh -L {port}:127.0.0.1:{port} HOST)",
            port = address.port()
        ),
    ))
}

/// A certificate that is given is used, whoever else asks for TLS.
fn tls(args: &UpArgs, file: &File) -> Result<Option<Source>, Failure> {
    let given = match (&args.tls_cert, &args.tls_key) {
        (None, None) => (file.tls_cert.clone(), file.tls_key.clone()),
        flags => (flags.0.clone(), flags.1.clone()),
    };
    match given {
        (Some(certificate), Some(key)) => Ok(Some(Source::Given { certificate, key })),
        (None, None) => Ok((args.tls || file.tls == Some(true)).then_some(Source::Made)),
        _ => Err(Failure::usage(
            "a certificate for TLS needs its key, and a key its certificate",
            "set both tls_cert and tls_key, or tls = true alone to have them made",
        )),
    }
}

/// Keys that can be signed with.
fn keys(pairs: BTreeMap<String, String>) -> Result<Keys, Failure> {
    let usable = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let named = |name: &str| usable(name) && !name.contains(['/', ',', '=']);
    match pairs.iter().find(|(name, secret)| !named(name) || !usable(secret)) {
        Some((name, _)) => Err(Failure::usage(
            format!("the access key `{}` cannot be signed with", name.escape_debug()),
            "a key and its secret are printable ASCII without spaces, and neither is empty",
        )),
        None => Ok(Keys::new(pairs)),
    }
}

/// Names that can stand at the end of a host, in lower case.
fn hosts(names: Vec<String>) -> Result<Vec<String>, Failure> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let label = |label: &str| !label.is_empty() && label.len() <= 63 && label.bytes().all(letter);
    // The last label of a name has a letter; that of an address has none.
    let address = |name: &str| {
        !name.rsplit('.').next().is_some_and(|last| last.bytes().any(|b| b.is_ascii_alphabetic()))
    };
    match names.iter().find(|name| name.len() > 253 || !name.split('.').all(label) || address(name)) {
        Some(name) => Err(Failure::usage(
            format!("`{}` in hosts is not the name of a server", name.escape_debug()),
            "a name is letters, digits and hyphens between dots, without a port, for instance s3.example.org",
        )),
        None => Ok(names.into_iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}

/// The files with bots, beside the configuration that names them. No two bots have one name.
fn flows(config: Option<&Path>, files: &[PathBuf]) -> Result<Vec<Flow>, Failure> {
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    bots::read_all(&files)
}

fn read_file(path: &Path) -> Result<File, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::io("read the configuration file", path, &error))?;
    toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        Failure::usage(
            format!("{}, line {line}: {}", path.display(), error.message().trim()),
            "the file may set data, listen, monitor, memory, shard_limits, transition_ms, hosts, access_keys, tls, \
             tls_cert, tls_key and flows",
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
