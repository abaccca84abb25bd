//! `anabranch up --tls`: TLS and plain HTTP on one port.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use harness::{Data, Server, binary, http, run};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const CALL: &str = "POST / HTTP/1.1\r\nhost: localhost\r\nx-amz-target: AmazonSQS.ListQueues\r\n\
                    content-length: 2\r\nconnection: close\r\n\r\n{}";

/// A client that trusts what the server has made.
fn client(root: &Path, languages: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(root).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = languages.iter().map(|language| language.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Sends a request over TLS and reads the whole answer.
fn exchange(address: SocketAddr, root: &Path, name: &str, request: &str) -> std::io::Result<String> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(client(root, &["http/1.1"]), name).unwrap();
    let mut stream = StreamOwned::new(connection, http::connect(address));
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    Ok(answer)
}

#[test]
fn one_port_speaks_tls_and_plain_http() {
    let data = Data::new();
    let server = Server::start(&data.path(), &["--tls"]);
    assert!(server.ready_line.contains("ready: https://127.0.0.1:"), "{}", server.ready_line);
    let root = data.path().join("tls/root.pem");
    for name in ["localhost", "s3.localhost", "photos.s3.localhost", "127.0.0.1", "::1"] {
        let answer = exchange(server.listen, &root, name, CALL).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {answer}");
    }
    exchange(server.listen, &root, "example.org", CALL).expect_err("it is not called so");
    // Commands and old scripts on this machine go on as before.
    let plain = http::exchange(server.listen, CALL.as_bytes());
    assert_eq!(plain.status, 200);
    data.stream(&["create", "rides"]).succeeded();
    let kept = std::fs::read(&root).unwrap();
    let told = server.stop().succeeded().stdout;
    assert!(told.contains("AWS_CA_BUNDLE=/") && told.contains("NODE_EXTRA_CA_CERTS=/"), "{told}");
    let server = Server::start(&data.path(), &["--tls"]);
    assert_eq!(std::fs::read(&root).unwrap(), kept, "clients go on trusting it");
    exchange(server.listen, &root, "localhost", CALL).unwrap();
    server.stop().succeeded();
}

#[test]
fn our_commands_trust_what_the_server_says() {
    let data = Data::new();
    let server = Server::start(&data.path(), &["--tls"]);
    data.stream(&["create", "rides"]).succeeded();
    let root = data.path().join("tls/root.pem");
    let mut command = binary();
    command.args(["stream", "ls", "--engine", "aws", "--region", "us-east-1", "--endpoint"]);
    command.arg(format!("https://{}", server.listen)).env("SSL_CERT_FILE", &root);
    command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
    let listed = run(command).succeeded().stdout;
    assert!(listed.contains("rides"), "{listed}");
    let told = server.stop().succeeded().stdout;
    assert!(told.contains(&format!("SSL_CERT_FILE={}", root.display())), "{told}");
}

#[tokio::test]
async fn http2_is_agreed_on_and_addresses_lead_back() {
    let data = Data::new();
    let server = Server::start(&data.path(), &["--tls"]);
    let root = data.path().join("tls/root.pem");
    let connector = TlsConnector::from(client(&root, &["h2", "http/1.1"]));
    let socket = tokio::net::TcpStream::connect(server.listen).await.unwrap();
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::post(format!("https://localhost:{}/", server.listen.port()))
        .header("x-amz-target", "AmazonSQS.CreateQueue")
        .body(Full::new(bytes::Bytes::from(r#"{"QueueName":"jobs"}"#)))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap().collect().await.unwrap().to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let expected = format!("https://localhost:{}/000000000000/jobs", server.listen.port());
    assert_eq!(answer["QueueUrl"], expected.as_str());
}

#[test]
fn a_certificate_can_be_given() {
    let (made, data) = (Data::new(), Data::new());
    Server::start(&made.path(), &["--tls"]).stop().succeeded();
    let file = |name: &str| made.path().join("tls").join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let server = Server::start(&data.path(), &["--tls-cert", &certificate, "--tls-key", &key]);
    let answer = exchange(server.listen, Path::new(&file("root.pem")), "localhost", CALL).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    server.stop().succeeded();
    assert!(!data.path().join("tls").exists());

    let up = |arguments: &[&str]| {
        let mut command = binary();
        command.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]);
        command.arg(data.path()).args(arguments);
        run(command)
    };
    let alone = up(&["--tls-cert", &certificate]);
    assert!(alone.code == 2 && alone.stderr.contains("--tls-key"), "{alone:?}");
    up(&["--tls-cert", &key, "--tls-key", &key]).failed(2, &["key.pem", "PEM"]);
    up(&["--tls-cert", &certificate, "--tls-key", "/none"]).failed(2, &["/none"]);
    let other = Data::new();
    Server::start(&other.path(), &["--tls"]).stop().succeeded();
    let foreign = other.path().join("tls/key.pem");
    up(&["--tls-cert", &certificate, "--tls-key", foreign.to_str().unwrap()]).failed(2, &["certificate.pem"]);
}

#[test]
fn what_is_no_handshake_ends_the_connection_only() {
    let data = Data::new();
    let server = Server::start(&data.path(), &["--tls"]);
    let closes = |address: SocketAddr, bytes: &[u8]| {
        let mut socket: TcpStream = http::connect(address);
        socket.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = socket.read_to_end(&mut rest);
        rest
    };
    closes(server.listen, b"\x16\x03\x01\xff\xffnonsense");
    closes(server.listen, &[0x16; 70_000]);
    let root = data.path().join("tls/root.pem");
    exchange(server.listen, &root, "localhost", CALL).unwrap();
    server.stop().succeeded();

    let plain = Server::start(&data.path(), &[]);
    assert_eq!(closes(plain.listen, b"\x16\x03\x01\x00\x00"), b"", "it was not asked to speak TLS");
    assert_eq!(http::exchange(plain.listen, CALL.as_bytes()).status, 200);
}
