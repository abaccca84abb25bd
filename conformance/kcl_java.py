"""The Kinesis Client Library for Java, version 3: two applications at a time, one that polls and one with fan-out.

Each has two workers, of which the second starts when the first is at work and gets a shard handed over; then come a split,
a crash of the server, a merge and another crash. All the while records are written. At the end every record that was
acknowledged has been processed, those of a key in their order, and the leases say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import boto3
from botocore.config import Config

from harness import case, eventually, run

HERE = os.path.dirname(os.path.abspath(__file__))
JARS = os.path.join(os.environ["ANABRANCH_CLIENTS"], "kcl", "amazon_kclpy", "jars", "*")
# Three of the first quarter of the hash keys, two of the second, and three of the other half.
KEYS = [f"key-{number}" for number in (1, 12, 17, 3, 7, 0, 8, 13)]
# A KCL that starts waits for up to half a minute, twice; and what it does it does every few seconds.
PATIENCE = 180

LOGGING = """<configuration>
<appender name="log" class="ch.qos.logback.core.ConsoleAppender"><target>System.err</target>
<encoder><pattern>%d %-5level %logger{0} %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="log"/></root>
</configuration>
"""


def client(service):
    return boto3.client(service, config=Config(retries={"max_attempts": 0}, read_timeout=20))


class Writer(threading.Thread):
    """Writes numbers, one after the other for each key, until it is told to stop. What is not acknowledged it repeats."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.acknowledged, self.ended = stream, 0, threading.Event()

    def run(self):
        kinesis = client("kinesis")
        while not self.ended.is_set():
            records = [{"Data": str(self.acknowledged).encode(), "PartitionKey": key} for key in KEYS]
            try:
                answer = kinesis.put_records(StreamName=self.stream, Records=records)
            except Exception:  # The server is down: nothing is known of this attempt.
                time.sleep(0.1)
                continue
            assert answer["FailedRecordCount"] == 0, answer
            self.acknowledged += 1
            time.sleep(0.1)


class Application:
    """A stream, its writer, and the workers that process it."""

    def __init__(self, server, mode):
        self.server, self.name = server, f"kcl-{mode.lower()}"
        self.mode, self.workers = mode, {}
        self.seen_at = os.path.join(server.folder.name, f"{self.name}.seen")
        self.lines, self.read = [], open(self.seen_at, "w+")
        kinesis = client("kinesis")
        kinesis.create_stream(StreamName=self.name, ShardCount=2)
        kinesis.get_waiter("stream_exists").wait(StreamName=self.name, WaiterConfig={"Delay": 1})
        self.writer = Writer(self.name)
        self.writer.start()

    def work(self, worker):
        folder = self.server.folder.name
        properties = {
            "executableName": f"{sys.executable} {HERE}/kcl_processor.py", "streamName": self.name,
            "applicationName": self.name, "workerId": worker, "AwsCredentialsProvider": "DefaultCredentialsProvider",
            "initialPositionInStream": "TRIM_HORIZON", "regionName": "us-east-1", "retrievalMode": self.mode,
            "kinesisEndpoint": self.server.url, "dynamoDBEndpoint": self.server.url,
            "cloudWatchClient.endpointOverride": self.server.url, "metricsLevel": "SUMMARY",
            # It waits for this long when it starts, too.
            "shardSyncIntervalMillis": 1000, "parentShardPollIntervalMillis": 1000, "failoverTimeMillis": 5000,
            "leaseAssignmentIntervalMillis": 5000, "idleTimeBetweenReadsInMillis": 250, "shutdownGraceMillis": 10000,
            # A shard changes hands when a worker has nothing to do, and not for less. A KCL that is asked for a shard in the
            # very moment in which it takes it up again, which it does if an answer was lost, holds it for ever.
            "reBalanceThresholdPercentage": 90,
        }
        paths = {kind: os.path.join(folder, f"{self.name}-{worker}.{kind}") for kind in ("properties", "xml", "log")}
        with open(paths["properties"], "w") as file:
            file.writelines(f"{key} = {value}\n" for key, value in properties.items())
        with open(paths["xml"], "w") as file:
            file.write(LOGGING)
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JARS,
                   "software.amazon.kinesis.multilang.MultiLangDaemon",
                   "--properties-file", paths["properties"], "--log-configuration", paths["xml"]]
        environment = {**os.environ, "KCL_SEEN": self.seen_at, "KCL_WORKER": worker}
        with open(paths["log"], "wb") as log:
            self.workers[worker] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def seen(self, what=None, **more):
        """What was seen so far. A line is written at once, so there are no halves."""
        self.lines += [json.loads(line) for line in self.read]
        return [line for line in self.lines if what in (None, line["what"])
                and all(line.get(key) == value for key, value in more.items())]

    def wait(self, what, check):
        """Waits for something in what was seen, for as long as the workers live."""
        def look():
            for worker, process in self.workers.items():
                assert process.poll() is None, f"{self.name}: {worker} ended by itself"
            return check()

        try:
            return eventually(look, f"{self.name}: {what}", PATIENCE)
        except AssertionError:
            self.show_logs()
            raise

    def wait_for_shards(self, *numbers):
        for number in numbers:
            shard = f"shardId-{number:012}"
            self.wait(f"records of {shard}", lambda: self.seen("record", shard=shard))

    def show_logs(self):
        for worker in self.workers:
            with open(os.path.join(self.server.folder.name, f"{self.name}-{worker}.log"), errors="replace") as log:
                lines = [line for line in log if " INFO " not in line]
            print(f"--- {self.name} {worker}\n{''.join(lines[-40:])}", file=sys.stderr)

    def numbers(self, key):
        """The numbers of a key in the order in which they were seen for the first time."""
        return list(dict.fromkeys(int(line["data"]) for line in self.seen("record", key=key)))

    def stop(self, grace=25):
        """Ends the workers; true if all of them went by themselves."""
        for process in self.workers.values():
            process.send_signal(signal.SIGTERM)
        orderly = True
        for process in self.workers.values():
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                orderly = False
                process.kill()
                process.wait()
        self.workers = {}
        return orderly

    def leases(self):
        pages = client("dynamodb").get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        return {item["leaseKey"]["S"][-1]: item for page in pages for item in page["Items"]}


def check_handoff(application):
    """A shard that the first worker had goes to the second when the first has been asked and has let go."""
    application.wait("a shard of the second worker", lambda: application.seen("initialize", worker="w2"))
    taken = application.seen("initialize", worker="w2")[0]["shard"]
    story = [(line["worker"], line["what"]) for line in application.seen(shard=taken)
             if line["what"] not in ("record", "checkpoint")]
    assert story[:4] == [("w1", "initialize"), ("w1", "shutdownRequested"), ("w1", "leaseLost"), ("w2", "initialize")], story
    records = application.seen("record", shard=taken)
    assert len({line["sequence"] for line in records}) == len(records), "a handover repeats nothing"


def check_leases(application):
    leases = application.leases()
    shards = {shard["ShardId"][-1]: shard for shard in client("kinesis").list_shards(StreamName=application.name)["Shards"]}
    children = {"0": "23", "1": "4", "3": "4"}
    for name, lease in leases.items():
        assert int(lease["leaseCounter"]["N"]) > 0, lease
        assert lease["startingHashKey"]["S"] == shards[name]["HashKeyRange"]["StartingHashKey"], lease
        assert "checkpointOwner" not in lease, lease
        if name in children:
            assert lease["checkpoint"]["S"] == "SHARD_END", lease
            assert sorted(child[-1] for child in lease["childShardIds"]["SS"]) == list(children[name]), lease
        else:
            last = application.seen("record", shard=lease["leaseKey"]["S"])[-1]["sequence"]
            assert lease["checkpoint"]["S"] == last, (lease, last)
            assert lease["leaseOwner"]["S"] in ("w1", "w2"), lease
        if name in "234":
            parents = [shards[name]["ParentShardId"]]
            parents += [shards[name]["AdjacentParentShardId"]] if name == "4" else []
            assert sorted(lease["parentShardId"]["SS"]) == sorted(parents), lease
    assert {"2", "4"} <= leases.keys(), leases
    coordinator = client("dynamodb").scan(TableName=f"{application.name}-CoordinatorState")["Items"]
    state = {item["key"]["S"]: item for item in coordinator}
    assert state["Migration3.0"]["cv"]["S"] == "CLIENT_VERSION_3X", state
    table = client("dynamodb").describe_table(TableName=application.name)["Table"]
    assert table["GlobalSecondaryIndexes"][0]["IndexName"] == "LeaseOwnerToLeaseKeyIndex", table


def check_records(application):
    written = application.writer.acknowledged
    for key in KEYS:
        numbers = application.numbers(key)
        # The last attempt may have been stored without having been acknowledged.
        assert numbers in (list(range(written)), list(range(written + 1))), (key, written, numbers[-10:])
    places = {}
    for line in application.seen("record"):
        assert places.setdefault(line["sequence"], (line["shard"], line["data"])) == (line["shard"], line["data"]), line


def crash(server, applications):
    """Ends the server while records are written, but not while a shard changes hands."""
    for each in applications:
        each.wait("an end of handovers", lambda: not any("checkpointOwner" in lease for lease in each.leases().values()))
    server.kill()


def together(applications, step):
    for application in applications:
        step(application)


@case
def java_kcl_through_resharding_and_crashes(server):
    applications = [Application(server, "POLLING"), Application(server, "FANOUT")]
    kinesis = client("kinesis")
    begun = time.monotonic()

    def told(what):
        if os.environ.get("KCL_VERBOSE"):
            print(f"{time.monotonic() - begun:6.1f} s {what}", file=sys.stderr)

    try:
        together(applications, lambda each: each.work("w1"))
        together(applications, lambda each: each.wait_for_shards(0, 1))
        told("the first workers are at work")
        together(applications, lambda each: each.work("w2"))
        together(applications, check_handoff)
        told("shards were handed over")
        for each in applications:
            kinesis.split_shard(StreamName=each.name, ShardToSplit="shardId-000000000000", NewStartingHashKey=str(2**126))
        together(applications, lambda each: each.wait_for_shards(2, 3))
        told("children of the split are read")
        crash(server, applications)
        for each in applications:
            kinesis.merge_shards(StreamName=each.name, ShardToMerge="shardId-000000000003",
                                 AdjacentShardToMerge="shardId-000000000001")
        together(applications, lambda each: each.wait_for_shards(4))
        told("the child of the merge is read")
        crash(server, applications)
        behind = {each: each.writer.acknowledged for each in applications}
        together(applications, lambda each: eventually(lambda: each.writer.acknowledged > behind[each] + 20, "more records"))
        for each in applications:
            each.writer.ended.set()
            each.writer.join()
            last = each.writer.acknowledged - 1
            each.wait("the last records", lambda: all(last in each.numbers(key) for key in KEYS))
        told("all records are processed")
        time.sleep(1)
        orderly = [each.stop() for each in applications]
        assert all(orderly), orderly
        told("the workers have stopped")
        together(applications, check_records)
        together(applications, check_leases)
    finally:
        for each in applications:
            each.writer.ended.set()
            each.stop(grace=5)


run()
