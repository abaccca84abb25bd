"""Aggregates that we write, opened by the library for Python that AWS publishes; and ones that it writes, stored by us."""

import base64
import hashlib
import os
import subprocess
import sys

import boto3
from botocore.config import Config

from harness import BINARY, case, run

sys.path.insert(0, os.path.join(os.environ["ANABRANCH_CLIENTS"] + "-aggregates"))
from aws_kinesis_agg.aggregator import RecordAggregator  # noqa: E402
from aws_kinesis_agg.deaggregator import iter_deaggregate_records  # noqa: E402


def client():
    return boto3.client("kinesis", config=Config(retries={"max_attempts": 0}))


def make(name, shards):
    kinesis = client()
    kinesis.create_stream(StreamName=name, ShardCount=shards)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    return kinesis


def stored(kinesis, name):
    """The records of each shard, as a library of AWS opens them, with what they were stored as."""
    for shard in kinesis.list_shards(StreamName=name)["Shards"]:
        place = kinesis.get_shard_iterator(StreamName=name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
        records = kinesis.get_records(ShardIterator=place["ShardIterator"])["Records"]
        opened = []
        for record in iter_deaggregate_records(records, data_format="Boto3"):
            parts = record["kinesis"]
            # It hands out what it opened in base64, and what was no aggregate as it came.
            data = base64.b64decode(parts["data"]) if parts.get("aggregated") else parts["data"]
            opened.append((parts["partitionKey"], data.decode()))
        yield shard, records, opened


def put(server, name, lines):
    command = [BINARY, "stream", "put", name, "--lines", "--file", "-", "--key-field", "key", "--aggregate",
               "--data", os.path.join(server.folder.name, "data")]
    subprocess.run(command, input="".join(lines), text=True, check=True, capture_output=True)


@case
def what_we_pack_others_open(server):
    kinesis = make("packed", 3)
    lines = [f'{{"key": "key-{number % 40}", "number": {number}}}\n' for number in range(2000)]
    put(server, "packed", lines)
    server.kill()
    seen, physical = [], 0
    for shard, records, opened in stored(kinesis, "packed"):
        physical += len(records)
        first, last = (int(shard["HashKeyRange"][key]) for key in ("StartingHashKey", "EndingHashKey"))
        for key, data in opened:
            place = int(hashlib.md5(key.encode()).hexdigest(), 16)
            assert first <= place <= last, "every part lies in the shard that owns it"
            seen.append((key, data))
    assert physical < 200, f"2,000 records in {physical}"
    assert sorted(data for _, data in seen) == sorted(line.rstrip("\n") for line in lines)
    for number in range(40):
        own = [data for key, data in seen if key == f"key-{number}"]
        assert own == [line.rstrip("\n") for line in lines[number::40]], "in order"


@case
def what_others_pack_is_kept_as_it_is(server):
    kinesis = make("theirs", 1)
    packer = RecordAggregator()
    for number in range(100):
        packer.add_user_record(f"key-{number}", f"record {number}".encode())
    key, place, data = packer.clear_and_get().get_contents()
    kinesis.put_record(StreamName="theirs", PartitionKey=key, Data=data)
    server.kill()
    _, records, opened = next(iter(stored(kinesis, "theirs")))
    assert records[0]["Data"] == data and len(opened) == 100


run()
