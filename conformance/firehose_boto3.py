"""Firehose by boto3: records come to the bucket, through a crash between the put and the delivery."""

import gzip
import json
import re
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import case, eventually, run


def client(service):
    return boto3.client(service, config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}))


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
        return
    raise AssertionError(f"{code} was expected of {arguments}")


def destination(bucket, **more):
    return {"RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": f"arn:aws:s3:::{bucket}",
            "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 1}, **more}


def objects(bucket):
    s3 = client("s3")
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def lines(bucket):
    return b"".join(objects(bucket).values()).decode().splitlines()


@case
def records_come_to_the_bucket(_):
    firehose = client("firehose")
    client("s3").create_bucket(Bucket="lake")
    made = firehose.create_delivery_stream(
        DeliveryStreamName="clicks", S3DestinationConfiguration=destination("lake", Prefix="raw/"))
    assert made["DeliveryStreamARN"].endswith(":deliverystream/clicks"), made
    assert firehose.put_record(DeliveryStreamName="clicks", Record={"Data": b"0\n"})["RecordId"]
    answer = firehose.put_record_batch(
        DeliveryStreamName="clicks", Records=[{"Data": f"{number}\n".encode()} for number in range(1, 500)])
    assert answer["FailedPutCount"] == 0 and len(answer["RequestResponses"]) == 499
    expected = [str(number) for number in range(500)]
    eventually(lambda: lines("lake") == expected, "all records are in the bucket, in order")
    name = re.compile(r"raw/\d{4}/\d\d/\d\d/\d\d/clicks-1-(\d+-){6}[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    assert all(name.fullmatch(key) for key in objects("lake")), objects("lake").keys()


@case
def nothing_is_lost_by_a_crash(server):
    firehose = client("firehose")
    client("s3").create_bucket(Bucket="crashes")
    slow = destination("crashes", BufferingHints={"SizeInMBs": 128, "IntervalInSeconds": 900})
    firehose.create_delivery_stream(DeliveryStreamName="slow", ExtendedS3DestinationConfiguration=slow)
    put = 0
    for _ in range(3):
        for _ in range(5):
            firehose.put_record(DeliveryStreamName="slow", Record={"Data": f"{put}\n".encode()})
            put += 1
        server.kill()
    expected = [str(number) for number in range(put)]
    eventually(lambda: lines("crashes") == expected, "what was acknowledged is in the bucket, once")
    firehose.put_record(DeliveryStreamName="slow", Record={"Data": b"last\n"})
    firehose.delete_delivery_stream(DeliveryStreamName="slow")
    assert lines("crashes") == expected + ["last"]


@case
def a_bucket_may_come_later(_):
    firehose = client("firehose")
    firehose.create_delivery_stream(
        DeliveryStreamName="early", ExtendedS3DestinationConfiguration=destination("later"))
    firehose.put_record(DeliveryStreamName="early", Record={"Data": b"x"})
    time.sleep(2)
    client("s3").create_bucket(Bucket="later")
    eventually(lambda: list(objects("later").values()) == [b"x"], "the record is in the bucket", 30)


@case
def compressed_objects_with_times_in_their_names(_):
    firehose = client("firehose")
    client("s3").create_bucket(Bucket="packed")
    firehose.create_delivery_stream(
        DeliveryStreamName="packed",
        ExtendedS3DestinationConfiguration=destination(
            "packed", CompressionFormat="GZIP", FileExtension=".jsonl.gz",
            Prefix="year=!{timestamp:yyyy}/day=!{timestamp:yyyy-MM-dd}/",
            ErrorOutputPrefix="errors/!{firehose:error-output-type}/"))
    record = json.dumps({"a": 1}).encode() + b"\n"
    firehose.put_record_batch(DeliveryStreamName="packed", Records=[{"Data": record}] * 3)
    found = eventually(lambda: objects("packed"), "the object is in the bucket")
    (key, body), = found.items()
    assert re.match(r"year=\d{4}/day=\d{4}-\d\d-\d\d/packed-1-", key) and key.endswith(".jsonl.gz"), key
    assert gzip.decompress(body) == record * 3


@case
def described_listed_and_tagged(_):
    firehose = client("firehose")
    for name in ["list-a", "list-b", "list-c"]:
        firehose.create_delivery_stream(
            DeliveryStreamName=name, ExtendedS3DestinationConfiguration=destination("lake"),
            Tags=[{"Key": "name", "Value": name}])
    page = firehose.list_delivery_streams(Limit=1, ExclusiveStartDeliveryStreamName="list-a")
    assert page["DeliveryStreamNames"] == ["list-b"] and page["HasMoreDeliveryStreams"], page
    described = firehose.describe_delivery_stream(DeliveryStreamName="list-a")["DeliveryStreamDescription"]
    assert described["DeliveryStreamStatus"] == "ACTIVE" and described["CreateTimestamp"].year > 2000
    s3 = described["Destinations"][0]["ExtendedS3DestinationDescription"]
    assert s3["BufferingHints"] == {"SizeInMBs": 1, "IntervalInSeconds": 1}, s3
    firehose.tag_delivery_stream(DeliveryStreamName="list-a", Tags=[{"Key": "x", "Value": "y"}])
    firehose.untag_delivery_stream(DeliveryStreamName="list-a", TagKeys=["name"])
    tags = firehose.list_tags_for_delivery_stream(DeliveryStreamName="list-a")
    assert tags["Tags"] == [{"Key": "x", "Value": "y"}] and not tags["HasMoreTags"], tags


@case
def what_is_wrong_is_refused(_):
    firehose = client("firehose")
    refused("ResourceNotFoundException", firehose.put_record,
            DeliveryStreamName="none", Record={"Data": b"x"})
    refused("InvalidArgumentException", firehose.create_delivery_stream, DeliveryStreamName="none")
    refused("ResourceInUseException", firehose.create_delivery_stream,
            DeliveryStreamName="clicks", ExtendedS3DestinationConfiguration=destination("lake"))
    refused("InvalidArgumentException", firehose.put_record_batch,
            DeliveryStreamName="clicks", Records=[{"Data": b"x"}] * 501)
    refused("InvalidArgumentException", firehose.put_record,
            DeliveryStreamName="clicks", Record={"Data": b"x" * 1_024_001})
    firehose.put_record(DeliveryStreamName="clicks", Record={"Data": b"x" * 1_024_000})


run()
