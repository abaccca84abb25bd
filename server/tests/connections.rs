//! Large heads, and connections that break off or speak nothing that is known: the others are answered.

mod harness;

use std::io::Write as _;

use harness::{Data, Server, http};

fn call(server: &Server) -> http::Answer {
    http::post(server.listen, "/", &["x-amz-target: AmazonSQS.ListQueues"], "{}")
}

#[test]
fn a_head_may_have_many_headers_but_not_any_number() {
    let data = Data::new();
    let server = data.serve();
    let put = |target: &str, headers: &[String]| {
        let length = "content-length: 0\r\nconnection: close\r\n";
        let headers = headers.join("\r\n");
        let request =
            format!("PUT {target} HTTP/1.1\r\nhost: {}\r\n{length}{headers}\r\n\r\n", server.listen);
        http::exchange(server.listen, request.replace("\r\n\r\n\r\n", "\r\n\r\n").as_bytes())
    };
    assert_eq!(put("/bucket", &[]).status, 200);
    let metadata = |count: usize| (0..count).map(|n| format!("x-amz-meta-{n}: v")).collect::<Vec<_>>();
    assert_eq!(put("/bucket/key", &metadata(150)).status, 200);
    let head = http::exchange(
        server.listen,
        format!("HEAD /bucket/key HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.listen)
            .as_bytes(),
    );
    assert_eq!(head.head.matches("x-amz-meta-").count(), 150, "{}", head.head);
    assert_eq!(put("/bucket/key", &metadata(300)).status, 431);
    assert_eq!(put("/bucket/key", &[format!("x-amz-meta-a: {}", "v".repeat(70_000))]).status, 431);
    assert_eq!(call(&server).status, 200);
}

#[test]
fn what_breaks_off_or_is_no_http_leaves_the_others_alone() {
    let data = Data::new();
    let server = data.serve();
    for bytes in [
        &b""[..],
        b"\0",
        b"PRI ",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\nx-amz-target: AmazonSQS.ListQueues\r\n\r\n{",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
    ] {
        let mut socket = http::connect(server.listen);
        socket.write_all(bytes).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = http::read_answer(&mut socket);
        assert!(answer.status == 0 || answer.status >= 400, "{}: {answer:?}", bytes.escape_ascii());
        assert_eq!(call(&server).status, 200);
    }
    server.stop().succeeded();
}
