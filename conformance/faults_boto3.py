"""What goes wrong below and around a server, by boto3: a disk that is full, a server and clients that stand still, and
deaths in the middle of what takes more than one step."""

import hashlib
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from harness import BINARY, Server, Skipped, case, eventually, run, skipped, through_crashes

MIB = 1 << 20


def client(service, attempts=0, timeout=30):
    return boto3.client(service, config=Config(
        retries={"max_attempts": attempts, "mode": "standard"}, read_timeout=timeout, s3={"addressing_style": "path"}))


@contextmanager
def small_disk(size):
    """A folder on a file system of its own."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True)
        if mounted.returncode:
            skipped(f"a full disk, since no file system can be mounted here: {mounted.stderr.strip()}")
            raise Skipped
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


class Writers:
    """What writes into every service until it is refused, and what was acknowledged."""

    def __init__(self):
        names = ["kinesis", "sqs", "dynamodb", "s3", "firehose"]
        self.kinesis, self.sqs, self.dynamodb, self.s3, self.firehose = map(client, names)
        self.kinesis.create_stream(StreamName="full", ShardCount=1)
        self.queue = self.sqs.create_queue(QueueName="full")["QueueUrl"]
        self.dynamodb.create_table(
            TableName="full", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}], BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}])
        self.s3.create_bucket(Bucket="full")
        self.s3.create_bucket(Bucket="lake")
        self.firehose.create_delivery_stream(DeliveryStreamName="full", ExtendedS3DestinationConfiguration={
            "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake",
            "BufferingHints": {"SizeInMBs": 128, "IntervalInSeconds": 900}})
        self.acknowledged = {name: set() for name in self.all()}
        self.refusals = {name: set() for name in self.all()}
        self.next = 0

    def all(self):
        return {"records": self.records, "messages": self.messages, "items": self.item, "objects": self.object,
                "deliveries": self.deliveries}

    def records(self, names, data):
        answer = self.kinesis.put_records(
            StreamName="full", Records=[{"Data": f"{name} {data}", "PartitionKey": name} for name in names])
        entries = zip(names, answer["Records"])
        return self.sorted(entries, "SequenceNumber", answer["FailedRecordCount"])

    def messages(self, names, data):
        entries = [{"Id": name, "MessageBody": f"{name} {data[:90_000]}"} for name in names]
        answer = self.sqs.send_message_batch(QueueUrl=self.queue, Entries=entries)
        for entry in answer.get("Failed", []):
            assert not entry["SenderFault"], entry
        return [entry["Id"] for entry in answer.get("Successful", [])], {entry["Code"] for entry in answer.get("Failed", [])}

    def item(self, names, data):
        self.dynamodb.put_item(TableName="full", Item={"id": {"S": names[0]}, "data": {"S": data}})
        return names[:1], set()

    def object(self, names, data):
        self.s3.put_object(Bucket="full", Key=names[0], Body=(names[0] + " " + data).encode())
        return names[:1], set()

    def deliveries(self, names, data):
        answer = self.firehose.put_record_batch(
            DeliveryStreamName="full", Records=[{"Data": f"{name} {data}\n"} for name in names])
        return self.sorted(zip(names, answer["RequestResponses"]), "RecordId", answer["FailedPutCount"])

    @staticmethod
    def sorted(entries, place, failed):
        entries = list(entries)
        assert sum("ErrorCode" in entry for _, entry in entries) == failed, entries
        return ([name for name, entry in entries if entry.get(place)],
                {entry["ErrorCode"] for _, entry in entries if "ErrorCode" in entry})

    def write(self, what, length):
        """Writes a little. Returns whether all of it was taken."""
        names = [f"{what}-{self.next + n}" for n in range(2)]
        self.next += 2
        began = time.monotonic()
        try:
            taken, codes = self.all()[what](names, "x" * length)
        except ClientError as error:
            # Clients try again what has such a status, and say the code and the message if that does not help.
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] in (500, 503), error.response
            assert error.response["Error"]["Message"], error.response
            taken, codes = [], {error.response["Error"]["Code"]}
        assert time.monotonic() - began < 20, f"{what}: a refusal took {time.monotonic() - began:.1f} s"
        self.acknowledged[what] |= set(taken)
        self.refusals[what] |= codes
        return not codes

    def fill(self):
        """Writes until nobody takes anything any more, not even what is short."""
        for length in [300_000, 20_000, 1_000, 10]:
            refused = 0
            while refused < 3:
                refused = 0 if any([self.write(what, length) for what in self.all()]) else refused + 1

    def found(self):
        """All that is there, but the messages and what waits for its delivery."""
        return {"records": self.found_records(), "items": self.found_items(), "objects": self.found_objects()}

    def found_records(self):
        if "records" not in self.acknowledged:
            return set()
        shard = self.kinesis.get_shard_iterator(
            StreamName="full", ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        records = set()
        while True:
            answer = self.kinesis.get_records(ShardIterator=shard)
            records |= {record["Data"].split()[0].decode() for record in answer["Records"]}
            if not answer["Records"] and not answer["MillisBehindLatest"]:
                return records
            shard = answer["NextShardIterator"]

    def found_items(self):
        pages = self.dynamodb.get_paginator("scan").paginate(TableName="full", ConsistentRead=True)
        return {item["id"]["S"] for page in pages for item in page["Items"]}

    def found_objects(self):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket="full")
        objects = {entry["Key"] for page in pages for entry in page.get("Contents", [])}
        for key in objects:
            assert self.s3.get_object(Bucket="full", Key=key)["Body"].read().split()[0] == key.encode(), key
        return objects

    def check(self):
        for what, found in self.found().items():
            if what in self.acknowledged:
                assert self.acknowledged[what] <= found, (what, sorted(self.acknowledged[what] - found)[:5])

    def take(self, count):
        """Receives and deletes messages."""
        for _ in range(count):
            got = self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10, VisibilityTimeout=600).get("Messages", [])
            if not got:
                return
            for message in got:
                name = message["Body"].split()[0]
                self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
                self.acknowledged["messages"].remove(name)

    def drop_item(self):
        self.dynamodb.delete_item(TableName="full", Key={"id": {"S": self.acknowledged["items"].pop()}})

    def drop_object(self):
        self.s3.delete_object(Bucket="full", Key=self.acknowledged["objects"].pop())

    def delivered(self):
        """Whether the delivery stream goes, which it does with the last record."""
        try:
            self.firehose.delete_delivery_stream(DeliveryStreamName="full")
            return True
        except self.firehose.exceptions.ResourceInUseException:
            return False

    def lake(self):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket="lake")
        bodies = [self.s3.get_object(Bucket="lake", Key=entry["Key"])["Body"].read()
                  for page in pages for entry in page.get("Contents", [])]
        return {line.split()[0].decode() for line in b"".join(bodies).splitlines()}


@contextmanager
def environment():
    """What the clients are told of another server is forgotten afterwards."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@case
def a_full_disk_is_said_and_survived(_):
    with environment(), small_disk("700m") as folder, Server(guarded=False, folder=folder) as server:
        writers = Writers()
        writers.fill()
        assert all(writers.refusals.values()), writers.refusals
        # Nobody has read before, and what reading needs is not to be written first.
        writers.check()
        # Whoever gives room back is let through.
        writers.take(2)
        writers.drop_item()
        writers.drop_object()
        server.kill()
        writers.check()
        # Nobody starts anything again: what is deleted makes room.
        while len(writers.acknowledged["objects"]) > 5:
            writers.drop_object()
        writers.take(10)
        writers.kinesis.delete_stream(StreamName="full")
        del writers.acknowledged["records"]
        for what in ["messages", "items", "objects", "deliveries"]:
            eventually(lambda: writers.write(what, 10_000), f"{what} are written again")
        server.kill()
        writers.check()
        left = set(writers.acknowledged["messages"])
        assert len(left) > 100
        writers.take(1_000)
        assert not writers.acknowledged["messages"], "messages are lost"
        # What waits for its delivery stands between all else, whose room is not free before it. A larger disk helps.
        subprocess.run(["mount", "-o", "remount,size=1400m", folder], check=True)
        eventually(writers.delivered, "everything is delivered", 30)
        assert writers.acknowledged["deliveries"] <= writers.lake()


def consumer(server, stream):
    """A worker, and what it has read of a stream, a line each."""
    worker = subprocess.Popen(
        [BINARY, "consumer", "run", f"{stream}-readers", stream, "--data", os.path.join(server.folder.name, "data")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = []
    threading.Thread(target=lambda: said.extend(worker.stdout), daemon=True).start()
    return worker, said


# Seconds. A message is hidden for less than the server stands still.
VISIBILITY = 3


class Load:
    """Clients that write, receive and delete for as long as they may, and try again as clients do."""

    def __init__(self, server):
        kinesis, sqs = client("kinesis"), client("sqs")
        kinesis.create_stream(StreamName="stood", ShardCount=2)
        self.queue = sqs.create_queue(QueueName="stood", Attributes={"VisibilityTimeout": str(VISIBILITY)})["QueueUrl"]
        client("s3").create_bucket(Bucket="stood")
        self.stop = threading.Event()
        self.failures, self.records, self.sent, self.received, self.deleted, self.objects = [], {}, set(), set(), set(), set()
        self.workers = [consumer(server, "stood") for _ in range(2)]
        loads = [self.put_records, self.put_records, self.send, self.receive, self.receive, self.put_objects]
        self.threads = [threading.Thread(target=self.go, args=(load, number)) for number, load in enumerate(loads)]
        for thread in self.threads:
            thread.start()

    def go(self, load, number):
        step = load(number)
        while not self.stop.is_set():
            try:
                next(step)
            except (BotoCoreError, ClientError) as error:
                self.failures.append(error)
                step = load(f"{number}-{len(self.failures)}")

    def put_records(self, worker):
        kinesis, number = client("kinesis", attempts=2, timeout=1), 0
        while True:
            name = f"{worker}/{number}"
            number += 1
            self.records[name] = kinesis.put_record(StreamName="stood", Data=name, PartitionKey=str(worker))["SequenceNumber"]
            yield

    def send(self, worker):
        sqs, number = client("sqs", attempts=2, timeout=1), 0
        while True:
            name = f"{worker}/{number}"
            number += 1
            sqs.send_message(QueueUrl=self.queue, MessageBody=name)
            self.sent.add(name)
            yield

    def receive(self, _):
        sqs = client("sqs", attempts=2, timeout=2)
        while True:
            before, began = set(self.deleted), time.monotonic()
            answer = sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in answer.get("Messages", []):
                assert message["MessageId"] not in before, "what was deleted came back"
                self.received.add(message["Body"])
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
                # What was visible again meanwhile may be somebody else's, to whom an old receipt leaves it.
                if time.monotonic() - began < VISIBILITY:
                    self.deleted.add(message["MessageId"])
            yield

    def put_objects(self, worker):
        s3, number = client("s3", attempts=2, timeout=1), 0
        while True:
            name = f"{worker}/{number}"
            number += 1
            s3.put_object(Bucket="stood", Key=name, Body=name.encode() * 1_000)
            self.objects.add(name)
            yield

    def counts(self):
        return [len(found) for found in (self.records, self.sent, self.received, self.objects)]

    def grows(self):
        """Waits until every client has been answered some times more."""
        before = self.counts()
        eventually(lambda: all(now > then + 5 for now, then in zip(self.counts(), before)), "everybody is answered")

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


@case
def a_server_that_stands_still_loses_nothing(server):
    load = Load(server)
    # Three attempts of a second, with at most three seconds between them, are over before the second time is.
    for seconds in [2, 7]:
        load.grows()
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        server.process.send_signal(signal.SIGCONT)
    load.grows()
    load.end()
    assert load.failures, "nobody has noticed"
    assert server.process.poll() is None
    sqs, s3 = client("sqs"), client("s3")

    def left():
        for message in sqs.receive_message(QueueUrl=load.queue, MaxNumberOfMessages=10).get("Messages", []):
            assert message["MessageId"] not in load.deleted, "what was deleted came back"
            sqs.delete_message(QueueUrl=load.queue, ReceiptHandle=message["ReceiptHandle"])
            load.received.add(message["Body"])
        return load.sent <= load.received

    eventually(left, "every message is received")
    for name in load.objects:
        assert s3.get_object(Bucket="stood", Key=name)["Body"].read() == name.encode() * 1_000, name
    # Some records are there twice, since the answer to the first was lost. The workers read them all, too.
    eventually(lambda: set(load.records) <= {line.strip() for _, said in load.workers for line in said}, "every record is read", 60)
    for worker, _ in load.workers:
        assert worker.poll() is None, "a worker has given up"
        worker.terminate()
        assert worker.wait(20) == 0


SUBSCRIBER = """
import boto3, sys
kinesis = boto3.client("kinesis")
answer = kinesis.subscribe_to_shard(
    ConsumerARN=sys.argv[1], ShardId="shardId-000000000000", StartingPosition={"Type": "TRIM_HORIZON"})
for event in answer["EventStream"]:
    print(len(event["SubscribeToShardEvent"]["Records"]), flush=True)
"""

READER = """
import boto3, hashlib, sys
body = boto3.client("s3").get_object(Bucket="still", Key="large")["Body"]
digest = hashlib.md5(body.read(1 << 20))
print("begun", flush=True)
for piece in body.iter_chunks(1 << 20):
    digest.update(piece)
print(digest.hexdigest(), flush=True)
"""


@case
def clients_that_stand_still_hold_nobody_up(server):
    kinesis, s3 = client("kinesis"), client("s3")
    kinesis.create_stream(StreamName="still", ShardCount=1)
    arn = kinesis.describe_stream_summary(StreamName="still")["StreamDescriptionSummary"]["StreamARN"]
    s3.create_bucket(Bucket="still")
    large = os.urandom(MIB) * 64
    s3.put_object(Bucket="still", Key="large", Body=large)
    scripts = [[SUBSCRIBER, kinesis.register_stream_consumer(StreamARN=arn, ConsumerName=f"c{n}")["Consumer"]["ConsumerARN"]]
               for n in range(4)] + [[READER]] * 4
    kinesis.put_record(StreamName="still", Data=b"first", PartitionKey="k")
    children = [subprocess.Popen([sys.executable, "-c", *script], stdout=subprocess.PIPE, text=True) for script in scripts]
    try:
        for child in children:
            assert child.stdout.readline(), "it has begun"
            child.send_signal(signal.SIGSTOP)
        slowest = 0
        for _ in range(120):
            began = time.monotonic()
            kinesis.put_record(StreamName="still", Data=os.urandom(MIB - 1), PartitionKey="k")
            s3.get_object(Bucket="still", Key="large", Range="bytes=0-99999")["Body"].read()
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 5, f"others were held up for {slowest:.1f} s"
        peak = server.memory("VmHWM")
        assert peak < 160 << 10, f"{peak} KiB"
        for child in children:
            child.send_signal(signal.SIGCONT)
        for child in children[4:]:
            assert child.communicate(timeout=60)[0].strip() == hashlib.md5(large).hexdigest()
        for child in children[:4]:
            seen = 0
            while seen < 120:
                seen += int(child.stdout.readline())
    finally:
        for child in children:
            child.kill()
            child.wait()


@case
def a_message_that_is_sent_again_after_a_crash_comes_once(server):
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="once.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]

    def send(number):
        sqs.send_message(QueueUrl=url, MessageBody=str(number), MessageGroupId=str(number % 3), MessageDeduplicationId=str(number))

    acknowledged, unknown = through_crashes(server, send)
    for number in acknowledged + unknown:
        send(number)
    found = []
    while got := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        found += [int(message["Body"]) for message in got]
        for message in got:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert sorted(found) == sorted(acknowledged + unknown)
    for group in range(3):
        told = [number for number in found if number in set(acknowledged) and number % 3 == group]
        assert told == sorted(told), "in the order of the group"


@case
def an_upload_is_completed_or_still_there_after_a_crash(server):
    s3 = client("s3")
    s3.create_bucket(Bucket="halves")
    halves = [os.urandom(5 * MIB), b"the end"]
    whole, outcomes = b"".join(halves), []

    def complete(arguments, outcome):
        try:
            outcome.append(s3.complete_multipart_upload(**arguments)["ETag"])
        except BotoCoreError:
            pass

    for number in range(16):
        key = {"Bucket": "halves", "Key": str(number)}
        upload = {**key, "UploadId": s3.create_multipart_upload(**key)["UploadId"]}
        tags = [s3.upload_part(**upload, PartNumber=n, Body=body)["ETag"] for n, body in enumerate(halves, 1)]
        parts = {"Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]}
        outcome = []
        thread = threading.Thread(target=complete, args=({**upload, "MultipartUpload": parts}, outcome))
        thread.start()
        time.sleep(number / 10_000)
        server.kill()
        thread.join()
        there = "Contents" in s3.list_objects_v2(Bucket="halves", Prefix=str(number))
        waiting = any(entry["Key"] == str(number) for entry in s3.list_multipart_uploads(Bucket="halves").get("Uploads", []))
        outcomes.append((bool(outcome), there, waiting))
        assert there != waiting and (there or not outcome), (number, outcomes)
        if waiting:
            s3.complete_multipart_upload(**upload, MultipartUpload=parts)
        assert s3.get_object(**key)["Body"].read() == whole, number
        s3.delete_object(**key)


@case
def records_are_delivered_once_whenever_the_server_dies(server):
    firehose, s3 = client("firehose"), client("s3")
    s3.create_bucket(Bucket="shaken-lake")
    firehose.create_delivery_stream(DeliveryStreamName="shaken", ExtendedS3DestinationConfiguration={
        "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::shaken-lake",
        "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 1}})

    def put(number):
        data = f"{number} ".encode() + b"x" * 30_000 + b"\n"
        firehose.put_record(DeliveryStreamName="shaken", Record={"Data": data})

    acknowledged, unknown = through_crashes(server, put, seconds=8)
    firehose.delete_delivery_stream(DeliveryStreamName="shaken")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="shaken-lake")
    bodies = [s3.get_object(Bucket="shaken-lake", Key=entry["Key"])["Body"].read()
              for page in pages for entry in page["Contents"]]
    assert len(bodies) > 3, "it was delivered while it was written"
    found = [int(line.split()[0]) for line in b"".join(bodies).splitlines()]
    assert len(found) == len(set(found)), "a record is there twice"
    assert set(acknowledged) <= set(found) <= set(acknowledged) | set(unknown)


def connect(server, begun=b""):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(begun)
    return connection


def processor_seconds(server):
    """The time that the server has had a processor."""
    with open(f"/proc/{server.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


ASKED = (b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\n"
         b"x-amz-target: AmazonSQS.ListQueues\r\ncontent-length: 2\r\n\r\n{}")


@case
def files_that_have_run_out_are_waited_for(_):
    with environment(), Server(guarded=False) as server:
        s3, pid = client("s3"), server.process.pid
        s3.create_bucket(Bucket="files")
        allowed = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (files(server) + 3, allowed[1]))
        waiting = [connect(server, ASKED) for _ in range(3 + 20)]
        # Those that came in are answered and go, so the others come in, too, some later than they would.
        for connection in waiting:
            assert connection.recv(100).startswith(b"HTTP/1.1 200"), "everybody is answered"
        held = [connect(server) for _ in range(3 + 20)]
        eventually(lambda: files(server) >= resource.prlimit(pid, resource.RLIMIT_NOFILE)[0], "no file is left")
        before = processor_seconds(server)
        time.sleep(2)
        assert processor_seconds(server) - before < 0.5, "it does not wait, it spins"
        s3.put_object(Bucket="files", Key="small", Body=b"x")
        try:
            # It lies in a file of its own.
            s3.put_object(Bucket="files", Key="large", Body=bytes(MIB))
            raise AssertionError("there was a file left")
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ServiceUnavailable", error
            assert "no file can be opened" in error.response["Error"]["Message"], error
        resource.prlimit(pid, resource.RLIMIT_NOFILE, allowed)
        s3.put_object(Bucket="files", Key="large", Body=bytes(MIB))
        assert s3.get_object(Bucket="files", Key="large")["Body"].read() == bytes(MIB)
        for connection in held:
            connection.sendall(ASKED)
            assert connection.recv(100).startswith(b"HTTP/1.1 200"), "everybody is answered"


@case
def thousands_that_ask_for_nothing_are_let_go(_):
    """As many connections as a server with its files takes, half of them with a head that is begun; who comes then is told,
    and when their time is over all go."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with environment(), Server(guarded=False) as server:
        sqs = client("sqs")
        sqs.create_queue(QueueName="asked")
        pid, allowed = server.process.pid, resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        limit = max(min(10_000, most - 300) - 8, 100)
        began, before = time.monotonic(), server.memory("RssAnon")
        idle = [connect(server) for _ in range(limit // 2)]
        eventually(lambda: files(server) > limit // 2, "they are in")
        between = server.memory("RssAnon")
        half = [connect(server, b"POST / HTTP/1.1\r\nhost: localhost\r\nx-amz-tar") for _ in range(limit // 2)]
        eventually(lambda: files(server) > limit - 10, "they are in")
        time.sleep(1)
        after = server.memory("RssAnon")
        assert time.monotonic() - began < 25, "they were slow to come in"
        asked = time.monotonic()
        client("sqs").list_queues()
        assert time.monotonic() - asked < 2, "others wait"
        print(f"KiB for each connection: {(between - before) / len(idle):.1f} idle, {(after - between) / len(half):.1f} begun")
        assert between - before < 4 * len(idle) + 4_096 and after - between < 24 * len(half) + 4_096
        eventually(lambda: files(server) < 100, "they are let go", 45)
        client("sqs").list_queues()
        # A begun request is not dropped without a word, and a connection on which nothing was asked is.
        assert half[0].recv(100)[:12] in (b"", b"HTTP/1.1 408") and idle[0].recv(100) == b""


if __name__ == "__main__":
    run()
