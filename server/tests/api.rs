//! The control API as strangers meet it: web pages, wrong requests, too many of them.

mod harness;

use harness::{Data, http};

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
fn other_paths_say_what_is_not_served() {
    let data = Data::new();
    let server = data.serve();
    for path in ["/", "/bucket/key", "/_anabranch", "/health"] {
        let answer = http::get(server.listen, path, &[]);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["message"].as_str().unwrap().contains("AWS protocols"), "{answer:?}");
    }
    let kinesis = ["X-Amz-Target: Kinesis_20131202.ListStreams"];
    assert_eq!(http::post(server.listen, "/", &kinesis, "{}").status, 404);
    let future = http::post(server.listen, "/_anabranch/v2/streams", &[], "{}");
    assert!(future.json()["message"].as_str().unwrap().contains("version"), "{future:?}");
    assert_eq!(http::get(server.listen, STREAMS, &[]).status, 405);
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
    let many: Vec<String> = (0..100).map(|number| format!("X-{number}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let answer = http::post(server.listen, STREAMS, &many, r#"{"limit":1}"#);
    assert!(matches!(answer.status, 431 | 0), "{answer:?}");
    assert_eq!(http::post(server.listen, STREAMS, &[], r#"{"limit":1}"#).status, 200, "it still serves");
}

#[test]
fn connections_are_limited_and_places_come_back() {
    let data = Data::new();
    let server = data.serve();
    // More than are served. They are accepted in the order in which they come, so the last one finds no place.
    let open: Vec<_> = (0..600).map(|_| http::connect(server.listen)).collect();
    let refused = http::read_answer(&mut http::connect(server.listen));
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(open);
    // The server notices closed connections when it looks, so the first attempts may come too early.
    let served = (0..1_000).any(|_| http::post(server.listen, STREAMS, &[], r#"{"limit":1}"#).status == 200);
    assert!(served, "no place came back");
}
