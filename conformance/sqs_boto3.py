"""SQS by boto3: every operation, long polling, FIFO, dead letters and their way back, errors, and a crash in the middle.

The same cases run with a botocore from before November 2023, which speaks SQS in forms and XML: whichever comes first on
PYTHONPATH is used.
"""

import hashlib
import json
import os
import threading
import time

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import case, eventually, run


def client():
    config = Config(retries={"max_attempts": 0, "mode": "standard"}, read_timeout=40, parameter_validation=False)
    session = botocore.session.get_session()
    return session.create_client("sqs", region_name="us-east-1", config=config, endpoint_url=os.environ["AWS_ENDPOINT_URL"])


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
        assert error.response["Error"]["Message"], error
        return error
    raise AssertionError(f"{code} was expected of {arguments}")


def make(name, **attributes):
    sqs = client()
    return sqs, sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def attributes(sqs, url):
    return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]


def receive(sqs, url, **more):
    return sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"],
                               MessageAttributeNames=["All"], **more).get("Messages", [])


@case
def queues(server):
    sqs, url = make("conformance", VisibilityTimeout="7")
    assert url == f"{server.url}/000000000000/conformance", url
    assert sqs.create_queue(QueueName="conformance")["QueueUrl"] == url
    error = refused("QueueAlreadyExists", sqs.create_queue, QueueName="conformance", Attributes={"VisibilityTimeout": "8"})
    assert isinstance(error, sqs.exceptions.QueueNameExists)
    assert sqs.get_queue_url(QueueName="conformance")["QueueUrl"] == url
    error = refused("AWS.SimpleQueueService.NonExistentQueue", sqs.get_queue_url, QueueName="nothing")
    assert isinstance(error, sqs.exceptions.QueueDoesNotExist)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "3", "KmsMasterKeyId": "alias/k"})
    found = attributes(sqs, url)
    assert found["VisibilityTimeout"] == "7" and found["DelaySeconds"] == "3" and found["KmsMasterKeyId"] == "alias/k"
    assert found["QueueArn"] == "arn:aws:sqs:us-east-1:000000000000:conformance"
    for number in range(5):
        sqs.create_queue(QueueName=f"page-{number}")
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix="page-", PaginationConfig={"PageSize": 2})
    listed = [queue for page in pages for queue in page.get("QueueUrls", [])]
    assert [queue[-1] for queue in listed] == list("01234"), listed
    for queue in [*listed, url]:
        sqs.delete_queue(QueueUrl=queue)
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="page-")


@case
def tags_and_permissions(_):
    sqs, url = make("tagged")
    sqs.tag_queue(QueueUrl=url, Tags={"team": "red", "empty": ""})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "red", "empty": ""}
    sqs.untag_queue(QueueUrl=url, TagKeys=["team"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"empty": ""}
    sqs.add_permission(QueueUrl=url, Label="l", AWSAccountIds=["111111111111"], Actions=["SendMessage", "ReceiveMessage"])
    assert json.loads(attributes(sqs, url)["Policy"])["Statement"][0]["Sid"] == "l"
    sqs.remove_permission(QueueUrl=url, Label="l")
    assert "Policy" not in attributes(sqs, url)


@case
def messages(_):
    sqs, url = make("messages")
    body = "a\r\nb\t<&> ✓ 🦦"
    given = {"text": {"DataType": "String", "StringValue": "é"}, "bytes": {"DataType": "Binary", "BinaryValue": b"\0\xff"},
             "number": {"DataType": "Number.int", "StringValue": "-1.50"}}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}}
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=given, MessageSystemAttributes=trace)
    assert sent["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    got, = receive(sqs, url)
    assert got["Body"] == body and got["MessageId"] == sent["MessageId"]
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"] == digest(given)
    assert sent["MD5OfMessageSystemAttributes"] == digest(trace)
    assert got["MessageAttributes"]["bytes"]["BinaryValue"] == b"\0\xff"
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"
    assert abs(int(got["Attributes"]["SentTimestamp"]) / 1000 - time.time()) < 60
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    again, = receive(sqs, url)
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    assert attributes(sqs, url)["ApproximateNumberOfMessagesNotVisible"] == "0"


def digest(given):
    """The sum as the documentation of SQS describes it."""
    total = hashlib.md5()

    def part(data):
        total.update(len(data).to_bytes(4, "big") + data)
    for name in sorted(given):
        value = given[name]
        part(name.encode())
        part(value["DataType"].encode())
        if "StringValue" in value:
            total.update(b"\1")
            part(value["StringValue"].encode())
        else:
            total.update(b"\2")
            part(value["BinaryValue"])
    return total.hexdigest()


@case
def batches(_):
    sqs, url = make("batches")
    entries = [{"Id": str(number), "MessageBody": f"m{number}"} for number in range(9)] + [{"Id": "bad", "MessageBody": "\1"}]
    result = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert len(result["Successful"]) == 9 and result["Failed"][0]["Code"] == "InvalidMessageContents", result
    got = []
    while len(got) < 9:
        got += receive(sqs, url)
    assert {message["Body"] for message in got} == {f"m{number}" for number in range(9)}
    changes = [{"Id": "a", "ReceiptHandle": got[0]["ReceiptHandle"], "VisibilityTimeout": 60},
               {"Id": "b", "ReceiptHandle": "nonsense", "VisibilityTimeout": 60}]
    result = sqs.change_message_visibility_batch(QueueUrl=url, Entries=changes)
    assert result["Successful"] == [{"Id": "a"}] and result["Failed"][0]["Code"] == "ReceiptHandleIsInvalid", result
    result = sqs.delete_message_batch(
        QueueUrl=url, Entries=[{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(got)])
    assert len(result["Successful"]) == 9 and not result.get("Failed")
    prefix = "AWS.SimpleQueueService."
    refused(prefix + "EmptyBatchRequest", sqs.send_message_batch, QueueUrl=url, Entries=[])
    refused(prefix + "TooManyEntriesInBatchRequest", sqs.send_message_batch, QueueUrl=url,
            Entries=[{"Id": str(n), "MessageBody": "b"} for n in range(11)])
    refused(prefix + "BatchEntryIdsNotDistinct", sqs.send_message_batch, QueueUrl=url,
            Entries=[{"Id": "a", "MessageBody": "b"}] * 2)
    refused(prefix + "InvalidBatchEntryId", sqs.send_message_batch, QueueUrl=url, Entries=[{"Id": "a b", "MessageBody": "b"}])
    refused(prefix + "BatchRequestTooLong", sqs.send_message_batch, QueueUrl=url,
            Entries=[{"Id": "a", "MessageBody": "x" * 600_000}, {"Id": "b", "MessageBody": "x" * 600_000}])


@case
def long_polling(_):
    sqs, url = make("polled")
    began = time.monotonic()
    assert receive(sqs, url, WaitTimeSeconds=1) == [] and time.monotonic() - began >= 0.9
    sender = threading.Timer(0.3, lambda: client().send_message(QueueUrl=url, MessageBody="at last"))
    sender.start()
    assert [message["Body"] for message in receive(sqs, url, WaitTimeSeconds=20)] == ["at last"]
    sender.join()


@case
def fifo(_):
    sqs, url = make("ordered.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    sent = [sqs.send_message(QueueUrl=url, MessageBody=f"m{n % 5}", MessageGroupId=f"g{n % 2}") for n in (0, 2, 4, 1, 3, 0)]
    numbers = [int(message["SequenceNumber"]) for message in sent]
    assert numbers[:5] == sorted(set(numbers[:5])) and numbers[5] == numbers[0]
    got = receive(sqs, url, ReceiveRequestAttemptId="a")
    by_group = {}
    for message in got:
        by_group.setdefault(message["Attributes"]["MessageGroupId"], []).append(message["Body"])
    assert all(bodies == sorted(bodies) for bodies in by_group.values()), by_group
    repeated = receive(sqs, url, ReceiveRequestAttemptId="a")
    assert [m["ReceiptHandle"] for m in repeated] == [m["ReceiptHandle"] for m in got]
    refused("MissingParameter", sqs.send_message, QueueUrl=url, MessageBody="m")
    refused("InvalidParameterValue", sqs.send_message, QueueUrl=url, MessageBody="m", MessageGroupId="g", DelaySeconds=5)
    assert attributes(sqs, url)["FifoQueue"] == "true"


@case
def dead_letters(_):
    sqs, dead = make("dead")
    arn = attributes(sqs, dead)["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    _, live = make("live", RedrivePolicy=policy, VisibilityTimeout="0")
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [live]
    sqs.send_message(QueueUrl=live, MessageBody="poison")
    assert len(receive(sqs, live)) == 1 and receive(sqs, live) == []
    buried, = receive(sqs, dead, VisibilityTimeout=0)
    assert buried["Attributes"]["DeadLetterQueueSourceArn"].endswith(":live")
    assert buried["Attributes"]["ApproximateReceiveCount"] == "2"
    refused("ResourceNotFoundException", sqs.start_message_move_task, SourceArn=arn + "x")
    handle = sqs.start_message_move_task(SourceArn=arn, MaxNumberOfMessagesPerSecond=100)["TaskHandle"]
    tasks = lambda: sqs.list_message_move_tasks(SourceArn=arn, MaxResults=10)["Results"]
    task = eventually(lambda: [task for task in tasks() if task["Status"] != "RUNNING"], "the move ends")[0]
    assert task["Status"] == "COMPLETED" and task["ApproximateNumberOfMessagesMoved"] == 1, task
    refused("ResourceNotFoundException", sqs.cancel_message_move_task, TaskHandle=handle)
    assert [message["Body"] for message in receive(sqs, live, WaitTimeSeconds=10)] == ["poison"]

    for number in range(100):
        if number % 10 == 0:
            sqs.send_message_batch(QueueUrl=dead, Entries=[{"Id": str(n), "MessageBody": "m"} for n in range(10)])
    handle = sqs.start_message_move_task(SourceArn=arn, DestinationArn=attributes(sqs, live)["QueueArn"],
                                         MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    refused("InvalidParameterValue", sqs.start_message_move_task, SourceArn=arn)
    assert tasks()[0]["Status"] == "RUNNING" and tasks()[0]["TaskHandle"] == handle
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] < 100
    assert tasks()[0]["Status"] == "CANCELLED"


@case
def purge(_):
    sqs, url = make("purged")
    sqs.send_message(QueueUrl=url, MessageBody="gone")
    sqs.purge_queue(QueueUrl=url)
    assert receive(sqs, url) == []
    refused("AWS.SimpleQueueService.PurgeQueueInProgress", sqs.purge_queue, QueueUrl=url)


@case
def errors(_):
    sqs, url = make("errors")
    refused("InvalidParameterValue", sqs.create_queue, QueueName="a b")
    refused("InvalidParameterValue", sqs.create_queue, QueueName="x" * 81)
    refused("InvalidAttributeName", sqs.create_queue, QueueName="a", Attributes={"Colour": "red"})
    refused("InvalidAttributeValue", sqs.create_queue, QueueName="a", Attributes={"DelaySeconds": "901"})
    refused("InvalidMessageContents", sqs.send_message, QueueUrl=url, MessageBody="\ufffe")
    refused("InvalidParameterValue", sqs.send_message, QueueUrl=url, MessageBody="x" * ((1 << 20) + 1))
    refused("InvalidParameterValue", sqs.receive_message, QueueUrl=url, MaxNumberOfMessages=11)
    refused("ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=url, ReceiptHandle="forged")
    sqs.send_message(QueueUrl=url, MessageBody="x" * (1 << 20))
    got, = receive(sqs, url)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=5)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
    error = refused("InvalidParameterValue", sqs.change_message_visibility, QueueUrl=url,
                    ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=5)
    assert error.response["Error"]["Message"] == (
        f"Value {got['ReceiptHandle']} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not "
        "available for visibility timeout change."), error


@case
def killed_in_the_middle(server):
    sqs, url = make("durable", VisibilityTimeout="600")
    sqs.tag_queue(QueueUrl=url, Tags={"a": "b"})
    acknowledged, stop = set(), threading.Event()

    def send(worker):
        mine, number = client(), 0
        while not stop.is_set():
            bodies = {str(n): f"{worker}-{number}-{n}" for n in range(10)}
            number += 1
            try:
                entries = [{"Id": id, "MessageBody": body} for id, body in bodies.items()]
                result = mine.send_message_batch(QueueUrl=url, Entries=entries)
                acknowledged.update(bodies[entry["Id"]] for entry in result["Successful"])
            except Exception:
                time.sleep(0.02)

    senders = [threading.Thread(target=send, args=(worker,)) for worker in range(3)]
    for sender in senders:
        sender.start()
    held = eventually(lambda: receive(sqs, url), "messages arrive")
    deleted = held[0]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=deleted["ReceiptHandle"])
    for _ in range(2):
        seen = len(acknowledged)
        eventually(lambda: len(acknowledged) > seen + 50, "messages are acknowledged")
        server.kill()
    seen = len(acknowledged)
    eventually(lambda: len(acknowledged) > seen, "the server takes messages again")
    stop.set()
    for sender in senders:
        sender.join()
    found, hidden = set(), {message["Body"] for message in held}
    while True:
        got = receive(sqs, url)
        if not got:
            break
        found |= {message["Body"] for message in got}
        sqs.delete_message_batch(
            QueueUrl=url, Entries=[{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(got)])
    assert acknowledged <= found | hidden, sorted(acknowledged - found - hidden)[:5]
    assert not found & hidden, "what was in flight or deleted came back early"
    for message in held[1:]:
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    back = {message["Body"]: message for message in receive(sqs, url)}
    assert set(back) == hidden - {deleted["Body"]}
    assert all(message["Attributes"]["ApproximateReceiveCount"] == "2" for message in back.values())
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "b"}


run()
