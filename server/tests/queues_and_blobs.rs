//! The calls on queues and blobs as strangers make them: guarded, limited, and not waited for when they are gone.

mod harness;

use std::io::Write;
use std::sync::Arc;

use anabranch_model::blob::{BlobKey, BlobStore, Body, BucketName, PutOptions};
use anabranch_model::laws::reference::{ReferenceBlobs, SimpleQueues};
use anabranch_model::queue::{NewMessage, QueueName, QueueOptions, QueueStore, ReceiveOptions};
use anabranch_model::{Error, Result};
use anabranch_server::{Host, Remote, Stores};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use harness::http;
use harness::reference::Reference;
use metrics_exporter_prometheus::PrometheusBuilder;

const RECEIVE: &str = "/_anabranch/v1/receive";
const PUT_BLOB: &str = "/_anabranch/v1/put-blob";

async fn host() -> (Host, Remote) {
    let (queues, blobs) = (SimpleQueues::new(), ReferenceBlobs::new());
    let stores = Stores::default().with_queues(Arc::new(queues)).with_blobs(Arc::new(blobs));
    let host = Host::start(stores).await.expect("a free port");
    let remote = Remote::new(host.address());
    (host, remote)
}

fn bucket() -> BucketName {
    BucketName::new("photos").expect("a good name")
}

fn key() -> BlobKey {
    BlobKey::new("key").expect("a good key")
}

fn body(pieces: usize) -> Body {
    let piece = Bytes::from(vec![7; 64 << 10]);
    Box::pin(stream::iter((0..pieces).map(move |_| Ok(piece.clone()))))
}

/// A receive that waits for a client that is gone would take the next message and give it to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_receive_ends_with_its_client() -> Result<()> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    metrics::set_global_recorder(recorder).expect("the only one of this process");
    let (host, remote) = host().await;
    let queue = QueueName::new("orders")?;
    remote.create_queue(&queue, QueueOptions::default()).await?;

    let request = r#"{"queue":"orders","messages_max":1,"wait":{"secs":20,"nanos":0}}"#;
    let mut socket = http::connect(host.address());
    let head = format!(
        "POST {RECEIVE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        request.len()
    );
    socket.write_all(format!("{head}{request}").as_bytes()).expect("the server reads");
    let waiting = async |count: u32| {
        let line = format!("anabranch_queue_receives_waiting {count}\n");
        let limit = async {
            while !metrics.render().contains(&line) {
                tokio::task::yield_now().await
            }
        };
        tokio::time::timeout(harness::PATIENCE, limit).await.expect(&line);
    };
    waiting(1).await;
    drop(socket);
    waiting(0).await;

    remote.send(&queue, vec![NewMessage::new("m")]).await?;
    let received = remote.receive(&queue, ReceiveOptions::all()).await?;
    assert_eq!(received.len(), 1);
    remote.create_bucket(&bucket()).await?;
    remote.put(&bucket(), &key(), body(2), PutOptions::default()).await?;
    let rendered = metrics.render();
    for line in [
        r#"anabranch_queue_calls_total{operation="send-messages",result="ok"} 1"#,
        "anabranch_queue_messages_sent_total 1",
        "anabranch_queue_messages_received_total 1",
        r#"anabranch_blob_calls_total{operation="put-blob",result="ok"} 1"#,
        "anabranch_blob_bytes_received_total 131072",
    ] {
        assert!(rendered.contains(line), "{line} is missing:\n{rendered}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_does_not_wait_for_messages() -> Result<()> {
    let (host, remote) = host().await;
    let queue = QueueName::new("orders")?;
    remote.create_queue(&queue, QueueOptions::default()).await?;
    let options =
        ReceiveOptions { wait: Some(anabranch_model::limits::RECEIVE_WAIT_MAX), ..ReceiveOptions::all() };
    let waiting = tokio::spawn(async move { remote.receive(&queue, options).await });
    // Whether the receive has arrived by then or not, it is told that nobody serves it.
    tokio::task::yield_now().await;
    host.stop().await;
    let ended = tokio::time::timeout(harness::PATIENCE, waiting).await.expect("in time").expect("no panic");
    assert!(matches!(ended, Err(Error::Unavailable(_))), "{ended:?}");
    Ok(())
}

/// A client that is still sending hears why its blob is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_is_refused_with_its_reason() {
    let (_host, remote) = host().await;
    for _ in 0..5 {
        // Ten megabytes are more than sockets hold.
        let put = remote.put(&bucket(), &key(), body(160), PutOptions::default()).await;
        assert_eq!(put, Err(Error::BucketNotFound(bucket())));
    }
}

#[test]
fn web_pages_are_kept_out_and_wrong_requests_have_reasons() {
    let store = Reference::start();
    let address = store.host.address();
    for path in [RECEIVE, PUT_BLOB, "/_anabranch/v1/get-blob"] {
        assert_eq!(http::post(address, path, &["Origin: https://example.org"], "{}").status, 403, "{path}");
        assert_eq!(http::post(address, path, &["Host: example.org"], "{}").status, 403, "{path}");
        assert_eq!(http::get(address, path, &[]).status, 405, "{path}");
    }
    let wrong_head = format!("anabranch-head: {}", STANDARD.encode(r#"{"place":{"bucket":"photos"}}"#));
    for (headers, reason) in [
        (vec![], "is missing"),
        (vec!["anabranch-head: ?"], "is wrong"),
        (vec![wrong_head.as_str()], "is not understood"),
    ] {
        let answer = http::post(address, PUT_BLOB, &headers, "body");
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.json()["message"].as_str().unwrap_or_default().contains(reason), "{answer:?}");
    }
    let receipts = [r#""r""#; 11].join(",");
    let many = format!(r#"{{"queue":"orders","receipts":[{receipts}]}}"#);
    let answer = http::post(address, "/_anabranch/v1/delete-messages", &[], &many);
    assert!(answer.status == 400 && answer.body.contains("more than 10 entries"), "{answer:?}");
    let answer = http::post(address, "/_anabranch/v1/streams", &[], r#"{"limit":1}"#);
    assert!(answer.status == 400 && answer.body.contains("there are no streams here"), "{answer:?}");
}
