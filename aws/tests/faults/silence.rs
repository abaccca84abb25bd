//! A service that does not answer to one thing, for good: every call comes to an end.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_aws::{Aws, Blobs, Queues, Streams, Tables};
use anabranch_model::blob::{Body, PartChoice, PartNumber, PutOptions, Upload, WriteCondition};
use anabranch_model::queue::ReceiveOptions;
use anabranch_model::table::expression::exists;
use anabranch_model::table::{
    Action, Alteration, ChangeView, Get, Item, KeyCondition, KeyKind, KeySchema, Query, Scan, TableOptions,
    Update, Write,
};
use anabranch_model::{
    BlobKey, BlobStore, BucketName, NewMessage, NewRecord, NextMove, Position, QueueName, QueueOptions,
    QueueStore, ReadLimit, Result, ShardSource, StreamName, StreamOptions, StreamStore, TableName,
    TableStore,
};
use futures_util::future::{BoxFuture, join, join_all, join4};
use futures_util::{FutureExt, StreamExt};

use crate::peer::Peer;
use crate::peer::proxy::Fault::{self, *};
use crate::peer::proxy::Proxy;

/// How long one attempt may take here. A subscription takes a server a second or two.
const ATTEMPT_MAX: Option<Duration> = Some(Duration::from_secs(3));
/// Far more than the ten seconds that a service may be gone, and less than any patience with changes.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Whether a call whose answer is lost every time has succeeded in the end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Yes: a look has shown it.
    Seen,
    /// No: the error says that it may be tried again.
    Error,
}

/// Makes a call over the second connection, to something of this name that the first has made.
type Make = fn(Aws, Aws, String) -> BoxFuture<'static, Result<()>>;

/// The operation that is never answered, how the call ends, and the call.
type Call = (&'static str, End, Make);

/// A row of a table of calls, from a function that is given a store without faults, a faulty one, and a name.
macro_rules! call {
    ($operation:literal, $end:expr, $store:ident, |$direct:ident, $faulty:ident, $name:ident| $body:expr) => {{
        let make: Make = |direct, faulty, name| {
            let ($direct, $faulty, $name) = ($store::on(&direct), $store::on(&faulty), name);
            async move { $body }.boxed()
        };
        ($operation, $end, make)
    }};
}

/// A store on a connection.
trait On {
    fn on(aws: &Aws) -> Self;
}

impl On for Streams {
    fn on(aws: &Aws) -> Self {
        Streams::new(aws)
    }
}

impl On for Queues {
    fn on(aws: &Aws) -> Self {
        Queues::new(aws)
    }
}

impl On for Tables {
    fn on(aws: &Aws) -> Self {
        Tables::new(aws)
    }
}

impl On for Blobs {
    fn on(aws: &Aws) -> Self {
        Blobs::new(aws).expect("an endpoint")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_hangs() {
    let (mock, moto, local) = (Peer::kinesis_mock().await, Peer::moto().await, Peer::dynamodb_local().await);
    let ministack = Peer::ministack().await;
    join4(
        come_to_an_end(&mock, calls_to_streams()),
        come_to_an_end(&moto, calls_to_queues()),
        come_to_an_end(&local, calls_to_tables()),
        come_to_an_end(&ministack, calls_to_blobs()),
    )
    .await;
}

async fn come_to_an_end(peer: &Peer, calls: Vec<Call>) {
    let direct = peer.connect().await;
    let each = calls.into_iter().map(|call| {
        join(
            ends(peer.address(), direct.clone(), call, Hang),
            ends(peer.address(), direct.clone(), call, Refuse),
        )
    });
    join_all(each).await;
}

async fn ends(server: SocketAddr, direct: Aws, (operation, end, call): Call, fault: Fault) {
    let proxy = Proxy::start(server, move |request| (request.operation == operation).then_some(fault)).await;
    let faulty = proxy.connect(ATTEMPT_MAX).await;
    let call = call(direct, faulty, format!("{operation}-{fault:?}"));
    let result = tokio::time::timeout(CALL_MAX, call).await;
    let result = result.unwrap_or_else(|_| panic!("{operation} hangs with {fault:?}"));
    assert!(proxy.count(fault) > 0, "{operation} was not asked for");
    match (result, end, fault) {
        (Ok(()), End::Seen, Hang) => {}
        (Err(error), _, Refuse) | (Err(error), End::Error, _) => {
            assert_eq!(error.next_move(), NextMove::Retry, "{operation} with {fault:?}: {error:?}");
        }
        (result, ..) => panic!("{operation} with {fault:?} ends with {result:?}"),
    }
}

fn stream(name: &str) -> StreamName {
    StreamName::new(name).expect("a name")
}

/// Makes a stream, and returns its name and its shards.
async fn made_stream(direct: &Streams, name: &str) -> (StreamName, Vec<anabranch_model::Shard>) {
    let name = stream(name);
    direct.create_stream(&name, StreamOptions { shards: 2, ..StreamOptions::default() }).await.unwrap();
    let shards = direct.shards(&name, None, 10).await.unwrap().entries;
    (name, shards)
}

fn calls_to_streams() -> Vec<Call> {
    vec![
        call!("CreateStream", End::Seen, Streams, |direct, faulty, name| {
            let name = stream(&name);
            let made = faulty.create_stream(&name, StreamOptions::default()).await;
            let is_there = direct.stream(&name).await;
            assert_eq!(made.is_ok(), is_there.is_ok(), "{made:?}, {is_there:?}");
            made
        }),
        call!("DeleteStream", End::Seen, Streams, |direct, faulty, name| {
            let (name, _) = made_stream(&direct, &name).await;
            let gone = faulty.delete_stream(&name).await;
            let is_there = direct.stream(&name).await;
            assert_eq!(gone.is_ok(), is_there.is_err(), "{gone:?}, {is_there:?}");
            gone
        }),
        call!("ListStreams", End::Error, Streams, |_direct, faulty, _name| faulty
            .streams(None, 10)
            .await
            .map(drop)),
        call!("DescribeStreamSummary", End::Error, Streams, |direct, faulty, name| {
            let (name, _) = made_stream(&direct, &name).await;
            faulty.stream(&name).await.map(drop)
        }),
        call!("ListShards", End::Error, Streams, |direct, faulty, name| {
            let (name, _) = made_stream(&direct, &name).await;
            faulty.shards(&name, None, 10).await.map(drop)
        }),
        call!("IncreaseStreamRetentionPeriod", End::Seen, Streams, |direct, faulty, name| {
            let (name, _) = made_stream(&direct, &name).await;
            faulty.set_retention(&name, Duration::from_secs(48 * 3_600)).await
        }),
        call!("SplitShard", End::Seen, Streams, |direct, faulty, name| {
            let (name, shards) = made_stream(&direct, &name).await;
            let middle = shards[0].range.and_then(|range| range.midpoint()).unwrap();
            faulty.split(&name, &shards[0].id, middle).await.map(drop)
        }),
        call!("MergeShards", End::Seen, Streams, |direct, faulty, name| {
            let (name, shards) = made_stream(&direct, &name).await;
            faulty.merge(&name, &shards[0].id, &shards[1].id).await.map(drop)
        }),
        call!("PutRecords", End::Error, Streams, |direct, faulty, name| {
            let (name, _) = made_stream(&direct, &name).await;
            faulty.append(&name, vec![NewRecord::new("k", "v")]).await.map(drop)
        }),
        call!("GetShardIterator", End::Error, Streams, |direct, faulty, name| {
            let (name, shards) = made_stream(&direct, &name).await;
            faulty.read(&name, &shards[0].id, Position::TrimHorizon, ReadLimit::default()).await.map(drop)
        }),
        call!("GetRecords", End::Error, Streams, |direct, faulty, name| {
            let (name, shards) = made_stream(&direct, &name).await;
            faulty.follow(&name, &shards[0].id, Position::Latest).await.map(drop)
        }),
        call!("SubscribeToShard", End::Error, Streams, |direct, faulty, name| {
            subscribe(&direct, faulty, &name).await
        }),
        call!("DescribeStreamConsumer", End::Error, Streams, |direct, faulty, name| {
            subscribe(&direct, faulty, &name).await
        }),
        call!("RegisterStreamConsumer", End::Seen, Streams, |direct, faulty, name| {
            subscribe(&direct, faulty, &name).await
        }),
    ]
}

/// Follows with a registered consumer until a record has come.
async fn subscribe(direct: &Streams, faulty: Streams, name: &str) -> Result<()> {
    let (name, _) = made_stream(direct, name).await;
    let stored = direct.append(&name, vec![NewRecord::new("k", "v")]).await.unwrap().remove(0).unwrap();
    let faulty = faulty.with_fan_out("silent").unwrap();
    let mut follow = faulty.follow(&name, &stored.shard, Position::TrimHorizon).await?;
    follow.next().await.expect("an open shard does not end").map(drop)
}

async fn made_queue(direct: &Queues, name: &str) -> QueueName {
    let name = QueueName::new(name).expect("a name");
    direct.create_queue(&name, QueueOptions::default()).await.unwrap();
    name
}

/// A queue with a message that was received.
async fn with_receipt(direct: &Queues, name: &str) -> (QueueName, anabranch_model::Receipt) {
    let name = made_queue(direct, name).await;
    direct.send(&name, vec![NewMessage::new("m")]).await.unwrap().remove(0).unwrap();
    let receipt = direct.receive(&name, ReceiveOptions::all()).await.unwrap().remove(0).receipt;
    (name, receipt)
}

fn calls_to_queues() -> Vec<Call> {
    vec![
        call!("CreateQueue", End::Error, Queues, |_direct, faulty, name| {
            faulty.create_queue(&QueueName::new(&name).unwrap(), QueueOptions::default()).await
        }),
        call!("DeleteQueue", End::Seen, Queues, |direct, faulty, name| {
            faulty.delete_queue(&made_queue(&direct, &name).await).await
        }),
        call!("ListQueues", End::Error, Queues, |_direct, faulty, _name| faulty
            .queues(None, 10, "")
            .await
            .map(drop)),
        call!("GetQueueUrl", End::Error, Queues, |direct, faulty, name| {
            let queue = made_queue(&direct, &name).await;
            faulty.send(&queue, vec![NewMessage::new("m")]).await.map(drop)
        }),
        call!("GetQueueAttributes", End::Error, Queues, |direct, faulty, name| {
            faulty.queue(&made_queue(&direct, &name).await).await.map(drop)
        }),
        call!("SetQueueAttributes", End::Error, Queues, |direct, faulty, name| {
            let options = QueueOptions { visibility: Duration::from_secs(9), ..QueueOptions::default() };
            faulty.set_options(&made_queue(&direct, &name).await, options).await
        }),
        call!("PurgeQueue", End::Error, Queues, |direct, faulty, name| {
            faulty.purging_at_once().purge(&made_queue(&direct, &name).await).await
        }),
        call!("SendMessageBatch", End::Error, Queues, |direct, faulty, name| {
            let queue = made_queue(&direct, &name).await;
            faulty.send(&queue, vec![NewMessage::new("m")]).await.map(drop)
        }),
        call!("ReceiveMessage", End::Error, Queues, |direct, faulty, name| {
            faulty.receive(&made_queue(&direct, &name).await, ReceiveOptions::all()).await.map(drop)
        }),
        call!("DeleteMessageBatch", End::Error, Queues, |direct, faulty, name| {
            let (queue, receipt) = with_receipt(&direct, &name).await;
            faulty.delete(&queue, vec![receipt]).await.map(drop)
        }),
        call!("ChangeMessageVisibilityBatch", End::Error, Queues, |direct, faulty, name| {
            let (queue, receipt) = with_receipt(&direct, &name).await;
            faulty.change_visibility(&queue, vec![(receipt, Duration::from_secs(9))]).await.map(drop)
        }),
    ]
}

fn options() -> TableOptions {
    TableOptions::new(KeySchema::hash("id", KeyKind::Text))
}

fn item() -> Item {
    Item::new().with("id", "a")
}

async fn made_table(direct: &Tables, name: &str) -> TableName {
    let name = TableName::new(name).expect("a name");
    direct.create_table(&name, options()).await.unwrap();
    name
}

fn calls_to_tables() -> Vec<Call> {
    vec![
        call!("CreateTable", End::Seen, Tables, |direct, faulty, name| {
            let name = TableName::new(&name).unwrap();
            let made = faulty.create_table(&name, options()).await;
            let is_there = direct.table(&name).await;
            assert_eq!(made.is_ok(), is_there.is_ok(), "{made:?}, {is_there:?}");
            made
        }),
        call!("DeleteTable", End::Seen, Tables, |direct, faulty, name| {
            faulty.delete_table(&made_table(&direct, &name).await).await
        }),
        call!("UpdateTable", End::Seen, Tables, |direct, faulty, name| {
            let changes = Alteration::Changes(Some(ChangeView::New));
            faulty.alter(&made_table(&direct, &name).await, changes).await
        }),
        call!("UpdateTimeToLive", End::Seen, Tables, |direct, faulty, name| {
            let expiry = Alteration::TimeToLive(Some("ends".to_string()));
            faulty.alter(&made_table(&direct, &name).await, expiry).await
        }),
        call!("DescribeTable", End::Error, Tables, |direct, faulty, name| {
            faulty.table(&made_table(&direct, &name).await).await.map(drop)
        }),
        call!("DescribeTimeToLive", End::Error, Tables, |direct, faulty, name| {
            faulty.table(&made_table(&direct, &name).await).await.map(drop)
        }),
        call!("ListTables", End::Error, Tables, |_direct, faulty, _name| faulty
            .tables(None, 10)
            .await
            .map(drop)),
        call!("GetItem", End::Error, Tables, |direct, faulty, name| {
            faulty.get(&made_table(&direct, &name).await, Get::new(item())).await.map(drop)
        }),
        call!("PutItem", End::Error, Tables, |direct, faulty, name| {
            faulty.write(&made_table(&direct, &name).await, Write::put(item())).await.map(drop)
        }),
        call!("UpdateItem", End::Error, Tables, |direct, faulty, name| {
            let add = Write::update(item(), Update::new().add("n", 1));
            faulty.write(&made_table(&direct, &name).await, add).await.map(drop)
        }),
        call!("DeleteItem", End::Error, Tables, |direct, faulty, name| {
            let table = made_table(&direct, &name).await;
            direct.write(&table, Write::put(item())).await.unwrap();
            faulty.write(&table, Write::delete(item()).when(exists("id"))).await.map(drop)
        }),
        call!("BatchGetItem", End::Error, Tables, |direct, faulty, name| {
            let table = made_table(&direct, &name).await;
            faulty.batch_get(vec![(table, Get::new(item()))]).await.map(drop)
        }),
        call!("BatchWriteItem", End::Error, Tables, |direct, faulty, name| {
            let table = made_table(&direct, &name).await;
            faulty.batch_write(vec![(table, Action::Put(item()))]).await.map(drop)
        }),
        call!("TransactGetItems", End::Error, Tables, |direct, faulty, name| {
            let table = made_table(&direct, &name).await;
            faulty.transact_get(vec![(table, Get::new(item()))]).await.map(drop)
        }),
        call!("TransactWriteItems", End::Error, Tables, |direct, faulty, name| {
            let table = made_table(&direct, &name).await;
            let error = faulty.transact_write(vec![(table, Write::put(item()))], None).await.unwrap_err();
            assert!(crate::is_doubt(&error), "without a token it cannot be repeated: {error:?}");
            Err(error)
        }),
        call!("Query", End::Error, Tables, |direct, faulty, name| {
            let table = made_table(&direct, &name).await;
            faulty.query(&table, Query::new(KeyCondition::of("id", "a"))).await.map(drop)
        }),
        call!("Scan", End::Error, Tables, |direct, faulty, name| {
            faulty.scan(&made_table(&direct, &name).await, Scan::new()).await.map(drop)
        }),
    ]
}

fn key() -> BlobKey {
    BlobKey::new("key").expect("a key")
}

fn bytes() -> Body {
    Box::pin(futures_util::stream::iter([Ok("a blob".into())]))
}

/// A bucket with a blob.
async fn made_bucket(direct: &Blobs, name: &str) -> BucketName {
    let name = BucketName::new(&name.to_lowercase()).expect("a name");
    direct.create_bucket(&name).await.unwrap();
    direct.put(&name, &key(), bytes(), PutOptions::default()).await.unwrap();
    name
}

/// An upload with a part.
async fn with_part(direct: &Blobs, name: &str) -> (Upload, PartChoice) {
    let bucket = made_bucket(direct, name).await;
    let upload = direct.begin_upload(&bucket, &key(), Default::default()).await.unwrap();
    let number = PartNumber::new(1).expect("a number");
    let part = direct.put_part(&upload, number, bytes(), Default::default()).await.unwrap();
    (upload, PartChoice::from(&part))
}

fn calls_to_blobs() -> Vec<Call> {
    vec![
        call!("CreateBucket", End::Seen, Blobs, |_direct, faulty, name| {
            faulty.create_bucket(&BucketName::new(&name.to_lowercase()).unwrap()).await
        }),
        call!("DeleteBucket", End::Seen, Blobs, |direct, faulty, name| {
            let bucket = made_bucket(&direct, &name).await;
            direct.delete(&bucket, &key(), None).await.unwrap();
            faulty.delete_bucket(&bucket).await
        }),
        call!("ListBuckets", End::Error, Blobs, |_direct, faulty, _name| {
            faulty.buckets(None, 10).await.map(drop)
        }),
        call!("ListObjectsV2", End::Error, Blobs, |direct, faulty, name| {
            faulty.list(&made_bucket(&direct, &name).await, Default::default()).await.map(drop)
        }),
        call!("HeadObject", End::Error, Blobs, |direct, faulty, name| {
            faulty.head(&made_bucket(&direct, &name).await, &key()).await.map(drop)
        }),
        call!("GetObject", End::Error, Blobs, |direct, faulty, name| {
            faulty.get(&made_bucket(&direct, &name).await, &key(), Default::default()).await.map(drop)
        }),
        call!("PutObject", End::Error, Blobs, |direct, faulty, name| {
            let bucket = made_bucket(&direct, &name).await;
            let condition = WriteCondition::IfPresent;
            let options = PutOptions { condition, ..PutOptions::default() };
            let error = faulty.put(&bucket, &key(), bytes(), options).await.unwrap_err();
            assert!(crate::is_doubt(&error), "with a condition it cannot be repeated: {error:?}");
            faulty.put(&bucket, &key(), bytes(), PutOptions::default()).await.map(drop)
        }),
        call!("CopyObject", End::Error, Blobs, |direct, faulty, name| {
            let bucket = made_bucket(&direct, &name).await;
            let other = BlobKey::new("other").unwrap();
            faulty.copy((&bucket, &key()), (&bucket, &other), Default::default()).await.map(drop)
        }),
        call!("DeleteObject", End::Error, Blobs, |direct, faulty, name| {
            faulty.delete(&made_bucket(&direct, &name).await, &key(), None).await
        }),
        call!("DeleteObjects", End::Error, Blobs, |direct, faulty, name| {
            faulty.delete_many(&made_bucket(&direct, &name).await, &[key()]).await.map(drop)
        }),
        call!("CreateMultipartUpload", End::Error, Blobs, |direct, faulty, name| {
            let bucket = made_bucket(&direct, &name).await;
            faulty.begin_upload(&bucket, &key(), Default::default()).await.map(drop)
        }),
        call!("UploadPart", End::Error, Blobs, |direct, faulty, name| {
            let (upload, part) = with_part(&direct, &name).await;
            faulty.put_part(&upload, part.number, bytes(), Default::default()).await.map(drop)
        }),
        call!("ListParts", End::Error, Blobs, |direct, faulty, name| {
            let (upload, _) = with_part(&direct, &name).await;
            faulty.parts(&upload, None, 10).await.map(drop)
        }),
        call!("ListMultipartUploads", End::Error, Blobs, |direct, faulty, name| {
            let (upload, _) = with_part(&direct, &name).await;
            faulty.uploads(&upload.bucket, Default::default()).await.map(drop)
        }),
        call!("CompleteMultipartUpload", End::Seen, Blobs, |direct, faulty, name| {
            let (upload, part) = with_part(&direct, &name).await;
            faulty.complete_upload(&upload, &[part], Default::default()).await.map(drop)
        }),
        call!("AbortMultipartUpload", End::Seen, Blobs, |direct, faulty, name| {
            let (upload, _) = with_part(&direct, &name).await;
            faulty.abort_upload(&upload).await
        }),
    ]
}
