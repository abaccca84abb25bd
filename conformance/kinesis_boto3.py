"""Kinesis by boto3: every operation, resharding, fan-out, errors, and a crash in the middle."""

import json
import threading
import time
from datetime import datetime, timedelta, timezone

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import case, eventually, run, through_crashes

WHOLE = 2**128


def client(**options):
    config = Config(retries={"max_attempts": 0, "mode": "standard"}, read_timeout=30, parameter_validation=False)
    return boto3.client("kinesis", config=config, **options)


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
        assert error.response["Error"]["Message"], error
        return error.response["Error"]["Message"]
    raise AssertionError(f"{code} was expected of {arguments}")


def make(name, shards=1):
    kinesis = client()
    kinesis.create_stream(StreamName=name, ShardCount=shards)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    return kinesis


def arn(kinesis, name):
    return kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]


def shards(kinesis, name, **more):
    pages = kinesis.get_paginator("list_shards").paginate(StreamName=name, **more)
    return [shard for page in pages for shard in page["Shards"]]


def split(kinesis, name, shard):
    found = next(other for other in shards(kinesis, name) if other["ShardId"] == shard)
    first, last = (int(found["HashKeyRange"][key]) for key in ("StartingHashKey", "EndingHashKey"))
    kinesis.split_shard(StreamName=name, ShardToSplit=shard, NewStartingHashKey=str((first + last + 1) // 2))
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})


def is_partition(listed):
    ranges = sorted((int(shard["HashKeyRange"]["StartingHashKey"]), int(shard["HashKeyRange"]["EndingHashKey"]))
                    for shard in listed)
    at = 0
    for first, last in ranges:
        if first != at:
            return False
        at = last + 1
    return at == WHOLE


def read_shard(kinesis, name, shard, kind="TRIM_HORIZON", **more):
    """All records until the end of the shard, or until nothing new is there; and the children."""
    iterator = kinesis.get_shard_iterator(StreamName=name, ShardId=shard, ShardIteratorType=kind, **more)
    iterator, found = iterator["ShardIterator"], []
    while True:
        page = kinesis.get_records(ShardIterator=iterator, Limit=1000)
        found += page["Records"]
        iterator = page.get("NextShardIterator")
        assert (iterator is None) == bool(page.get("ChildShards")), page
        if iterator is None:
            return found, page["ChildShards"]
        if not page["Records"] and page["MillisBehindLatest"] == 0:
            return found, []


@case
def records_come_back(_):
    kinesis = make("records", 2)
    sent = [{"Data": bytes([number % 256]) * number, "PartitionKey": f"key-{number}"} for number in range(200)]
    answer = kinesis.put_records(StreamName="records", Records=sent)
    assert answer["FailedRecordCount"] == 0 and len(answer["Records"]) == 200
    one = kinesis.put_record(StreamARN=arn(kinesis, "records"), Data=b"", PartitionKey="ä" * 256, ExplicitHashKey="0")
    assert one["ShardId"] == "shardId-000000000000", one
    found = []
    for shard in shards(kinesis, "records"):
        records, _ = read_shard(kinesis, "records", shard["ShardId"])
        numbers = [int(record["SequenceNumber"]) for record in records]
        assert numbers == sorted(set(numbers))
        found += records
    assert len(found) == 201
    expected = {(record["PartitionKey"], record["Data"]) for record in sent} | {("ä" * 256, b"")}
    assert {(record["PartitionKey"], record["Data"]) for record in found} == expected
    age = datetime.now(timezone.utc) - found[0]["ApproximateArrivalTimestamp"]
    assert timedelta(0) <= age < timedelta(minutes=5), age


@case
def iterators_start_anywhere(_):
    kinesis = make("places")
    put = [kinesis.put_record(StreamName="places", Data=str(number).encode(), PartitionKey="k") for number in range(5)]
    shard = put[0]["ShardId"]
    data = lambda found: [int(record["Data"]) for record in found[0]]
    third = put[2]["SequenceNumber"]
    assert data(read_shard(kinesis, "places", shard)) == [0, 1, 2, 3, 4]
    assert data(read_shard(kinesis, "places", shard, "AT_SEQUENCE_NUMBER", StartingSequenceNumber=third)) == [2, 3, 4]
    assert data(read_shard(kinesis, "places", shard, "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=third)) == [3, 4]
    ago = datetime.now(timezone.utc) - timedelta(hours=1)
    assert data(read_shard(kinesis, "places", shard, "AT_TIMESTAMP", Timestamp=ago)) == [0, 1, 2, 3, 4]
    latest = kinesis.get_shard_iterator(StreamName="places", ShardId=shard, ShardIteratorType="LATEST")
    kinesis.put_record(StreamName="places", Data=b"5", PartitionKey="k")
    page = kinesis.get_records(ShardIterator=latest["ShardIterator"])
    assert [record["Data"] for record in page["Records"]] == [b"5"], "LATEST is the moment of the iterator"
    limited = kinesis.get_shard_iterator(StreamName="places", ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    page = kinesis.get_records(ShardIterator=limited["ShardIterator"], Limit=2)
    assert len(page["Records"]) == 2 and page["MillisBehindLatest"] >= 0
    assert "ChildShards" not in page


@case
def splits_and_merges_leave_no_hole(_):
    kinesis = make("reshard", 2)
    for number in range(50):
        kinesis.put_record(StreamName="reshard", Data=b"before", PartitionKey=str(number))
    split(kinesis, "reshard", "shardId-000000000000")
    for number in range(50):
        kinesis.put_record(StreamName="reshard", Data=b"between", PartitionKey=str(number))
    kinesis.merge_shards(StreamName="reshard", ShardToMerge="shardId-000000000003",
                         AdjacentShardToMerge="shardId-000000000001")
    for number in range(50):
        kinesis.put_record(StreamName="reshard", Data=b"after", PartitionKey=str(number))
    every = shards(kinesis, "reshard")
    assert [shard["ShardId"][-1] for shard in every] == list("01234")
    merged = every[4]
    assert merged["ParentShardId"].endswith("3") and merged["AdjacentParentShardId"].endswith("1"), merged
    assert "EndingSequenceNumber" in every[0]["SequenceNumberRange"]
    assert "EndingSequenceNumber" not in merged["SequenceNumberRange"]
    horizon = shards(kinesis, "reshard", ShardFilter={"Type": "AT_TRIM_HORIZON"})
    assert [shard["ShardId"][-1] for shard in horizon] == list("01") and is_partition(horizon), horizon
    latest = shards(kinesis, "reshard", ShardFilter={"Type": "AT_LATEST"})
    assert [shard["ShardId"][-1] for shard in latest] == list("24") and is_partition(latest), latest
    assert len(shards(kinesis, "reshard", ShardFilter={"Type": "FROM_TRIM_HORIZON"})) == 5
    behind = shards(kinesis, "reshard", ShardFilter={"Type": "AFTER_SHARD_ID", "ShardId": "shardId-000000000002"})
    assert [shard["ShardId"][-1] for shard in behind] == list("34")
    # boto3 sends whole seconds.
    time.sleep(1.1)
    now = datetime.now(timezone.utc)
    at = shards(kinesis, "reshard", ShardFilter={"Type": "AT_TIMESTAMP", "Timestamp": now})
    assert is_partition(at), at
    assert len(shards(kinesis, "reshard", ShardFilter={"Type": "FROM_TIMESTAMP", "Timestamp": now})) == 2
    # Whoever reads each shard to its end and goes on with the children sees everything once.
    waiting, seen, done = [shard["ShardId"] for shard in horizon], [], set()
    while waiting:
        shard = waiting.pop(0)
        records, children = read_shard(kinesis, "reshard", shard)
        seen += [(record["Data"], record["PartitionKey"]) for record in records]
        done.add(shard)
        for child in children:
            assert shard in child["ParentShards"]
            if set(child["ParentShards"]) <= done and child["ShardId"] not in done | set(waiting):
                waiting.append(child["ShardId"])
    assert len(seen) == 150 == len(set(seen)), len(seen)


@case
def shard_counts_are_updated_evenly(_):
    kinesis = make("scaled", 3)
    for target in [6, 4, 7, 5, 3, 2, 1]:
        answer = kinesis.update_shard_count(StreamName="scaled", TargetShardCount=target, ScalingType="UNIFORM_SCALING")
        assert answer["TargetShardCount"] == target
        kinesis.get_waiter("stream_exists").wait(StreamName="scaled", WaiterConfig={"Delay": 1})
        latest = shards(kinesis, "scaled", ShardFilter={"Type": "AT_LATEST"})
        assert len(latest) == target and is_partition(latest), (target, latest)
        sizes = [int(shard["HashKeyRange"]["EndingHashKey"]) - int(shard["HashKeyRange"]["StartingHashKey"])
                 for shard in latest]
        assert max(sizes) - min(sizes) <= target, sizes
    for target in [3, 100]:
        refused("InvalidArgumentException", kinesis.update_shard_count, StreamName="scaled", TargetShardCount=target,
                ScalingType="UNIFORM_SCALING")
    refused("ValidationException", kinesis.update_shard_count, StreamName="scaled", TargetShardCount=1, ScalingType="X")


@case
def listings_have_pages(_):
    kinesis = make("paged", 7)
    first = kinesis.list_shards(StreamName="paged", MaxResults=3)
    assert len(first["Shards"]) == 3
    second = kinesis.list_shards(NextToken=first["NextToken"], MaxResults=3)
    third = kinesis.list_shards(NextToken=second["NextToken"], MaxResults=3)
    assert len(second["Shards"]) == 3 and len(third["Shards"]) == 1 and "NextToken" not in third
    refused("InvalidArgumentException", kinesis.list_shards, NextToken=first["NextToken"], StreamName="paged")
    refused("InvalidArgumentException", kinesis.list_shards, NextToken="AAAA" + first["NextToken"])
    listed = kinesis.list_shards(StreamName="paged", ExclusiveStartShardId="shardId-000000000004")
    assert [shard["ShardId"][-1] for shard in listed["Shards"]] == list("56")
    described = kinesis.describe_stream(StreamName="paged", Limit=2)["StreamDescription"]
    assert described["HasMoreShards"] and len(described["Shards"]) == 2
    pages = kinesis.get_paginator("describe_stream").paginate(StreamName="paged", PaginationConfig={"PageSize": 2})
    assert sum(len(page["StreamDescription"]["Shards"]) for page in pages) == 7
    for number in range(5):
        make(f"listed-{number}")
    pages = kinesis.get_paginator("list_streams").paginate(PaginationConfig={"PageSize": 2})
    names = [name for page in pages for name in page["StreamNames"]]
    assert names == sorted(names) and {f"listed-{number}" for number in range(5)} <= set(names)
    summary = kinesis.list_streams(Limit=1)["StreamSummaries"][0]
    assert summary["StreamStatus"] == "ACTIVE" and summary["StreamModeDetails"]["StreamMode"] == "PROVISIONED"


@case
def streams_are_described_and_changed(_):
    kinesis = client()
    kinesis.create_stream(StreamName="unasked")
    unasked = kinesis.describe_stream_summary(StreamName="unasked")["StreamDescriptionSummary"]
    assert unasked["OpenShardCount"] == 4 and unasked["StreamModeDetails"]["StreamMode"] == "ON_DEMAND"
    kinesis.create_stream(StreamName="settings", StreamModeDetails={"StreamMode": "ON_DEMAND"}, Tags={"team": "a"},
                          MaxRecordSizeInKiB=2048)
    kinesis.get_waiter("stream_exists").wait(StreamName="settings", WaiterConfig={"Delay": 1})
    there = lambda: kinesis.describe_stream_summary(StreamName="settings")["StreamDescriptionSummary"]
    summary = there()
    assert summary["OpenShardCount"] == 4 and summary["StreamModeDetails"]["StreamMode"] == "ON_DEMAND"
    assert summary["RetentionPeriodHours"] == 24 and summary["EncryptionType"] == "NONE"
    assert summary["MaxRecordSizeInKiB"] == 2048 and summary["ConsumerCount"] == 0
    name, here = {"StreamName": "settings"}, {"StreamARN": summary["StreamARN"]}
    kinesis.increase_stream_retention_period(RetentionPeriodHours=48, **name)
    refused("InvalidArgumentException", kinesis.increase_stream_retention_period, RetentionPeriodHours=24, **name)
    assert there()["RetentionPeriodHours"] == 48
    refused("InvalidArgumentException", kinesis.decrease_stream_retention_period, RetentionPeriodHours=72, **name)
    refused("InvalidArgumentException", kinesis.decrease_stream_retention_period, RetentionPeriodHours=1, **name)
    kinesis.decrease_stream_retention_period(RetentionPeriodHours=24, **here)
    assert there()["RetentionPeriodHours"] == 24
    kinesis.update_stream_mode(StreamModeDetails={"StreamMode": "PROVISIONED"}, **here)
    assert there()["StreamModeDetails"]["StreamMode"] == "PROVISIONED"
    kinesis.start_stream_encryption(EncryptionType="KMS", KeyId="alias/aws/kinesis", **name)
    assert there()["EncryptionType"] == "KMS" and there()["KeyId"] == "alias/aws/kinesis"
    put = kinesis.put_record(Data=b"x", PartitionKey="k", **name)
    assert put["EncryptionType"] == "KMS"
    records, _ = read_shard(kinesis, "settings", put["ShardId"])
    assert records[0]["EncryptionType"] == "KMS"
    kinesis.stop_stream_encryption(EncryptionType="KMS", KeyId="alias/aws/kinesis", **name)
    assert there()["EncryptionType"] == "NONE"
    on = kinesis.enable_enhanced_monitoring(ShardLevelMetrics=["IncomingBytes", "OutgoingBytes"], **name)
    assert on["DesiredShardLevelMetrics"] == ["IncomingBytes", "OutgoingBytes"]
    off = kinesis.disable_enhanced_monitoring(ShardLevelMetrics=["ALL"], **name)
    assert len(off["CurrentShardLevelMetrics"]) == 2 and off.get("DesiredShardLevelMetrics", []) == []
    kinesis.update_max_record_size(MaxRecordSizeInKiB=1024, **here)
    refused("ValidationException", kinesis.put_record, Data=b"x" * (1024 * 1024 + 1), PartitionKey="k", **name)
    kinesis.update_max_record_size(MaxRecordSizeInKiB=10240, **here)
    assert kinesis.put_record(Data=b"x" * (5 << 20), PartitionKey="k", **name)["ShardId"]
    warm = kinesis.update_stream_warm_throughput(WarmThroughputMiBps=100, **here)
    assert warm["WarmThroughput"]["TargetMiBps"] == 100
    limits = kinesis.describe_limits()
    assert limits["OpenShardCount"] >= 4 and limits["ShardLimit"] >= limits["OpenShardCount"]
    assert kinesis.describe_account_settings()["MinimumThroughputBillingCommitment"]["Status"] == "DISABLED"
    for status in ["ENABLED", "DISABLED"]:
        kinesis.update_account_settings(MinimumThroughputBillingCommitment={"Status": status})
        assert kinesis.describe_account_settings()["MinimumThroughputBillingCommitment"]["Status"] == status


@case
def tags_and_policies_belong_to_their_resource(_):
    kinesis = make("tagged")
    here = arn(kinesis, "tagged")
    kinesis.add_tags_to_stream(StreamName="tagged", Tags={"a": "1", "b": "2"})
    kinesis.tag_resource(ResourceARN=here, Tags={"c": "3"})
    tags = lambda: {tag["Key"]: tag["Value"] for tag in kinesis.list_tags_for_resource(ResourceARN=here)["Tags"]}
    assert tags() == {"a": "1", "b": "2", "c": "3"}
    page = kinesis.list_tags_for_stream(StreamName="tagged", Limit=2)
    assert page["HasMoreTags"] and [tag["Key"] for tag in page["Tags"]] == ["a", "b"]
    page = kinesis.list_tags_for_stream(StreamName="tagged", ExclusiveStartTagKey="b")
    assert not page["HasMoreTags"] and [tag["Key"] for tag in page["Tags"]] == ["c"]
    kinesis.remove_tags_from_stream(StreamName="tagged", TagKeys=["a", "x"])
    kinesis.untag_resource(ResourceARN=here, TagKeys=["b"])
    assert tags() == {"c": "3"}
    refused("InvalidArgumentException", kinesis.add_tags_to_stream, StreamName="tagged",
            Tags={f"k{number}": "" for number in range(50)})
    assert tags() == {"c": "3"}, "a refused call changes nothing"
    assert kinesis.get_resource_policy(ResourceARN=here)["Policy"] == "{}"
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    kinesis.put_resource_policy(ResourceARN=here, Policy=policy)
    assert kinesis.get_resource_policy(ResourceARN=here)["Policy"] == policy
    refused("InvalidArgumentException", kinesis.put_resource_policy, ResourceARN=here, Policy="{")
    kinesis.delete_resource_policy(ResourceARN=here)
    refused("ResourceNotFoundException", kinesis.delete_resource_policy, ResourceARN=here)
    kinesis.delete_stream(StreamName="tagged")
    kinesis.get_waiter("stream_not_exists").wait(StreamName="tagged", WaiterConfig={"Delay": 1})
    make("tagged")
    assert tags() == {}, "a younger stream has no tags of the older one"


def register(kinesis, stream, name):
    consumer = kinesis.register_stream_consumer(StreamARN=stream, ConsumerName=name)["Consumer"]
    described = lambda: kinesis.describe_stream_consumer(ConsumerARN=consumer["ConsumerARN"])["ConsumerDescription"]
    eventually(lambda: described()["ConsumerStatus"] == "ACTIVE", "the consumer is active")
    return consumer["ConsumerARN"]


@case
def consumers_are_registered(_):
    kinesis = make("consumed")
    stream = arn(kinesis, "consumed")
    names = [f"app-{number}" for number in range(5)]
    made = [register(kinesis, stream, name) for name in names]
    refused("ResourceInUseException", kinesis.register_stream_consumer, StreamARN=stream, ConsumerName="app-0")
    pages = kinesis.get_paginator("list_stream_consumers").paginate(StreamARN=stream, PaginationConfig={"PageSize": 2})
    listed = [consumer["ConsumerName"] for page in pages for consumer in page["Consumers"]]
    assert listed == names
    by_name = kinesis.describe_stream_consumer(StreamARN=stream, ConsumerName="app-3")["ConsumerDescription"]
    assert by_name["ConsumerARN"] == made[3] and by_name["StreamARN"] == stream
    assert kinesis.describe_stream_summary(StreamName="consumed")["StreamDescriptionSummary"]["ConsumerCount"] == 5
    kinesis.tag_resource(ResourceARN=made[0], Tags={"x": "y"})
    assert kinesis.list_tags_for_resource(ResourceARN=made[0])["Tags"] == [{"Key": "x", "Value": "y"}]
    refused("ResourceInUseException", kinesis.delete_stream, StreamName="consumed")
    kinesis.deregister_stream_consumer(ConsumerARN=made[0])
    refused("ResourceNotFoundException", kinesis.describe_stream_consumer, ConsumerARN=made[0])
    kinesis.deregister_stream_consumer(StreamARN=stream, ConsumerName="app-1")
    assert len(kinesis.list_stream_consumers(StreamARN=stream)["Consumers"]) == 3
    kinesis.delete_stream(StreamName="consumed", EnforceConsumerDeletion=True)


@case
def subscriptions_push_records_to_the_end_of_the_shard(_):
    kinesis = make("pushed")
    consumer = register(kinesis, arn(kinesis, "pushed"), "app")
    first = kinesis.put_record(StreamName="pushed", Data=b"0", PartitionKey="k")
    answer = kinesis.subscribe_to_shard(ConsumerARN=consumer, ShardId=first["ShardId"],
                                        StartingPosition={"Type": "TRIM_HORIZON"})
    refused("ResourceInUseException", client().subscribe_to_shard, ConsumerARN=consumer, ShardId=first["ShardId"],
            StartingPosition={"Type": "LATEST"})

    def write():
        writer = client()
        for number in range(1, 100):
            writer.put_record(StreamName="pushed", Data=str(number).encode(), PartitionKey="k")
        split(writer, "pushed", first["ShardId"])

    writing = threading.Thread(target=write)
    writing.start()
    seen, children, last = [], None, None
    for event in answer["EventStream"]:
        event = event["SubscribeToShardEvent"]
        seen += [int(record["Data"]) for record in event["Records"]]
        if event["Records"]:
            last = event["Records"][-1]["SequenceNumber"]
        if event.get("ChildShards"):
            children = event["ChildShards"]
            assert not event.get("ContinuationSequenceNumber")
        else:
            assert event["ContinuationSequenceNumber"] and event["MillisBehindLatest"] >= 0
    writing.join()
    assert seen == list(range(100)), seen
    assert [child["ParentShards"] for child in children] == [[first["ShardId"]]] * 2, children
    again = kinesis.subscribe_to_shard(ConsumerARN=consumer, ShardId=first["ShardId"], StartingPosition={
        "Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": first["SequenceNumber"]})
    events = [event["SubscribeToShardEvent"] for event in again["EventStream"]]
    assert sum(len(event["Records"]) for event in events) == 99 and events[-1]["ChildShards"]
    assert int(last) > int(first["SequenceNumber"])
    refused("ResourceNotFoundException", kinesis.subscribe_to_shard, ConsumerARN=consumer, ShardId="shardId-000000000099",
            StartingPosition={"Type": "LATEST"})
    refused("ResourceNotFoundException", kinesis.subscribe_to_shard, ConsumerARN=consumer + "9",
            ShardId=first["ShardId"], StartingPosition={"Type": "LATEST"})


@case
def a_subscription_ends_with_its_consumer(_):
    kinesis = make("left")
    consumer = register(kinesis, arn(kinesis, "left"), "app")
    answer = kinesis.subscribe_to_shard(ConsumerARN=consumer, ShardId="shardId-000000000000",
                                        StartingPosition={"Type": "LATEST"})
    put = kinesis.put_record(StreamName="left", Data=b"x", PartitionKey="k")
    events = iter(answer["EventStream"])
    event = next(events)["SubscribeToShardEvent"]
    while not event["Records"]:
        event = next(events)["SubscribeToShardEvent"]
    assert event["ContinuationSequenceNumber"] == put["SequenceNumber"]
    client().deregister_stream_consumer(ConsumerARN=consumer)
    assert sum(len(event["SubscribeToShardEvent"]["Records"]) for event in events) == 0


@case
def bad_input_gets_the_error_of_the_service(_):
    kinesis = make("strict")
    name = {"StreamName": "strict"}
    refused("ResourceInUseException", kinesis.create_stream, ShardCount=1, **name)
    refused("ValidationException", kinesis.create_stream, StreamName="a/b", ShardCount=1)
    refused("ValidationException", kinesis.create_stream, StreamName="x" * 129, ShardCount=1)
    refused("ValidationException", kinesis.create_stream, StreamName="none", ShardCount=0)
    refused("InvalidArgumentException", kinesis.create_stream, StreamName="none",
            StreamModeDetails={"StreamMode": "PROVISIONED"})
    refused("SerializationException", kinesis.create_stream, StreamName=["x"], ShardCount=1)
    missing = refused("ResourceNotFoundException", kinesis.describe_stream, StreamName="nothing")
    assert missing == "Stream nothing under account 000000000000 not found.", missing
    for call in [kinesis.describe_stream_summary, kinesis.list_shards, kinesis.delete_stream,
                 kinesis.list_tags_for_stream]:
        refused("ResourceNotFoundException", call, StreamName="nothing")
    refused("ResourceNotFoundException", kinesis.put_record, StreamName="nothing", Data=b"", PartitionKey="k")
    refused("ValidationException", kinesis.put_record, Data=b"", PartitionKey="", **name)
    refused("ValidationException", kinesis.put_record, Data=b"", PartitionKey="x" * 257, **name)
    refused("InvalidArgumentException", kinesis.put_record, Data=b"", PartitionKey="k", ExplicitHashKey=str(WHOLE), **name)
    refused("ValidationException", kinesis.put_record, Data=b"", PartitionKey="k", ExplicitHashKey="-1", **name)
    refused("ValidationException", kinesis.put_record, Data=b"x" * (1 << 20) + b"x", PartitionKey="k", **name)
    refused("ValidationException", kinesis.put_records, Records=[], **name)
    many = [{"Data": b"x", "PartitionKey": "k"}] * 501
    refused("ValidationException", kinesis.put_records, Records=many, **name)
    fits = {"Data": b"x" * ((1 << 20) - 1), "PartitionKey": "k"}
    refused("ValidationException", kinesis.put_record, Data=fits["Data"] + b"x", PartitionKey="k", **name)
    large = [fits] * 11
    refused("InvalidArgumentException", kinesis.put_records, Records=large, **name)
    bad = [{"Data": b"x", "PartitionKey": "k"}, {"Data": b"x", "PartitionKey": ""}]
    refused("ValidationException", kinesis.put_records, Records=bad, **name)
    assert read_shard(kinesis, "strict", "shardId-000000000000")[0] == [], "a refused call stores nothing"
    shard = {"ShardId": "shardId-000000000000", **name}
    refused("ResourceNotFoundException", kinesis.get_shard_iterator, StreamName="strict", ShardId="shardId-000000000009",
            ShardIteratorType="LATEST")
    refused("ValidationException", kinesis.get_shard_iterator, ShardIteratorType="SOMEWHERE", **shard)
    refused("InvalidArgumentException", kinesis.get_shard_iterator, ShardIteratorType="AT_SEQUENCE_NUMBER", **shard)
    refused("InvalidArgumentException", kinesis.get_shard_iterator, ShardIteratorType="AT_TIMESTAMP", **shard)
    iterator = kinesis.get_shard_iterator(ShardIteratorType="LATEST", **shard)["ShardIterator"]
    forged = ("B" if iterator[20] == "A" else "A").join([iterator[:20], iterator[21:]])
    for wrong in [forged, "AAAA", "no iterator", iterator[:-4]]:
        refused("InvalidArgumentException", kinesis.get_records, ShardIterator=wrong)
    refused("ValidationException", kinesis.get_records, ShardIterator=iterator, Limit=10001)
    refused("ValidationException", kinesis.get_records, ShardIterator="x" * 513)
    refused("InvalidArgumentException", kinesis.split_shard, ShardToSplit="shardId-000000000000", NewStartingHashKey="0",
            **name)
    refused("ResourceNotFoundException", kinesis.split_shard, ShardToSplit="shardId-000000000007",
            NewStartingHashKey="5", **name)
    make("pair", 3)
    refused("InvalidArgumentException", kinesis.merge_shards, StreamName="pair", ShardToMerge="shardId-000000000000",
            AdjacentShardToMerge="shardId-000000000002")
    split(kinesis, "pair", "shardId-000000000000")
    for call, arguments in [
            (kinesis.split_shard, {"ShardToSplit": "shardId-000000000000", "NewStartingHashKey": "5"}),
            (kinesis.merge_shards, {"ShardToMerge": "shardId-000000000000",
                                    "AdjacentShardToMerge": "shardId-000000000001"})]:
        refused("ResourceInUseException", call, StreamName="pair", **arguments)


@case
def what_was_acknowledged_survives_a_crash(server):
    kinesis = make("crash", 2)
    stream = arn(kinesis, "crash")
    consumer = register(kinesis, stream, "app")
    kinesis.add_tags_to_stream(StreamName="crash", Tags={"a": "1"})
    acknowledged = []
    for number in range(300):
        put = kinesis.put_record(StreamName="crash", Data=str(number).encode(), PartitionKey=str(number))
        acknowledged.append((put["ShardId"], put["SequenceNumber"], number))
    iterators = {shard["ShardId"]: kinesis.get_shard_iterator(
        StreamName="crash", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        for shard in shards(kinesis, "crash")}
    split(kinesis, "crash", "shardId-000000000000")
    server.kill()
    kinesis = client()
    found = []
    for shard, iterator in iterators.items():
        page = kinesis.get_records(ShardIterator=iterator)
        found += [(shard, record["SequenceNumber"], int(record["Data"])) for record in page["Records"]]
    assert sorted(found) == sorted(acknowledged), "an iterator outlives a crash, and so do the records"
    assert [shard["ShardId"][-1] for shard in shards(kinesis, "crash", ShardFilter={"Type": "AT_LATEST"})] == list("123")
    assert kinesis.list_tags_for_stream(StreamName="crash")["Tags"] == [{"Key": "a", "Value": "1"}]
    assert kinesis.describe_stream_consumer(ConsumerARN=consumer)["ConsumerDescription"]["ConsumerName"] == "app"
    later = kinesis.put_record(StreamName="crash", Data=b"later", PartitionKey="1")
    assert int(later["SequenceNumber"]) > max(int(sequence) for _, sequence, _ in acknowledged)


@case
def crashes_during_calls_lose_nothing(server):
    kinesis = make("shaken", 2)
    put = {}

    def write(number):
        put[number] = kinesis.put_record(StreamName="shaken", Data=str(number).encode(), PartitionKey=str(number))

    acknowledged, unknown = through_crashes(server, write)
    found = {}
    for shard in shards(kinesis, "shaken"):
        records, _ = read_shard(kinesis, "shaken", shard["ShardId"])
        numbers = [int(record["Data"]) for record in records]
        assert numbers == sorted(numbers), "in the order of the calls"
        found.update({int(record["Data"]): (shard["ShardId"], record["SequenceNumber"]) for record in records})
    assert set(acknowledged) <= set(found) <= set(acknowledged) | set(unknown)
    assert all(found[number] == (put[number]["ShardId"], put[number]["SequenceNumber"]) for number in acknowledged)


if __name__ == "__main__":
    run()
