"""The AWS CLI, version 1 and version 2, for every service, through crashes between calls and during them.

Each service has one case, which runs with both, or with the one in COMMAND_LINE.
"""

import base64
import json
import os
import tempfile
import time
import urllib.request

from command_lines import command_lines
from harness import Skipped, case, eventually, offers_firehose, run, skipped

MIB = 1 << 20


def both(function):
    """A case that runs with both versions."""
    def each(server):
        lines = command_lines(server)
        for aws in lines:
            function(server, aws)
        if not lines:
            raise Skipped

    each.__name__ = function.__name__
    return case(each)


@both
def versions(_, aws):
    said = aws("--version")
    assert said.startswith(f"aws-cli/{aws.name[1]}."), said


@both
def kinesis(server, aws):
    name = aws.named("stream")
    stream = ("--stream-name", name)
    aws("kinesis", "create-stream", *stream, "--shard-count", "2")
    aws("kinesis", "wait", "stream-exists", *stream)
    put = aws("kinesis", "put-record", *stream, "--data", aws.blob("hello"), "--partition-key", "k")
    records = json.dumps([{"Data": aws.blob(str(number)), "PartitionKey": "k"} for number in range(20)])
    assert aws("kinesis", "put-records", *stream, "--records", records)["FailedRecordCount"] == 0
    server.kill()

    def read(shard):
        iterator = aws("kinesis", "get-shard-iterator", *stream, "--shard-id", shard, "--shard-iterator-type", "TRIM_HORIZON")
        page = aws("kinesis", "get-records", "--shard-iterator", iterator["ShardIterator"])
        return [base64.b64decode(record["Data"]).decode() for record in page["Records"]]

    assert read(put["ShardId"]) == ["hello", *map(str, range(20))]
    with server.dying(every=0.7):
        acknowledged = [str(number) for number in range(100, 104) if aws(
            "kinesis", "put-record", *stream, "--data", aws.blob(str(number)), "--partition-key", "k")]
    found = read(put["ShardId"])[21:]
    # What was tried again may be there twice.
    assert list(dict.fromkeys(found)) == acknowledged, found
    aws("kinesis", "split-shard", *stream, "--shard-to-split", "shardId-000000000000", "--new-starting-hash-key", "1000")
    assert len(aws("kinesis", "list-shards", *stream)["Shards"]) == 4
    aws("kinesis", "add-tags-to-stream", *stream, "--tags", "a=1")
    assert aws("kinesis", "list-tags-for-stream", *stream)["Tags"] == [{"Key": "a", "Value": "1"}]
    summary = aws("kinesis", "describe-stream-summary", *stream)["StreamDescriptionSummary"]
    consumer = aws("kinesis", "register-stream-consumer", "--stream-arn", summary["StreamARN"], "--consumer-name", "app")
    assert consumer["Consumer"]["ConsumerName"] == "app" and summary["OpenShardCount"] == 3
    assert name in aws("kinesis", "list-streams")["StreamNames"]
    aws("kinesis", "delete-stream", *stream, "--enforce-consumer-deletion")
    assert "ResourceNotFoundException" in aws("kinesis", "describe-stream", "--stream-name", "none", fails=True)


@both
def sqs(server, aws):
    url = aws("sqs", "create-queue", "--queue-name", aws.named("queue"), "--attributes", "VisibilityTimeout=600")["QueueUrl"]
    queue = ("--queue-url", url)
    attribute = json.dumps({"colour": {"DataType": "String", "StringValue": "grün"}})
    sent = aws("sqs", "send-message", *queue, "--message-body", "ü <&>", "--message-attributes", attribute)
    entries = json.dumps([{"Id": str(number), "MessageBody": f"message {number}"} for number in range(9)])
    assert len(aws("sqs", "send-message-batch", *queue, "--entries", entries)["Successful"]) == 9
    server.kill()
    got = aws("sqs", "receive-message", *queue, "--max-number-of-messages", "10", "--attribute-names", "All",
              "--message-attribute-names", "All", "--wait-time-seconds", "5")["Messages"]
    first = next(message for message in got if message["MessageId"] == sent["MessageId"])
    assert first["Body"] == "ü <&>" and first["MessageAttributes"]["colour"]["StringValue"] == "grün", first
    assert len(got) == 10 and first["Attributes"]["ApproximateReceiveCount"] == "1"
    aws("sqs", "delete-message", *queue, "--receipt-handle", first["ReceiptHandle"])
    aws("sqs", "change-message-visibility", *queue, "--receipt-handle", got[1]["ReceiptHandle"], "--visibility-timeout", "0")
    server.kill()
    counts = aws("sqs", "get-queue-attributes", *queue, "--attribute-names", "All")["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "1" and counts["ApproximateNumberOfMessagesNotVisible"] == "8", counts
    with server.dying(every=0.7):
        ids = {aws("sqs", "send-message", *queue, "--message-body", str(number))["MessageId"] for number in range(4)}
    found = aws("sqs", "receive-message", *queue, "--max-number-of-messages", "10")["Messages"]
    assert ids <= {message["MessageId"] for message in found}, (ids, found)
    aws("sqs", "tag-queue", *queue, "--tags", "team=red")
    assert aws("sqs", "list-queue-tags", *queue)["Tags"] == {"team": "red"}
    assert url in aws("sqs", "list-queues")["QueueUrls"]
    fifo = aws("sqs", "create-queue", "--queue-name", aws.named("queue") + ".fifo", "--attributes",
               "FifoQueue=true,ContentBasedDeduplication=true")["QueueUrl"]
    for body in "1213":
        aws("sqs", "send-message", "--queue-url", fifo, "--message-body", body, "--message-group-id", "g")
    got = aws("sqs", "receive-message", "--queue-url", fifo, "--max-number-of-messages", "10")["Messages"]
    assert [message["Body"] for message in got] == ["1", "2", "3"], got
    aws("sqs", "purge-queue", *queue)
    aws("sqs", "delete-queue", *queue)
    assert "NonExistentQueue" in aws("sqs", "get-queue-url", "--queue-name", "none", fails=True)


@both
def dynamodb(server, aws):
    name = aws.named("table")
    table = ("--table-name", name)
    made = aws("dynamodb", "create-table", *table, "--billing-mode", "PAY_PER_REQUEST",
               "--attribute-definitions", "AttributeName=id,AttributeType=S", "AttributeName=at,AttributeType=N",
               "--key-schema", "AttributeName=id,KeyType=HASH", "AttributeName=at,KeyType=RANGE",
               "--stream-specification", "StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES")["TableDescription"]
    aws("dynamodb", "wait", "table-exists", *table)
    item = lambda at, **more: json.dumps({"id": {"S": "a"}, "at": {"N": str(at)}, **more})
    aws("dynamodb", "put-item", *table, "--item", item(1, b={"B": aws.blob("bytes")}, s={"SS": ["x", "y"]}))
    update = aws("dynamodb", "update-item", *table, "--key", item(1), "--update-expression", "SET n = if_not_exists(n, :z) + :o",
                 "--expression-attribute-values", '{":z": {"N": "0"}, ":o": {"N": "1"}}', "--return-values", "UPDATED_NEW")
    assert update["Attributes"] == {"n": {"N": "1"}}, update
    refused = aws("dynamodb", "put-item", *table, "--item", item(1), "--condition-expression", "attribute_not_exists(id)",
                  fails=True)
    assert "ConditionalCheckFailedException" in refused, refused
    server.kill()
    got = aws("dynamodb", "get-item", *table, "--key", item(1), "--consistent-read")["Item"]
    assert got["n"] == {"N": "1"} and sorted(got["s"]["SS"]) == ["x", "y"] and base64.b64decode(got["b"]["B"]) == b"bytes", got
    puts = [{"PutRequest": {"Item": json.loads(item(at))}} for at in range(2, 20)]
    assert aws("dynamodb", "batch-write-item", "--request-items", json.dumps({name: puts}))["UnprocessedItems"] == {}
    with server.dying(every=0.7):
        for at in range(20, 24):
            aws("dynamodb", "transact-write-items", "--client-request-token", f"{aws.name}-{at}", "--transact-items", json.dumps([
                {"Put": {"TableName": name, "Item": json.loads(item(at))}},
                {"Update": {"TableName": name, "Key": json.loads(item(1)), "UpdateExpression": "ADD n :o",
                            "ExpressionAttributeValues": {":o": {"N": "1"}}}}]))
    found = aws("dynamodb", "query", *table, "--key-condition-expression", "id = :id AND #at BETWEEN :a AND :b",
                "--expression-attribute-names", '{"#at": "at"}', "--no-scan-index-forward",
                "--expression-attribute-values", '{":id": {"S": "a"}, ":a": {"N": "5"}, ":b": {"N": "23"}}')
    assert [int(one["at"]["N"]) for one in found["Items"]] == list(range(23, 4, -1)), found
    assert aws("dynamodb", "get-item", *table, "--key", item(1))["Item"]["n"] == {"N": "5"}, "a token counts once"
    assert aws("dynamodb", "scan", *table, "--select", "COUNT")["Count"] == 23
    assert name in aws("dynamodb", "list-tables")["TableNames"]

    arn = made["LatestStreamArn"]
    assert arn in [one["StreamArn"] for one in aws("dynamodbstreams", "list-streams", *table)["Streams"]]
    changes = []
    for shard in aws("dynamodbstreams", "describe-stream", "--stream-arn", arn)["StreamDescription"]["Shards"]:
        iterator = aws("dynamodbstreams", "get-shard-iterator", "--stream-arn", arn, "--shard-id", shard["ShardId"],
                       "--shard-iterator-type", "TRIM_HORIZON")["ShardIterator"]
        changes += aws("dynamodbstreams", "get-records", "--shard-iterator", iterator)["Records"]
    assert len(changes) == 2 + 18 + 8, len(changes)
    # A table of this kind is in no keyspace.
    if aws.name == "v1":
        assert aws("keyspacesstreams", "list-streams", "--keyspace-name", "shop")["streams"] == []
    else:
        skipped("Keyspaces Streams by version 2 of the AWS CLI, which is older than the service")
    aws("dynamodb", "delete-table", *table)
    assert "ResourceNotFoundException" in aws("dynamodb", "describe-table", "--table-name", "none", fails=True)


@both
def s3(server, aws):
    name = aws.named("bucket")
    aws("s3", "mb", f"s3://{name}")
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *parts: os.path.join(folder, *parts)
        for path in ["a", "sub/b", "sub/deep/ü c"]:
            os.makedirs(os.path.dirname(at("in", path)), exist_ok=True)
            with open(at("in", path), "wb") as file:
                file.write(os.urandom(20 * MIB) if path == "a" else path.encode())
            # S3 tells times in whole seconds, so the client takes a file of this second for younger than its object.
            os.utime(at("in", path), (time.time() - 2,) * 2)
        # Parts and single objects, while the server dies and comes back.
        with server.dying(every=0.8):
            aws("s3", "sync", at("in"), f"s3://{name}/x")
        assert len(aws("s3", "ls", f"s3://{name}/x/", "--recursive").splitlines()) == 3
        assert "PRE sub/" in aws("s3", "ls", f"s3://{name}/x/")
        server.kill()
        aws("s3", "cp", f"s3://{name}/x", at("out"), "--recursive")
        for path in ["a", "sub/b", "sub/deep/ü c"]:
            with open(at("in", path), "rb") as one, open(at("out", path), "rb") as two:
                assert one.read() == two.read(), path
        assert aws("s3", "sync", at("in"), f"s3://{name}/x") == "", "nothing has changed"
        os.remove(at("in", "a"))
        aws("s3", "sync", at("in"), f"s3://{name}/x", "--delete")
        assert "x/a" not in aws("s3", "ls", f"s3://{name}", "--recursive")
        put = aws("s3api", "put-object", "--bucket", name, "--key", "meta", "--body", at("in", "sub/b"), "--metadata", "k=v")
        head = aws("s3api", "head-object", "--bucket", name, "--key", "meta")
        assert head["Metadata"] == {"k": "v"} and head["ETag"] == put["ETag"], head
        aws("s3api", "get-object", "--bucket", name, "--key", "meta", "--range", "bytes=1-2", at("range"))
        with open(at("range"), "rb") as file:
            assert file.read() == b"ub"
    aws("s3", "mv", f"s3://{name}/x/sub/b", f"s3://{name}/y")
    assert aws("s3", "cp", f"s3://{name}/y", "-") == "sub/b"
    url = aws("s3", "presign", f"s3://{name}/y", "--expires-in", "60").strip()
    assert urllib.request.urlopen(url).read() == b"sub/b"
    found = aws("s3api", "list-objects-v2", "--bucket", name, "--query", "Contents[].Key")
    assert found == ["meta", "x/sub/deep/ü c", "y"], found
    assert "NoSuchBucket" in aws("s3", "ls", "s3://no-such-bucket", fails=True)
    assert "BucketNotEmpty" in aws("s3", "rb", f"s3://{name}", fails=True)
    aws("s3", "rm", f"s3://{name}", "--recursive")
    aws("s3", "rb", f"s3://{name}")


@both
def firehose(server, aws):
    if not offers_firehose():
        return
    name = aws.named("delivery")
    aws("s3", "mb", f"s3://{name}")
    to = {"RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": f"arn:aws:s3:::{name}",
          # The older version knows no shorter one.
          "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 1 if aws.name == "v1" else 60}}
    stream = ("--delivery-stream-name", name)
    aws("firehose", "create-delivery-stream", *stream, "--extended-s3-destination-configuration", json.dumps(to))
    assert aws("firehose", "put-record", *stream, "--record", json.dumps({"Data": aws.blob("one\n")}))["RecordId"]
    server.kill()
    batch = json.dumps([{"Data": aws.blob(f"{number}\n")} for number in range(5)])
    assert aws("firehose", "put-record-batch", *stream, "--records", batch)["FailedPutCount"] == 0

    def delivered():
        keys = [line.split()[-1] for line in aws("s3", "ls", f"s3://{name}", "--recursive").splitlines()]
        return sorted("".join(str(aws("s3", "cp", f"s3://{name}/{key}", "-")) for key in keys).split()) == [*"01234", "one"]

    eventually(delivered, "all records are in the bucket", seconds=120)
    aws("firehose", "delete-delivery-stream", *stream)
    assert "ResourceNotFoundException" in aws(
        "firehose", "describe-delivery-stream", "--delivery-stream-name", "none", fails=True)


@both
def around(server, aws):
    name = aws.named("secret")
    made = aws("secretsmanager", "create-secret", "--name", name, "--secret-string", "one")
    aws("secretsmanager", "put-secret-value", "--secret-id", name, "--secret-string", "two")
    server.kill()
    secret = ("--secret-id", made["ARN"])
    assert aws("secretsmanager", "get-secret-value", *secret)["SecretString"] == "two"
    assert aws("secretsmanager", "get-secret-value", *secret, "--version-stage", "AWSPREVIOUS")["SecretString"] == "one"
    assert name in [one["Name"] for one in aws("secretsmanager", "list-secrets")["SecretList"]]
    aws("secretsmanager", "delete-secret", *secret, "--force-delete-without-recovery")
    assert "ResourceNotFoundException" in aws("secretsmanager", "get-secret-value", *secret, fails=True)
    assert aws("sts", "get-caller-identity")["Account"] == "000000000000"
    aws("cloudwatch", "put-metric-data", "--namespace", name, "--metric-name", "m", "--value", "2.5", "--unit", "Seconds")
    with open(os.path.join(server.folder.name, "data", "LOCK")) as lock:
        monitor = next(line.split()[1] for line in lock if line.startswith("monitor "))

    def shown():
        with urllib.request.urlopen(f"http://{monitor}/metrics") as answer:
            return f'namespace="{name}"' in answer.read().decode()

    eventually(shown, "the figure among the metrics")


run()
