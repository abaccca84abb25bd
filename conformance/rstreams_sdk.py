"""The SDK of RStreams, version 6: a bot writes directly and through S3, and others read, enrich and checkpoint.

Between the stream and the tables stands a processor, which belongs to the bus and not to the SDK. Here a small one in
Python does its part, with the bytes that the SDK wrote.
"""

import gzip
import json
import os
import subprocess
import threading
import time
from datetime import datetime, timezone

import boto3
from botocore.config import Config

from harness import case, run

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.join(os.environ["ANABRANCH_CLIENTS"], "rstreams")
BUS = {"Region": "us-east-1", "LeoStream": "LeoStream", "LeoCron": "LeoCron", "LeoEvent": "LeoEvent",
       "LeoSettings": "LeoSettings", "LeoSystem": "LeoSystem", "LeoS3": "leos3", "LeoKinesisStream": "LeoKinesis",
       "LeoFirehoseStream": "LeoFirehose"}


def client(service, kind=boto3.client):
    return kind(service, config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}))


def table(name):
    return client("dynamodb", boto3.resource).Table(name)


def bot(*words):
    """Runs a bot, and returns what it printed."""
    environment = {**os.environ, "NODE_OPTIONS": f"-r {HERE}/rstreams_endpoint.cjs", "RSTREAMS_CONFIG_SECRET": "rstreams-bus",
                   "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE": "1", "NODE_NO_WARNINGS": "1", "TZ": "UTC"}
    answer = subprocess.run(["node", os.path.join(HERE, "rstreams_bot.cjs"), *map(str, words)], cwd=CLIENTS,
                            env=environment, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return json.loads(answer.stdout.strip().splitlines()[-1])


def records():
    """All records of the bus's stream: they go to one shard, whatever their queue."""
    kinesis = client("kinesis")
    iterator = kinesis.get_shard_iterator(StreamName="LeoKinesis", ShardId="shardId-000000000000",
                                          ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    found = []
    while True:
        page = kinesis.get_records(ShardIterator=iterator)
        found += page["Records"]
        iterator = page["NextShardIterator"]
        if not page["Records"] and page["MillisBehindLatest"] == 0:
            return found


class Processor:
    """From the stream into the tables of the bus, as far as the SDK can tell."""

    def __init__(self):
        self.done = 0

    def run(self):
        for record in records()[self.done:]:
            self.done += 1
            lines = [json.loads(line) for line in gzip.decompress(record["Data"]).splitlines()]
            queue, count = lines[0]["event"], lines[0].get("records", len(lines))
            moment = record["ApproximateArrivalTimestamp"].astimezone(timezone.utc)
            # A millisecond may have more than one record; the number of the record keeps their order.
            prefix = moment.strftime("z/%Y/%m/%d/%H/%M/") + f"{int(moment.timestamp() * 1000)}-"
            first, last = (prefix + f"{self.done * 1000 + place:07}" for place in (0, count - 1))
            item = {"event": queue, "start": first, "end": last, "records": count, "v": 2,
                    "ttl": int(time.time()) + 604800}
            if "s3" in lines[0]:
                item.update({key: lines[0][key] for key in ("s3", "offsets", "gzipSize", "size")})
            else:
                item.update(gzip=record["Data"], gzipSize=len(record["Data"]),
                            size=len(gzip.decompress(record["Data"])))
            table("LeoStream").put_item(Item=item)
            table("LeoEvent").update_item(Key={"event": queue}, UpdateExpression="SET max_eid = :eid, v = :v",
                                          ExpressionAttributeValues={":eid": last, ":v": 2})


PROCESSOR = Processor()


def events(queue):
    """What the stream holds of a queue: the events that were written directly, and the pointers to those in S3."""
    lines = [json.loads(line) for record in records() for line in gzip.decompress(record["Data"]).splitlines()]
    return [line for line in lines if line["event"] == queue]


def numbers(found):
    return [event["number"] for event in found]


@case
def a_bus_is_made(_):
    dynamodb = client("dynamodb")
    for name, keys in {"LeoStream": ["event", "end"], "LeoEvent": ["event"], "LeoCron": ["id"], "LeoSettings": ["id"],
                       "LeoSystem": ["id"]}.items():
        dynamodb.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"))])
        dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    client("kinesis").create_stream(StreamName="LeoKinesis", ShardCount=1)
    client("kinesis").get_waiter("stream_exists").wait(StreamName="LeoKinesis", WaiterConfig={"Delay": 1})
    client("s3").create_bucket(Bucket="leos3")
    client("secretsmanager").create_secret(Name="rstreams-bus", SecretString=json.dumps(BUS))


@case
def events_are_written_directly(_):
    bot("load", "direct", 0, 250)
    found = events("direct")
    assert [event["payload"] for event in found] == [{"number": number, "text": "ü" * 10} for number in range(250)]
    assert found[7]["id"] == "writer" and found[7]["event_source_timestamp"] == 1_700_000_000_007, found[7]
    # The bot was not there; it came with its first checkpoint.
    writer = table("LeoCron").get_item(Key={"id": "writer"})["Item"]
    checkpoint = writer["checkpoints"]["read"]["queue:elsewhere"]
    assert checkpoint["checkpoint"].endswith("-0000249"), checkpoint
    assert writer["requested_kinesis"] == {} and writer["paused"] is False, writer


@case
def events_are_written_through_s3(_):
    bot("load", "stored", 0, 120, json.dumps({"useS3": True, "size": 500}))
    pointers = events("stored")
    assert len(pointers) == 1 and pointers[0]["records"] == 120, pointers
    place = pointers[0]["s3"]
    assert place["key"].startswith("bus/stored/writer/z/"), place
    stored = client("s3").get_object(Bucket=place["bucket"], Key=place["key"])["Body"].read()
    assert len(stored) == pointers[0]["gzipSize"]
    lines = [json.loads(line) for line in gzip.decompress(stored).splitlines()]
    assert [line["payload"] for line in lines] == [{"number": number, "text": "ü" * 500} for number in range(120)]
    # What is too large for a record goes to S3 by itself.
    bot("load", "large", 0, 1, json.dumps({"size": 400_000}))
    large = events("large")[0]
    stored = client("s3").get_object(Bucket=large["s3"]["bucket"], Key=large["s3"]["key"])["Body"].read()
    assert json.loads(gzip.decompress(stored))["payload"]["text"] == "ü" * 400_000


@case
def events_are_read_and_checkpointed(_):
    PROCESSOR.run()
    for queue, count, size in [("direct", 250, 10), ("stored", 120, 500), ("large", 1, 400_000)]:
        seen = bot("offload", queue)
        assert numbers(seen) == list(range(count)), (queue, len(seen))
        assert all(event["text"] == "ü" * size for event in seen)
        reader = table("LeoCron").get_item(Key={"id": "reader"}, ConsistentRead=True)["Item"]
        read = reader["checkpoints"]["read"][f"queue:{queue}"]
        assert read["checkpoint"] == seen[-1]["eid"], read
        assert bot("offload", queue) == [], "nothing comes behind the checkpoint"
    bot("load", "direct", 250, 10)
    PROCESSOR.run()
    assert numbers(bot("offload", "direct")) == list(range(250, 260))


@case
def a_queue_is_enriched_into_another(_):
    bot("enrich", "direct", "enriched")
    found = events("enriched")
    assert numbers(event["payload"] for event in found) == list(range(260))
    assert all(event["payload"]["enriched"] and event["correlation_id"]["source"] == "direct" for event in found)
    enricher = table("LeoCron").get_item(Key={"id": "enricher"})["Item"]
    last = table("LeoEvent").get_item(Key={"event": "direct"})["Item"]["max_eid"]
    assert enricher["checkpoints"]["read"]["queue:direct"]["checkpoint"] == last, enricher


@case
def locks_are_exclusive(_):
    assert bot("lock") is True
    assert table("LeoSettings").get_item(Key={"id": "lock_nightly"})["Item"]["value"] == "run-3"


@case
def a_crash_in_the_middle_loses_nothing(server):
    """Bots that write while the server dies and comes back: the SDK tries again, and what it says is written is there."""
    for options in ({}, {"useS3": True, "s3Opts": {"time": {"milliseconds": 200}}}):
        queue = "crash-s3" if options else "crash"
        failures = []

        def write():
            try:
                bot("load", queue, 0, 600, json.dumps({**options, "pause": 5}))
            except AssertionError as error:
                failures.append(error)

        writing = threading.Thread(target=write)
        writing.start()
        for _ in range(4):
            time.sleep(1)
            server.kill()
        writing.join()
        assert not failures, failures
        PROCESSOR.run()
        seen = bot("offload", queue)
        # What was not acknowledged is written again.
        assert list(dict.fromkeys(numbers(seen))) == list(range(600)), (queue, numbers(seen))
        server.kill()
        assert bot("offload", queue) == []


run()
