"""Keyspaces Streams by boto3: the changes of a table as those of rows, read to the end, through crashes.

Tables of a keyspace are made by CQL, which is not spoken here: the control API makes them, and DynamoDB fills them.
"""

import json
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import case, run, through_crashes


def client(service):
    return boto3.client(service, config=Config(retries={"max_attempts": 0}))


def make(server, table):
    column = lambda name, kind: {"name": name, "kind": kind, "shared": False}
    keyspace = {"keyspace": "shop", "columns": [column("customer", "text"), column("number", "int"), column("total", "decimal")],
                "partition": ["customer"], "clustering": [{"column": "number", "descending": False}]}
    key = {"hash": {"name": "customer", "kind": "S"}, "range": {"name": "number", "kind": "N"}}
    body = json.dumps({"table": table, "call": {"key": key, "changes": "both", "keyspace": keyspace}}).encode()
    request = urllib.request.Request(f"{server.url}/_anabranch/v1/create-table", body, {"content-type": "application/json"})
    assert urllib.request.urlopen(request).status == 200
    return client("keyspacesstreams").list_streams(keyspaceName="shop", tableName=table)["streams"][0]["streamArn"]


def put(table, customer, number, total):
    client("dynamodb").put_item(TableName=table, Item={
        "customer": {"S": customer}, "number": {"N": str(number)}, "total": {"N": str(total)}})


def changes(arn):
    streams = client("keyspacesstreams")
    shards, token = [], {}
    while True:
        page = streams.get_stream(streamArn=arn, **token)
        shards += page["shards"]
        if "nextToken" not in page:
            break
        token = {"nextToken": page["nextToken"]}
    found = []
    for shard in shards:
        iterator = streams.get_shard_iterator(streamArn=arn, shardId=shard["shardId"],
                                              shardIteratorType="TRIM_HORIZON")["shardIterator"]
        while iterator:
            page = streams.get_records(shardIterator=iterator)
            found += page["changeRecords"]
            iterator = page.get("nextShardIterator") if page["changeRecords"] else None
    return found


@case
def rows_are_told_with_their_types(server):
    arn = make(server, "orders")
    put("orders", "ada", 7, 1)
    put("orders", "ada", 7, "2.50")
    client("dynamodb").delete_item(TableName="orders", Key={"customer": {"S": "ada"}, "number": {"N": "7"}})
    server.kill()
    stream = client("keyspacesstreams").get_stream(streamArn=arn)
    assert (stream["keyspaceName"], stream["tableName"], stream["streamStatus"]) == ("shop", "orders", "ENABLED"), stream
    found = changes(arn)
    total = lambda text: {"total": {"value": {"decimalT": text}}}
    cells = [tuple(record.get(image, {}).get("valueCells") for image in ("oldImage", "newImage")) for record in found]
    assert cells == [(None, total("1")), (total("1"), total("2.5")), (total("2.5"), None)], cells
    for record in found:
        assert record["partitionKeys"] == {"customer": {"textT": "ada"}}, record
        assert record["clusteringKeys"] == {"number": {"intT": "7"}} and record["origin"] == "USER", record
    numbers = [record["sequenceNumber"] for record in found]
    assert len(set(numbers)) == 3, numbers


@case
def listings_have_pages(server):
    arns = {make(server, f"paged-{number}") for number in range(5)}
    pages = client("keyspacesstreams").get_paginator("list_streams").paginate(
        keyspaceName="shop", PaginationConfig={"PageSize": 2})
    assert arns <= {stream["streamArn"] for page in pages for stream in page["streams"]}
    try:
        client("keyspacesstreams").get_stream(streamArn=arns.pop()[:-1] + "9")
        raise AssertionError("a stream that is not there")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "ResourceNotFoundException", error


@case
def crashes_lose_no_change(server):
    arn = make(server, "shaken")
    acknowledged, unknown = through_crashes(server, lambda number: put("shaken", str(number), number, number))
    found = [int(record["clusteringKeys"]["number"]["intT"]) for record in changes(arn)]
    assert len(found) == len(set(found)), "each change is told once"
    assert set(acknowledged) <= set(found) <= set(acknowledged) | set(unknown)


run()
