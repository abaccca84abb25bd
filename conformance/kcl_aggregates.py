"""Aggregates between us and the others: what we pack is opened by the Kinesis Client Library for Java, and what the library for
Python packs is opened by our consumer. The server is killed while they are read."""

import hashlib
import os
import subprocess
import sys

from harness import BINARY, case, run
from kcl_fleet import Application, client

sys.path.insert(0, os.path.join(os.environ["ANABRANCH_CLIENTS"] + "-aggregates"))
from aws_kinesis_agg.aggregator import RecordAggregator  # noqa: E402

KEYS = [f"key-{number}" for number in range(40)]
COUNT = 2000


def check(application, expected):
    """Every record of every key was seen, in order, and many came in one."""
    application.wait("some records", lambda: application.seen("record"))
    application.server.kill()
    application.wait("all records", lambda: len({line["data"] for line in application.seen("record")}) >= COUNT)
    lines = application.seen("record")
    assert len(lines) == COUNT, f"{len(lines)} records, and no worker was killed"
    for key in KEYS:
        own = [line["data"] for line in lines if line["key"] == key]
        assert own == expected[key], (key, own[:5], expected[key][:5])
    stored = {(line["shard"], line["sequence"]) for line in lines}
    assert len(stored) < COUNT / 10, f"{COUNT} records in {len(stored)}"
    assert len({shard for shard, _ in stored}) == 2, "both shards have some"


@case
def what_we_pack_java_opens(server):
    application = Application(server, "POLLING", "kcl-ours", keys=KEYS, writes=False)
    expected, lines = {key: [] for key in KEYS}, []
    for number in range(COUNT):
        key = KEYS[number % len(KEYS)]
        line = f'{{"key": "{key}", "number": {number}}}'
        expected[key].append(line)
        lines.append(line + "\n")
    command = [BINARY, "stream", "put", application.name, "--lines", "--file", "-", "--key-field", "key", "--aggregate",
               "--data", os.path.join(server.folder.name, "data")]
    subprocess.run(command, input="".join(lines), text=True, check=True, capture_output=True)
    try:
        application.work("w1")
        check(application, expected)
    finally:
        application.stop()


@case
def what_others_pack_our_consumer_opens(server):
    application = Application(server, "POLLING", "kcl-theirs", keys=KEYS, writes=False)
    kinesis, expected = client("kinesis"), {key: [] for key in KEYS}
    middle, packers = 2**127, {}
    for number in range(COUNT):
        key = KEYS[number % len(KEYS)]
        expected[key].append(f"record {number}")
        # One packer for each shard, as the library asks of those who use it.
        owner = packers.setdefault(int(hashlib.md5(key.encode()).hexdigest(), 16) >= middle, RecordAggregator())
        packed = owner.add_user_record(key, f"record {number}".encode())
        if packed:
            send(kinesis, application.name, packed)
        if owner.get_num_user_records() == 100:
            send(kinesis, application.name, owner.clear_and_get())
    for owner in packers.values():
        if owner.get_num_user_records():
            send(kinesis, application.name, owner.clear_and_get())
    try:
        application.work_of_ours("w1")
        check(application, expected)
    finally:
        application.stop()


def send(kinesis, stream, packed):
    key, _, data = packed.get_contents()
    kinesis.put_record(StreamName=stream, PartitionKey=key, Data=data)


run()
