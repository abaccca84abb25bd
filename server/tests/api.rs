//! The control API as strangers meet it: web pages, wrong requests, too many of them.

mod harness;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use harness::{Data, Server, binary, http};

const STREAMS: &str = "/_anabranch/v1/streams";

#[test]
fn web_pages_are_kept_out() {
    let data = Data::new();
    let server = data.serve();
    let body = r#"{"limit":10}"#;
    assert_eq!(http::post(server.listen, STREAMS, &[], body).status, 200);
    for header in ["Origin: https://example.org", "Origin: null", "Origin: http://localhost:4566"] {
        let answer = http::post(server.listen, STREAMS, &[header], body);
        assert_eq!(answer.status, 403, "{header}");
        assert!(answer.json()["message"].as_str().unwrap().contains("Origin"));
    }
    for host in ["Host: example.org", "Host: localhost.example.org:4566", "Host: 0.0.0.0", "Host: "] {
        assert_eq!(http::post(server.listen, STREAMS, &[host], body).status, 403, "{host}");
    }
    for host in ["Host: localhost", "Host: 127.0.0.1:1", "Host: [::1]:4566"] {
        assert_eq!(http::post(server.listen, STREAMS, &[host], body).status, 200, "{host}");
    }
}

#[test]
fn other_paths_are_for_the_aws_protocols() {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks"]).succeeded();
    let kinesis = ["X-Amz-Target: Kinesis_20131202.ListStreams"];
    let answer = http::post(server.listen, "/", &kinesis, "{}");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["StreamNames"], serde_json::json!(["clicks"]));
    let s3 = http::get(server.listen, "/bucket/key", &[]);
    assert_eq!(s3.status, 404, "{s3:?}");
    assert!(s3.body.contains("<Code>NoSuchBucket</Code>"), "{s3:?}");
    let page = http::post(server.listen, "/", &[kinesis[0], "Origin: http://example.org"], "{}");
    assert_eq!(page.status, 403, "{page:?}");
    let future = http::post(server.listen, "/_anabranch/v2/streams", &[], "{}");
    assert!(future.json()["message"].as_str().unwrap().contains("version"), "{future:?}");
    assert_eq!(http::get(server.listen, STREAMS, &[]).status, 405);
}

#[test]
fn http2_is_spoken_to_those_who_know() {
    let data = Data::new();
    let server = data.serve();
    let mut socket = http::connect(server.listen);
    // The preface, and settings without any setting.
    socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut frame = [0; 9];
    socket.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "the server answers with its settings: {frame:?}");
}

#[test]
fn with_keys_only_signed_calls_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("anabranch.toml");
    let text = "listen = \"127.0.0.1:0\"\nmonitor = \"127.0.0.1:0\"\n[access_keys]\nme = \"secret\"\n";
    std::fs::write(&config, text).unwrap();
    let mut command = binary();
    command.current_dir(folder.path()).args(["up", "--config"]).arg(&config);
    let server = Server::spawn(&mut command);
    let address = server.listen;
    let target = "X-Amz-Target: Kinesis_20131202.ListStreams";
    let unsigned = http::post(address, "/", &[target], "{}");
    assert_eq!(unsigned.status, 400, "{unsigned:?}");
    assert_eq!(unsigned.json()["__type"], "MissingAuthenticationTokenException");
    let unknown = "Authorization: AWS4-HMAC-SHA256 Credential=you/20261115/us-east-1/kinesis/aws4_request, \
                   SignedHeaders=host;x-amz-date, Signature=00";
    let stranger = http::post(address, "/", &[target, unknown, "X-Amz-Date: 20261115T000000Z"], "{}");
    assert_eq!(stranger.status, 400, "{stranger:?}");
    assert_ne!(stranger.json()["__type"], "UnknownOperationException");
    // Commands on this machine need no key.
    assert_eq!(http::post(address, STREAMS, &[], r#"{"limit":1}"#).status, 200);
    server.stop().succeeded();
}

#[test]
fn wrong_requests_are_refused_with_a_reason() {
    let data = Data::new();
    let server = data.serve();
    let append = "/_anabranch/v1/append";
    for (path, body, reason) in [
        (STREAMS, "", "not understood"),
        (STREAMS, "{", "not understood"),
        (STREAMS, r#"{"limit":-1}"#, "not understood"),
        (STREAMS, r#"{"limit":1,"more":2}"#, "unknown field"),
        (STREAMS, r#"{"limit":1,"after":"a/b"}"#, "only a-z"),
        (append, r#"{"stream":"clicks","records":[{"key":"k","data":"?"}]}"#, "base64"),
        (append, r#"{"stream":"clicks","records":[{"key":"k"}]}"#, "missing field"),
        (append, r#"{"stream":"clicks","records":[{"key":"k","hash_key":"x","data":""}]}"#, "hash key"),
    ] {
        let answer = http::post(server.listen, path, &[], body);
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        let json = answer.json();
        assert_eq!(json["error"]["code"], "invalid");
        assert!(json["message"].as_str().unwrap().contains(reason), "{body}: {json}");
    }
    let record = r#"{"key":"k","data":""}"#;
    let many = format!(r#"{{"stream":"clicks","records":[{}]}}"#, vec![record; 501].join(","));
    let answer = http::post(server.listen, append, &[], &many);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("more than 500 records"), "{answer:?}");
    let answer = http::post(server.listen, append, &[], r#"{"stream":"clicks","records":[]}"#);
    assert!(matches!(answer.status, 400 | 404), "{answer:?}");

    let text = http::exchange(
        server.listen,
        b"POST /_anabranch/v1/streams HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
    );
    assert_eq!(text.status, 415, "no content type");
}

#[test]
fn sizes_are_limited() {
    let data = Data::new();
    let server = data.serve();
    let announced = http::exchange(
        server.listen,
        b"POST /_anabranch/v1/append HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
          content-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{",
    );
    assert_eq!(announced.status, 413, "{announced:?}");
    let long_header = format!("X-Long: {}", "x".repeat(200_000));
    let answer = http::post(server.listen, STREAMS, &[&long_header], r#"{"limit":1}"#);
    assert!(matches!(answer.status, 431 | 0), "{answer:?}");
    let many: Vec<String> = (0..300).map(|number| format!("X-{number}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let answer = http::post(server.listen, STREAMS, &many, r#"{"limit":1}"#);
    assert!(matches!(answer.status, 431 | 0), "{answer:?}");
    assert_eq!(http::post(server.listen, STREAMS, &[], r#"{"limit":1}"#).status, 200, "it still serves");
}

#[test]
fn connections_are_limited_and_places_come_back() {
    let data = Data::new();
    // As many connections are served as the limit of open files leaves beside the engine: here 500.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 1000 && exec \"$0\" \"$@\""]).arg(binary().get_program());
    command.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]).arg(data.path());
    let server = Server::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // More than are served. They are accepted in the order in which they come, so the last one finds no place.
    let open: Vec<_> = (0..600).map(|_| http::connect(server.listen)).collect();
    let refused = http::read_answer(&mut http::connect(server.listen));
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(open);
    // The server notices closed connections when it looks, so the first attempts may come too early.
    let served = (0..1_000).any(|_| http::post(server.listen, STREAMS, &[], r#"{"limit":1}"#).status == 200);
    assert!(served, "no place came back");
}
