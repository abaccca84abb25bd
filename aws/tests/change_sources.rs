//! The streams of changes of DynamoDB and Keyspaces as their documentation describes them: pages of shards, iterators that
//! are forgotten, records that are trimmed, shards that end.

mod peer;

use std::sync::{Arc, Mutex};

use anabranch_aws::{KeyspaceChanges, TableChanges};
use anabranch_model::table::{Change, Event, Item, Value};
use anabranch_model::{Batch, Error, Next, Position, ReadLimit, ShardId, ShardSource, StreamName, Timestamp};
use futures_util::StreamExt;
use peer::connect;
use peer::stub::{Answer, Stub};

const PARENT: &str = "shardId-00000001600000000000-aaaaaaaa";
const CHILD: &str = "shardId-00000001600000600000-bbbbbbbb";

fn shard(id: &str) -> ShardId {
    ShardId::new(id).expect("an identifier")
}

fn stream() -> StreamName {
    StreamName::new("clicks-at-2026-11-15T20_51_10.252").expect("a name")
}

/// A record of a table by `id`.
fn record(number: u64, event: &str, extra: &str) -> String {
    format!(
        r#"{{"eventName":"{event}"{extra},"dynamodb":{{"ApproximateCreationDateTime":1700000000,
        "Keys":{{"id":{{"S":"a"}},"at":{{"N":"1"}}}},"NewImage":{{"id":{{"S":"a"}},"at":{{"N":"1"}},"n":{{"N":"{number}"}}}},
        "SequenceNumber":"{number:021}","SizeBytes":1,"StreamViewType":"NEW_IMAGE"}}}}"#
    )
}

fn records(records: &[String], next: Option<&str>) -> Answer {
    let next = next.map(|next| format!(r#","NextShardIterator":"{next}""#)).unwrap_or_default();
    Answer::ok(&format!(r#"{{"Records":[{}]{next}}}"#, records.join(",")))
}

/// A DynamoDB with one table, whose stream has a closed shard and its child, each on a page of its own. `get` answers
/// reads by their iterators; an iterator is made of the shard and of how it was asked for.
async fn dynamodb(get: impl FnMut(&str) -> Answer + Send + 'static) -> (Stub, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = asked.clone();
    let mut get = get;
    let stub = Stub::start(move |operation, body| match operation {
        "liststreams" => Answer::ok(
            r#"{"Streams":[
            {"StreamArn":"arn:old","TableName":"clicks","StreamLabel":"2026-11-14T20:51:10.252"},
            {"StreamArn":"arn:new","TableName":"clicks","StreamLabel":"2026-11-15T20:51:10.252"}]}"#,
        ),
        "describestream" => {
            let head = r#""StreamArn":"arn:new","KeySchema":[{"AttributeName":"at","KeyType":"RANGE"},
                {"AttributeName":"id","KeyType":"HASH"}]"#;
            let range = r#""SequenceNumberRange":{"StartingSequenceNumber":"000000000000000000100""#;
            Answer::ok(&if body.contains("ExclusiveStartShardId") {
                format!(
                    r#"{{"StreamDescription":{{{head},"Shards":[
                    {{"ShardId":"{CHILD}","ParentShardId":"{PARENT}",{range}}}}}]}}}}"#
                )
            } else {
                format!(
                    r#"{{"StreamDescription":{{{head},"LastEvaluatedShardId":"{PARENT}","Shards":[
                    {{"ShardId":"{PARENT}",{range},"EndingSequenceNumber":"000000000000000000199"}}}}]}}}}"#
                )
            })
        }
        "getsharditerator" => {
            let kind = ["TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"]
                .into_iter()
                .find(|kind| body.contains(&format!(r#""{kind}""#)))
                .expect("a kind");
            let of = if body.contains(PARENT) { "parent" } else { "child" };
            noted.lock().expect("the list").push(format!("{of} {kind}"));
            if body.contains("000000000000000000001") {
                return Answer::failure(400, "TrimmedDataAccessException", "trimmed");
            }
            Answer::ok(&format!(r#"{{"ShardIterator":"{of} {kind}"}}"#))
        }
        "getrecords" => {
            let (_, rest) = body.split_once(r#""ShardIterator":""#).expect("an iterator");
            get(rest.split_once('"').expect("its end").0)
        }
        other => panic!("nobody asks for {other}"),
    })
    .await;
    (stub, asked)
}

async fn read(source: &impl ShardSource, of: &str, from: Position) -> Result<Batch, Error> {
    source.read(&stream(), &shard(of), from, ReadLimit::default()).await
}

fn numbers(batch: &Batch) -> Vec<String> {
    batch.records.iter().map(|record| record.sequence.to_string()).collect()
}

#[tokio::test]
async fn shards_of_all_pages_are_listed_with_their_lineage() {
    let (stub, _) = dynamodb(|_| records(&[], None)).await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let page = changes.shards(&stream(), None, 10).await.expect("a listing");
    let ids: Vec<_> = page.entries.iter().map(|shard| shard.id.as_str()).collect();
    assert_eq!((ids, page.more), (vec![PARENT, CHILD], false));
    let (parent, child) = (&page.entries[0], &page.entries[1]);
    assert_eq!(child.parents, [shard(PARENT)]);
    assert_eq!(parent.ends_before.map(|number| number.to_string()).as_deref(), Some("200"));
    assert_eq!(parent.closed_at, Some(Timestamp::from_millis(1_600_000_600_000)));
    assert!(child.is_open() && child.closed_at.is_none() && child.range.is_none());
    let first = changes.shards(&stream(), None, 1).await.expect("a page");
    assert_eq!((first.entries.len(), first.more), (1, true));
    let rest = changes.shards(&stream(), Some(&shard(PARENT)), 1).await.expect("the rest");
    assert_eq!((rest.entries[0].id.as_str(), rest.more), (CHILD, false));
}

#[tokio::test]
async fn a_record_is_a_change() {
    let who = r#","userIdentity":{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}"#;
    let all = [record(150, "INSERT", ""), record(151, "MODIFY", ""), record(152, "REMOVE", who)];
    let (stub, _) = dynamodb(move |_| records(&all, None)).await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let batch = read(&changes, PARENT, Position::TrimHorizon).await.expect("a batch");
    assert_eq!(numbers(&batch), ["150", "151", "152"]);
    assert_eq!(batch.next, Next::Ended(vec![shard(CHILD)]));
    assert!(batch.behind.is_zero());
    let told: Vec<_> = batch.records.iter().map(|r| Change::decode(&r.data).expect("a change")).collect();
    let events: Vec<_> = told.iter().map(|change| (change.event, change.expired)).collect();
    assert_eq!(events, [(Event::Insert, false), (Event::Modify, false), (Event::Remove, true)]);
    let keys = Item::new().with("id", "a").with("at", 1);
    let image = keys.clone().with("n", 150);
    assert_eq!((&told[0].keys, told[0].new.as_ref(), told[0].old.as_ref()), (&keys, Some(&image), None));
    assert_eq!(told[0].size, (keys.size() + image.size()) as u64);
    assert_eq!(told[0].at, Timestamp::from_millis(1_700_000_000_000));
    assert_eq!(batch.records[0].partition_key, "a");
}

#[tokio::test]
async fn a_batch_goes_on_with_the_iterator_that_came_with_it() {
    let (stub, asked) = dynamodb(|iterator| match iterator {
        "child TRIM_HORIZON" => records(&[record(101, "INSERT", "")], Some("second")),
        // A step of the walk that holds nothing is not the end.
        "second" => records(&[], Some("third")),
        "third" => records(&[record(102, "MODIFY", "")], Some("fourth")),
        _ => records(&[], Some("fourth")),
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let first = read(&changes, CHILD, Position::TrimHorizon).await.expect("a batch");
    assert_eq!((numbers(&first), first.behind.is_zero()), (vec!["101".to_string()], false));
    let Next::At(position) = first.next else { panic!("an open shard ended") };
    let second = read(&changes, CHILD, position).await.expect("a batch");
    assert_eq!(numbers(&second), ["102"]);
    let Next::At(position) = second.next else { panic!("an open shard ended") };
    let third = read(&changes, CHILD, position).await.expect("a batch");
    assert!(third.records.is_empty() && third.behind.is_zero() && third.next == Next::At(position));
    assert_eq!(*asked.lock().expect("the list"), ["child TRIM_HORIZON"]);
}

#[tokio::test]
async fn a_forgotten_iterator_is_asked_for_again() {
    let mut expired = false;
    let (stub, asked) = dynamodb(move |iterator| match iterator {
        "child TRIM_HORIZON" => records(&[record(101, "INSERT", "")], Some("old")),
        "old" if !expired => {
            expired = true;
            Answer::failure(400, "ExpiredIteratorException", "too old")
        }
        "child AFTER_SEQUENCE_NUMBER" => records(&[record(102, "MODIFY", "")], Some("next")),
        other => panic!("nobody gave the iterator {other}"),
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let first = read(&changes, CHILD, Position::TrimHorizon).await.expect("a batch");
    let Next::At(position) = first.next else { panic!("an open shard ended") };
    let second = read(&changes, CHILD, position).await.expect("a batch");
    assert_eq!(numbers(&second), ["102"]);
    assert_eq!(*asked.lock().expect("the list"), ["child TRIM_HORIZON", "child AFTER_SEQUENCE_NUMBER"]);
}

#[tokio::test]
async fn what_is_trimmed_is_passed_over() {
    let (stub, asked) = dynamodb(|_| records(&[record(150, "INSERT", "")], Some("next"))).await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let gone = Position::After("1".parse().expect("a number"));
    let batch = read(&changes, CHILD, gone).await.expect("what is left");
    assert_eq!(numbers(&batch), ["150"]);
    assert_eq!(*asked.lock().expect("the list"), ["child AFTER_SEQUENCE_NUMBER", "child TRIM_HORIZON"]);
    let mut trimmed = false;
    let (stub, _) = dynamodb(move |_| {
        if !std::mem::replace(&mut trimmed, true) {
            return Answer::failure(400, "TrimmedDataAccessException", "trimmed");
        }
        records(&[record(160, "INSERT", "")], Some("next"))
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let batch = read(&changes, CHILD, Position::TrimHorizon).await.expect("what is left");
    assert_eq!(numbers(&batch), ["160"]);
}

#[tokio::test]
async fn the_end_of_a_shard_is_a_position() {
    let (stub, _) = dynamodb(|iterator| match iterator {
        "child TRIM_HORIZON" => records(&[record(101, "INSERT", ""), record(102, "MODIFY", "")], Some("end")),
        "child AFTER_SEQUENCE_NUMBER" => records(&[record(103, "MODIFY", "")], Some("more")),
        _ => records(&[], Some("end")),
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let latest = read(&changes, CHILD, Position::Latest).await.expect("the end");
    assert_eq!(latest.next, Next::At(Position::After("102".parse().expect("a number"))));
    assert!(latest.records.is_empty() && latest.behind.is_zero());
    let closed = read(&changes, PARENT, Position::Latest).await.expect("the end");
    assert_eq!(closed.next, Next::Ended(vec![shard(CHILD)]));
}

#[tokio::test]
async fn the_end_of_a_shard_is_found_though_writers_are_faster_than_the_reader() {
    let mut written = 1_000;
    let (stub, asked) = dynamodb(move |iterator| match iterator {
        // The place of the end; only later does something come behind it.
        "child LATEST" => records(&[], Some("end")),
        "end" => records(&[record(1_900, "INSERT", "")], Some("end")),
        // Whatever was read, there is more.
        _ => {
            written += 1;
            assert!(written < 1_100, "the end is looked for by reading only");
            records(&[record(written, "INSERT", "")], Some("more"))
        }
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let latest = read(&changes, CHILD, Position::Latest).await.expect("the end");
    assert_eq!(latest.next, Next::At(Position::At("1900".parse().expect("a number"))));
    assert!(latest.records.is_empty() && latest.behind.is_zero());
    assert_eq!(
        asked.lock().expect("the list")[0],
        "child LATEST",
        "the end is noted before anything is read"
    );
}

#[tokio::test]
async fn what_comes_while_the_end_is_looked_for_is_not_passed_over() {
    let (stub, _) = dynamodb(|iterator| match iterator {
        // The second record came when the end had been asked for: whoever begins at the end gets it.
        "child TRIM_HORIZON" => {
            records(&[record(101, "INSERT", ""), record(102, "MODIFY", "")], Some("read"))
        }
        "child LATEST" => records(&[record(102, "MODIFY", "")], Some("end")),
        _ => records(&[], Some("read")),
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let latest = read(&changes, CHILD, Position::Latest).await.expect("the end");
    assert_eq!(latest.next, Next::At(Position::At("102".parse().expect("a number"))));
    // A shard that ends meanwhile has ended.
    let (stub, _) = dynamodb(|iterator| match iterator {
        "child LATEST" => records(&[], None),
        _ => records(&[record(101, "INSERT", "")], Some("read")),
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let latest = read(&changes, CHILD, Position::Latest).await.expect("the end");
    assert_eq!(latest.next, Next::Ended(vec![]));
    // A place that the service has forgotten is not taken for another one.
    let (stub, _) = dynamodb(|iterator| match iterator {
        "child LATEST" => Answer::failure(400, "ExpiredIteratorException", "too old"),
        _ => records(&[record(101, "INSERT", "")], Some("read")),
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let error = read(&changes, CHILD, Position::Latest).await.expect_err("nobody knows where it was");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn a_follower_sees_what_comes_and_the_end() {
    let mut reads = 0;
    let (stub, asked) = dynamodb(move |_| {
        reads += 1;
        match reads {
            1..=4 => records(&[], Some("later")),
            5 => records(&[record(110, "INSERT", "")], Some("later")),
            _ => records(&[], None),
        }
    })
    .await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let mut follow = changes.follow(&stream(), &shard(CHILD), Position::Latest).await.expect("a follower");
    let first = follow.next().await.expect("a batch").expect("no error");
    assert_eq!(numbers(&first), ["110"]);
    let last = follow.next().await.expect("a batch").expect("no error");
    assert_eq!(last.next, Next::Ended(vec![]));
    assert!(follow.next().await.is_none());
    assert_eq!(*asked.lock().expect("the list"), ["child LATEST"], "the end was asked for again");
}

#[tokio::test]
async fn what_does_not_exist_is_told_apart() {
    let (stub, _) = dynamodb(|_| Answer::failure(400, "ResourceNotFoundException", "gone")).await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    for name in ["clicks", "clicks-at-2020-01-01T00_00_00.000"] {
        let name = StreamName::new(name).expect("a name");
        let unknown = changes.shards(&name, None, 10).await.expect_err("no such stream");
        assert_eq!(unknown, Error::StreamNotFound(name));
    }
    let other = shard("shardId-00000001600000000000-cccccccc");
    let read = changes.read(&stream(), &other, Position::TrimHorizon, ReadLimit::default()).await;
    assert_eq!(read, Err(Error::ShardNotFound(stream(), other)));
    let moment = Position::AtTimestamp(Timestamp::EPOCH);
    let read = changes.read(&stream(), &shard(CHILD), moment, ReadLimit::default()).await;
    assert!(matches!(read, Err(Error::Invalid(_))), "{read:?}");
}

/// A Keyspaces with one table, whose stream has one shard and this view.
async fn keyspaces(view: &'static str, mut get: impl FnMut(&str) -> Answer + Send + 'static) -> Stub {
    Stub::start(move |operation, body| match operation {
        "liststreams" if body.contains(r#""nextToken":"2""#) => Answer::ok(
            r#"{"streams":[{"streamArn":"arn:new","keyspaceName":"shop","tableName":"orders",
            "streamLabel":"2026-11-15T20:51:10.252"}]}"#,
        ),
        "liststreams" => {
            assert!(body.contains(r#""keyspaceName":"shop""#) && body.contains(r#""tableName":"orders""#));
            Answer::ok(r#"{"streams":[],"nextToken":"2"}"#)
        }
        "getstream" => Answer::ok(&format!(
            r#"{{"streamArn":"arn:new","streamLabel":"2026-11-15T20:51:10.252","streamStatus":"ENABLED",
            "streamViewType":"{view}","creationRequestDateTime":1700000000,"keyspaceName":"shop","tableName":"orders",
            "shards":[{{"shardId":"{CHILD}","sequenceNumberRange":{{"startingSequenceNumber":"100"}},
            "parentShardIds":["{PARENT}"]}}]}}"#
        )),
        "getsharditerator" => {
            assert!(body.contains("arn:new"), "{body}");
            let number = body.split_once(r#""sequenceNumber":""#).and_then(|(_, rest)| rest.split_once('"'));
            assert!(number.is_none_or(|(number, _)| number.len() >= 21), "the service takes no shorter one: {body}");
            let fresh = if body.contains("TRIM_HORIZON") { "first" } else { "again" };
            Answer::ok(&format!(r#"{{"shardIterator":"{fresh}"}}"#))
        }
        "getrecords" => get(body),
        other => panic!("nobody asks for {other}"),
    })
    .await
}

fn orders() -> StreamName {
    StreamName::new("shop.orders-at-2026-11-15T20_51_10.252").expect("a name")
}

fn row(number: u64, images: &str, origin: &str) -> String {
    format!(
        r#"{{"eventVersion":"1.0","createdAt":1700000000,"origin":"{origin}","sequenceNumber":"{number}",
        "partitionKeys":{{"region":{{"textT":"eu"}},"day":{{"intT":"7"}}}},"clusteringKeys":{{"n":{{"bigintT":"1"}}}}{images}}}"#
    )
}

fn rows(rows: &[String], place: &str) -> Answer {
    Answer::ok(&format!(
        r#"{{"changeRecords":[{}],"nextShardIterator":"next","iteratorDescription":{{"iteratorPosition":"{place}"}}}}"#,
        rows.join(",")
    ))
}

const NEW: &str = r#","newImage":{"valueCells":{"total":{"value":{"decimalT":"9.90"}}},
    "staticCells":{"owner":{"value":{"textT":"me"}}}}"#;
const OLD: &str = r#","oldImage":{"valueCells":{"total":{"value":{"decimalT":"1"}}}}"#;

async fn read_orders(stub: &Stub, from: Position) -> Result<Batch, Error> {
    let changes = KeyspaceChanges::new(&connect(&stub.endpoint()).await);
    changes.read(&orders(), &shard(CHILD), from, ReadLimit::default()).await
}

#[tokio::test]
async fn a_row_of_a_keyspace_is_an_item() {
    let stub = keyspaces("NEW_AND_OLD_IMAGES", |_| rows(&[row(101, NEW, "USER")], "AT_TIP")).await;
    let batch = read_orders(&stub, Position::TrimHorizon).await.expect("a batch");
    assert!(batch.behind.is_zero(), "the service says that this is all");
    assert_eq!(batch.records[0].partition_key, "7:eu");
    let change = Change::decode(&batch.records[0].data).expect("a change");
    let keys = Item::new().with("region", "eu").with("day", 7).with("n", 1);
    let total = Value::number("9.9").expect("a number");
    assert_eq!(change.new, Some(keys.clone().with("total", total).with("owner", "me")));
    assert_eq!((change.keys, change.old, change.event), (keys, None, Event::Insert));
}

#[tokio::test]
async fn what_happened_to_a_row_is_told_as_far_as_the_view_shows_it() {
    let both = format!("{NEW}{OLD}");
    for (view, images, origin, expected) in [
        ("NEW_AND_OLD_IMAGES", NEW, "USER", (Event::Insert, false)),
        ("NEW_AND_OLD_IMAGES", both.as_str(), "USER", (Event::Modify, false)),
        ("NEW_AND_OLD_IMAGES", OLD, "TTL", (Event::Remove, true)),
        ("NEW_IMAGE", NEW, "REPLICATION", (Event::Modify, false)),
        ("NEW_IMAGE", "", "USER", (Event::Remove, false)),
        ("OLD_IMAGE", OLD, "USER", (Event::Modify, false)),
        ("OLD_IMAGE", "", "USER", (Event::Insert, false)),
        ("KEYS_ONLY", "", "USER", (Event::Modify, false)),
    ] {
        let answer = rows(&[row(101, images, origin)], "AT_TIP");
        let stub = keyspaces(view, move |_| answer.clone()).await;
        let batch = read_orders(&stub, Position::TrimHorizon).await.expect("a batch");
        let change = Change::decode(&batch.records[0].data).expect("a change");
        assert_eq!((change.event, change.expired), expected, "{view} {images}");
    }
}

#[tokio::test]
async fn a_walk_through_nothing_goes_on_while_the_service_says_so() {
    let mut steps = 0;
    let stub = keyspaces("KEYS_ONLY", move |_| {
        steps += 1;
        if steps < 10 { rows(&[], "BEHIND_TIP") } else { rows(&[row(101, "", "USER")], "BEHIND_TIP") }
    })
    .await;
    let batch = read_orders(&stub, Position::TrimHorizon).await.expect("a batch");
    assert_eq!((batch.records.len(), batch.behind.is_zero()), (1, false));
    let stub = keyspaces("KEYS_ONLY", |_| rows(&[], "BEHIND_TIP")).await;
    let batch = read_orders(&stub, Position::TrimHorizon).await.expect("a batch");
    assert!(batch.records.is_empty() && !batch.behind.is_zero(), "the end was not reached: {batch:?}");
}

#[tokio::test]
async fn forgotten_iterators_and_trimmed_records_of_a_keyspace_are_known_by_their_reason() {
    for (reason, from, iterator) in [
        ("ExpiredIterator", Position::At("150".parse().expect("a number")), "again"),
        ("TrimmedDataAccess", Position::At("150".parse().expect("a number")), "first"),
    ] {
        let mut refused = false;
        let stub = keyspaces("KEYS_ONLY", move |body| {
            if !std::mem::replace(&mut refused, true) {
                let body = format!(
                    r#"{{"__type":"com.amazonaws.keyspaces.streams#ValidationException","message":"no","errorCode":"{reason}"}}"#
                );
                return Answer::Full(400, Vec::new(), body);
            }
            assert!(body.contains(iterator), "{reason}: {body}");
            rows(&[row(151, "", "USER")], "AT_TIP")
        })
        .await;
        let batch = read_orders(&stub, from).await.expect("a batch");
        assert_eq!(numbers(&batch), ["151"], "{reason}");
    }
    let stub = keyspaces("KEYS_ONLY", |_| {
        let body =
            r#"{"__type":"ValidationException","message":"no such thing","errorCode":"InvalidFormat"}"#;
        Answer::Full(400, Vec::new(), body.to_string())
    })
    .await;
    let error = read_orders(&stub, Position::TrimHorizon).await.expect_err("a bad request");
    assert!(matches!(&error, Error::Invalid(text) if text.contains("no such thing")), "{error:?}");
}

#[tokio::test]
async fn the_streams_of_a_table_are_listed() {
    let (stub, _) = dynamodb(|_| records(&[], None)).await;
    let changes = TableChanges::new(&connect(&stub.endpoint()).await);
    let table = anabranch_model::TableName::new("clicks").expect("a name");
    let old = StreamName::new("clicks-at-2026-11-14T20_51_10.252").expect("a name");
    assert_eq!(changes.of_table(&table).await, Ok(vec![old, stream()]));
    let stub = keyspaces("KEYS_ONLY", |_| rows(&[], "AT_TIP")).await;
    let changes = KeyspaceChanges::new(&connect(&stub.endpoint()).await);
    assert_eq!(changes.of_table("shop", "orders").await, Ok(vec![orders()]));
}
