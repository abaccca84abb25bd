"""Applications of the Kinesis Client Library: a stream, its writer, and workers of Java's and of ours that share its shards."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import boto3
from botocore.config import Config

from harness import BINARY, GUARDED, eventually

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


def keys():
    """One key for each eighth of the hash keys, so that every shard has something to do, also behind the split."""
    found = {}
    for number in range(1000):
        digest = int.from_bytes(hashlib.md5(f"key-{number}".encode()).digest(), "big")
        found.setdefault(digest * 8 >> 128, f"key-{number}")
    return [found[eighth] for eighth in range(8)]


class Writer(threading.Thread):
    """Writes numbers, one after the other for each key, until it is told to stop. What is not acknowledged it repeats."""

    def __init__(self, stream, keys):
        super().__init__(daemon=True)
        self.stream, self.keys, self.acknowledged, self.ended = stream, keys, 0, threading.Event()

    def run(self):
        kinesis = client("kinesis")
        while not self.ended.is_set():
            records = [{"Data": str(self.acknowledged).encode(), "PartitionKey": key} for key in self.keys]
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

    # Several of them run at once, and none for long.
    java_options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

    def trust(self):
        """What tells Java which root to trust: it reads no file in PEM."""
        if not GUARDED:
            return []
        store = os.path.join(self.server.folder.name, "trusted")
        if not os.path.exists(store):
            subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "anabranch", "-file", self.server.root,
                            "-keystore", store, "-storetype", "PKCS12", "-storepass", "public"], check=True, capture_output=True)
        return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=public"]

    def __init__(self, server, mode, name=None, shards=2, keys=KEYS, writes=True):
        self.server, self.name = server, name or f"kcl-{mode.lower()}"
        self.mode, self.workers, self.keys = mode, {}, keys
        self.seen_at = os.path.join(server.folder.name, f"{self.name}.seen")
        self.lines, self.half, self.read = [], "", open(self.seen_at, "w+")
        kinesis = client("kinesis")
        kinesis.create_stream(StreamName=self.name, ShardCount=shards)
        kinesis.get_waiter("stream_exists").wait(StreamName=self.name, WaiterConfig={"Delay": 1})
        self.writer = Writer(self.name, keys)
        if writes:
            self.writer.start()

    def properties(self, worker):
        """How a worker of Java's is set up."""
        return {
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

    def work(self, worker):
        """Starts a worker of Java's."""
        folder, properties = self.server.folder.name, self.properties(worker)
        paths = {kind: os.path.join(folder, f"{self.name}-{worker}.{kind}") for kind in ("properties", "xml", "log")}
        with open(paths["properties"], "w") as file:
            file.writelines(f"{key} = {value}\n" for key, value in properties.items())
        with open(paths["xml"], "w") as file:
            file.write(LOGGING)
        command = ["java", *self.java_options, *self.trust(), "-cp", JARS,
                   "software.amazon.kinesis.multilang.MultiLangDaemon",
                   "--properties-file", paths["properties"], "--log-configuration", paths["xml"]]
        environment = {**os.environ, "KCL_SEEN": self.seen_at, "KCL_WORKER": worker}
        with open(paths["log"], "wb") as log:
            self.workers[worker] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def work_of_ours(self, worker, **more):
        """Starts a worker of ours. It speaks to the server as Java does, and says what it reads in the same file. `more` is put
        into its environment."""
        command = [BINARY, "consumer", "run", self.name, self.name, "--worker", worker, "--lease-time", "5s", "--json",
                   "--engine", "aws", "--endpoint", self.server.url, "--region", "us-east-1"]
        path = os.path.join(self.server.folder.name, f"{self.name}-{worker}.log")
        with open(path, "wb") as log, open(self.seen_at, "ab") as seen:
            environment = {**os.environ, "RUST_LOG": "anabranch_consumer=info,warn", **more}
            self.workers[worker] = subprocess.Popen(command, stdout=seen, stderr=log, env=environment)

    def seen(self, what=None, **more):
        """What was seen so far."""
        # A line is written at once, and yet its first half may be there before the second: where a page of the file ends.
        *lines, self.half = (self.half + self.read.read()).split("\n")
        # Ours write nothing but records.
        self.lines += [{"what": "record", **json.loads(line)} for line in lines]
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
                lines = [line for line in log if " INFO " not in line or "anabranch_consumer" in line]
            print(f"--- {self.name} {worker}\n{''.join(lines[-40:])}", file=sys.stderr)

    def numbers(self, key):
        """The numbers of a key in the order in which they were seen for the first time."""
        return list(dict.fromkeys(int(line["data"]) for line in self.seen("record", key=key)))

    def check_records(self):
        """Every record that was acknowledged has been seen, those of a key in their order."""
        written = self.writer.acknowledged
        for key in self.keys:
            numbers = self.numbers(key)
            # The last attempt may have been stored without having been acknowledged.
            assert numbers in (list(range(written)), list(range(written + 1))), (key, written, numbers[-10:])
        places = {}
        for line in self.seen("record"):
            found = (line["shard"], line["data"])
            assert places.setdefault(line["sequence"], found) == found, line

    def kill(self, worker):
        """Ends a worker as a crash would."""
        process = self.workers.pop(worker)
        process.kill()
        process.wait()

    def finish(self):
        """Stops writing, and waits until everything is seen."""
        self.writer.ended.set()
        self.writer.join()
        last = self.writer.acknowledged - 1
        self.wait("the last records", lambda: all(last in self.numbers(key) for key in self.keys))

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


def together(applications, step):
    for application in applications:
        step(application)


class Lookout(threading.Thread):
    """Looks at the leases again and again, and notes beside how much had been processed by then at the latest."""

    def __init__(self, application):
        super().__init__(daemon=True)
        self.application, self.looks, self.ended = application, [], threading.Event()

    def run(self):
        while not self.ended.wait(0.05):
            try:
                leases = self.application.leases().values()
            except Exception:  # The server is down.
                continue
            behind = os.path.getsize(self.application.seen_at)
            self.looks.append((behind, {lease["leaseKey"]["S"]: (lease.get("leaseOwner", {}).get("S"), lease["checkpoint"]["S"])
                                        for lease in leases if "checkpointOwner" not in lease}))

    def deliveries(self):
        """Every record that was processed, with the owner of its shard and the checkpoint as they had been seen before."""
        looks, known, behind = iter(self.looks), {}, 0
        look = next(looks, None)
        with open(self.application.seen_at, "rb") as seen:
            for line in seen:
                while look and look[0] <= behind:
                    known, look = look[1], next(looks, None)
                behind += len(line)
                record = {"what": "record", **json.loads(line)}
                if record["what"] == "record":
                    yield record, *known.get(record["shard"], (None, "TRIM_HORIZON"))


def check_deliveries(lookout, ours):
    """A worker of ours reads a shard in order as long as it has the lease, and begins anew behind the checkpoint. Returns how often
    which worker processed something that had been processed before."""
    seen, twice, last, back = set(), Counter(), {}, Counter()
    for record, owner, checkpoint in lookout.deliveries():
        worker, shard, sequence = record["worker"], record["shard"], int(record["sequence"])
        twice[worker] += sequence in seen
        seen.add(sequence)
        if worker == ours:
            if owner == ours and checkpoint.isdigit():
                assert sequence > int(checkpoint), ("it is processed according to the table", checkpoint, record)
            back[shard] += sequence <= last.get(shard, 0)
            last[shard] = sequence
    with open(os.path.join(lookout.application.server.folder.name, f"{lookout.application.name}-{ours}.log")) as log:
        begun = Counter(line.split("lease=")[1].split()[0] for line in log if "a lease is ours" in line)
    assert all(back[shard] < begun[shard] for shard in back), (back, begun)
    return twice
