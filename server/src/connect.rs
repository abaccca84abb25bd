//! How a command reaches the data: through the server that holds the directory, or by opening it itself.
//!
//! ```text
//!   lock is free ─────────────────────▶ open the engine here, close it behind the command
//!   lock is held, with an address ────▶ talk to that server
//!   lock is held, server is starting ─▶ wait for it
//!   lock is held by another command ──▶ say who holds it
//! ```
//!
//! With `--engine aws` there is no directory, and the services of AWS are called from here.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_aws::Aws;
use anabranch_engine::{DirectoryLock, Engine, Holder, LockError, Options, SystemClock, SystemDisk};
use anabranch_model::Clock;
use futures_core::Stream;
use futures_util::stream;

use crate::api::wire::{BackupLine, EngineBody};
use crate::backend::EngineArgs;
use crate::backup::{self, Backups};
use crate::failure::Failure;
use crate::remote::Remote;
use crate::runtime::pause;
use crate::stores::Stores;

/// The file in which a data directory names its holder; it is there as soon as anything is.
const LOCK_FILE: &str = "LOCK";

/// How long a command waits before it looks again whether a server has started.
const STARTING_WAIT: Duration = Duration::from_millis(50);
/// How often it looks.
const STARTING_WAITS_MAX: u32 = 100;

/// What happens if there is no data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is made.
    Create,
    /// The command fails: there is nothing to be found.
    Refuse,
}

/// The stores of a data directory, wherever they are.
pub(crate) struct Connection {
    stores: Stores,
    place: Place,
}

/// Where the engine runs.
enum Place {
    Here(Local),
    At(SocketAddr),
    /// Nowhere: AWS keeps the data.
    Aws(Box<Aws>),
}

struct Local {
    engine: Engine,
    data: PathBuf,
    /// Held as long as the engine is open.
    _lock: DirectoryLock,
}

/// Finds the store of a data directory. `command` is what other processes are told if they ask who holds it.
pub(crate) async fn connect(data: &Path, command: &str, missing: Missing) -> Result<Connection, Failure> {
    if missing == Missing::Refuse {
        check_present(data)?;
    }
    let mut waits = STARTING_WAITS_MAX;
    loop {
        match DirectoryLock::acquire(data, command) {
            Ok(lock) => return open(data, lock).await,
            Err(LockError::Held(Holder { listen: Some(address), .. })) => {
                return Ok(Connection::remote(address));
            }
            Err(LockError::Held(holder)) if waits > 0 && is_starting(&holder) => {
                waits -= 1;
                pause(STARTING_WAIT).await;
            }
            Err(error) => return Err(lock_failure(data, error)),
        }
    }
}

/// A server has no address until it has opened its directory, and a lock that was taken this moment names nobody.
fn is_starting(holder: &Holder) -> bool {
    holder.pid == 0 || holder.command == crate::up::COMMAND
}

impl Connection {
    fn remote(address: SocketAddr) -> Self {
        Connection { stores: Stores::at(address), place: Place::At(address) }
    }

    /// The services of AWS.
    pub(crate) fn aws(aws: &Aws, args: &EngineArgs) -> Result<Self, Failure> {
        Ok(Connection { stores: Stores::on(aws, args)?, place: Place::Aws(Box::new(aws.clone())) })
    }

    /// The stores.
    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The connection to AWS, if AWS keeps the data.
    pub(crate) fn cloud(&self) -> Option<&Aws> {
        match &self.place {
            Place::Aws(aws) => Some(aws),
            Place::Here(_) | Place::At(_) => None,
        }
    }

    /// Whether others can write while this command reads.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self.place, Place::Here(_))
    }

    /// Where the data is, for a person.
    pub(crate) fn describe(&self) -> String {
        match &self.place {
            Place::Here(local) => format!("{}, held by nobody else", local.data.display()),
            Place::At(address) => format!("held by the server at {address}"),
            Place::Aws(_) => "kept by AWS".to_owned(),
        }
    }

    /// How the embedded engine is doing, wherever it runs.
    pub(crate) async fn status(&self) -> anabranch_model::Result<EngineBody> {
        match &self.place {
            Place::Here(local) => Ok(local.engine.status().into()),
            Place::At(address) => Ok(Remote::new(*address).status().await?.engine),
            Place::Aws(_) => Ok(EngineBody::default()),
        }
    }

    /// Backs the data up to an absolute path; the lines say how far it is.
    pub(crate) async fn back_up(
        &self,
        target: &Path,
    ) -> Result<Pin<Box<dyn Stream<Item = anabranch_model::Result<BackupLine>> + Send>>, Failure> {
        match &self.place {
            Place::Here(local) => {
                let news = Backups::new(&local.engine, &local.data).start(target);
                Ok(Box::pin(stream::unfold(
                    news,
                    |mut news| async move { Some((Ok(news.recv().await?), news)) },
                )))
            }
            Place::At(address) => {
                let text = target.to_str().ok_or_else(|| {
                    Failure::usage("the path of the target is not UTF-8", "choose another name for it")
                })?;
                Ok(Box::pin(Remote::new(*address).back_up(text).await?))
            }
            Place::Aws(_) => Err(Failure::usage(backup::NOT_OF_AWS, backup::INSTEAD)),
        }
    }

    /// Leaves the directory as a clean shutdown does.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self.place {
            Place::Here(local) => Ok(local.engine.close().await?),
            Place::At(_) | Place::Aws(_) => Ok(()),
        }
    }
}

async fn open(data: &Path, lock: DirectoryLock) -> Result<Connection, Failure> {
    let engine = open_engine(data, Options::default(), Arc::new(SystemClock::new())).await?;
    let stores = Stores::of(&engine);
    Ok(Connection { stores, place: Place::Here(Local { engine, data: data.to_owned(), _lock: lock }) })
}

/// Opens the engine on a directory whose lock the caller holds.
pub(crate) async fn open_engine(
    data: &Path,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<Engine, Failure> {
    let folder = data.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        let disk = SystemDisk::open(&folder)
            .map_err(|error| Failure::io("use the data directory", &folder, &error))?;
        Engine::open(Arc::new(disk), clock, options).map_err(Failure::from)
    });
    match opened.await {
        Ok(result) => result,
        Err(error) => Err(Failure::new(
            "corrupt",
            format!("opening the data directory {} broke off: {error}", data.display()),
            "keep a copy of the data directory and report this",
        )),
    }
}

/// A directory without a lock file has never held data, and a reading command leaves it alone.
fn check_present(data: &Path) -> Result<(), Failure> {
    if data.join(LOCK_FILE).exists() {
        return Ok(());
    }
    Err(Failure::usage(
        format!("no data directory at {}", data.display()),
        "start `anabranch up`, or say where the data is with --data DIR",
    ))
}

/// What to say when a directory cannot be locked.
pub(crate) fn lock_failure(data: &Path, error: LockError) -> Failure {
    let holder = match error {
        LockError::Io { path, error } => return Failure::io("use the data directory:", &path, &error),
        LockError::Held(holder) => holder,
    };
    let addresses = match (holder.listen, holder.monitor) {
        (Some(listen), Some(monitor)) => format!(", which listens on {listen} (monitor {monitor})"),
        (Some(listen), None) => format!(", which listens on {listen}"),
        (None, _) => String::new(),
    };
    Failure::new(
        "directory_in_use",
        format!(
            "the data directory {} is in use by process {} (`{}`){addresses}",
            data.display(),
            holder.pid,
            holder.command
        ),
        match holder.listen {
            Some(_) => "use that server, stop it, or choose another directory with --data DIR",
            None => "try again when that process is done, or start `anabranch up` for commands to share",
        },
    )
}
