"""The changes of a table as Parquet, read by pyarrow and DuckDB; and `cdc verify`, which finds one wrong row among very many.

ANABRANCH_ROWS says how many: a million, unless somebody has less time.
"""

import http.client
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timezone

import boto3
from botocore.config import Config

from harness import BINARY, case, eventually, run

sys.path.insert(0, os.environ["ANABRANCH_CLIENTS"] + "-columns")
import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

ROWS = int(os.environ.get("ANABRANCH_ROWS", 1_000_000))
WRITERS = 8
# What the comparison may take however many rows there are: bodies of blobs, buffers of files, and the program itself.
VERIFY_MEGABYTES_MAX = 256
VERIFY_SECONDS_MAX = 120

FLOW = """
[[bot]]
name = "{table}-archive"
source = {{ table = "{table}" }}
sink = {{ blobs = "{table}-archive" }}
batch = {{ format = "parquet", records = {records}, seconds = 1 }}
leases = {{ seconds = 1, checkpoint_seconds = 3600 }}
"""

TYPES = {
    "event_id": "string", "event_name": "string", "event_version": "string", "event_source": "string",
    "aws_region": "string", "event_time": "timestamp[ms, tz=UTC]", "keyspace_name": "string", "table_name": "string",
    "shard_id": "string", "sequence_number": "string", "keys": "json", "clustering_keys": "json", "new_image": "json",
    "old_image": "json", "size_bytes": "int64", "stream_view_type": "string", "origin": "string", "user_identity": "json",
}


def client(service):
    return boto3.client(service, config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}))


def prepare(server, name, records):
    """A table whose changes are written down, a bucket for them, and the flow from the one to the other."""
    client("dynamodb").create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    client("s3").create_bucket(Bucket=f"{name}-archive")
    flow = os.path.join(server.folder.name, f"{name}.toml")
    with open(flow, "w") as file:
        file.write(FLOW.format(table=name, records=records))
    return flow


def command(server, *arguments):
    return [BINARY, *arguments, "--data", os.path.join(server.folder.name, "data")]


@contextmanager
def bot(server, flow, end=signal.SIGTERM):
    process = subprocess.Popen(command(server, "run", flow), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "anabranch runs" in process.stdout.readline()
        yield
    finally:
        process.send_signal(end)
        process.wait(60)


def stored(name):
    """The keys of the blobs with data, with what tells whether one was changed."""
    pages = client("s3").get_paginator("list_objects_v2").paginate(Bucket=f"{name}-archive", Prefix=f"tables/{name}/2")
    return {blob["Key"]: blob["ETag"] for page in pages for blob in page.get("Contents", [])}


def archived(name):
    """How many changes the manifest tells of, in blobs that are there."""
    s3, there = client("s3"), stored(name)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=f"{name}-archive", Prefix=f"tables/{name}/_manifest/")
    keys = [blob["Key"] for page in pages for blob in page.get("Contents", [])]
    entries = [json.load(s3.get_object(Bucket=f"{name}-archive", Key=key)["Body"]) for key in keys]
    return sum(entry["records"] for entry in entries if entry["blob"] in there)


def body(name, key):
    return client("s3").get_object(Bucket=f"{name}-archive", Key=key)["Body"].read()


def download(server, name):
    """The files of an archive in a folder, in their order."""
    folder = os.path.join(server.folder.name, f"{name}-files")
    os.makedirs(folder, exist_ok=True)
    paths = []
    for key in sorted(stored(name), key=lambda key: int(key.split("/")[-1].split("-")[0])):
        paths.append(os.path.join(folder, key.split("/")[-1]))
        with open(paths[-1], "wb") as file:
            file.write(body(name, key))
    return paths


def streamed(name):
    """The changes as DynamoDB Streams tells of them, with their shards, by their numbers."""
    streams = client("dynamodbstreams")
    arn = streams.list_streams(TableName=name)["Streams"][0]["StreamArn"]
    found = {}
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        place = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
        place = place["ShardIterator"]
        while place:
            page = streams.get_records(ShardIterator=place)
            # The protocol puts zeros before short numbers.
            found |= {record["dynamodb"]["SequenceNumber"].lstrip("0"): (shard["ShardId"], record) for record in page["Records"]}
            place = page.get("NextShardIterator") if page["Records"] else None
    return found


def plain(value):
    """A value of boto3 as JSON has it, with sets in an order."""
    import base64
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: sorted(plain(part)) if name in ("SS", "NS", "BS") else plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def odd_changes(name):
    """Every kind of value, and values that are as odd as they may be."""
    dynamodb = client("dynamodb")
    items = [
        {"id": {"S": "all"}, "n": {"N": "-1.2345678901234567890123456789012345678E-90"}, "b": {"B": b"\0\xff\"\\"},
         "t": {"BOOL": True}, "z": {"NULL": True}, "l": {"L": [{"NULL": True}, {"L": []}, {"S": ""}]},
         "m": {"M": {"\"\\\0\n": {"S": "🦀\U0010fffee\u0301"}, "x": {"M": {}}}},
         "ss": {"SS": ["b", "a"]}, "ns": {"NS": ["2", "1"]}, "bs": {"BS": [b"\1", b"\2"]}},
        {"id": {"S": "bare"}},
        {"id": {"S": "Ünïcode ☃ \u202e\0\"'\\"}, "名前": {"S": "値\r\n\t"}},
        {"id": {"S": "large"}, "b": {"B": os.urandom(409_000)}},
    ]
    for item in items:
        dynamodb.put_item(TableName=name, Item=item)
    dynamodb.update_item(TableName=name, Key={"id": {"S": "all"}}, UpdateExpression="remove m set n = :n",
                         ExpressionAttributeValues={":n": {"N": "7"}})
    for row in ("bare", "large"):
        dynamodb.delete_item(TableName=name, Key={"id": {"S": row}})
    for number in range(40):
        dynamodb.put_item(TableName=name, Item={"id": {"S": f"row {number}"}, "n": {"N": str(number)}})
    return 47


def text(type_):
    return "json" if isinstance(type_, pa.JsonType) else str(type_)


@case
def readers_of_others_see_what_the_stream_says(server):
    flow = prepare(server, "odd", 10)
    count = odd_changes("odd")
    with bot(server, flow):
        eventually(lambda: archived("odd") == count, "all changes are archived", 60)
    paths = download(server, "odd")
    assert len(paths) >= 5, paths
    rows = []
    for path in paths:
        schema = pq.read_schema(path)
        assert {field.name: text(field.type) for field in schema} == TYPES, schema
        rows += pq.read_table(path).to_pylist()
    truth = streamed("odd")
    assert len(rows) == len(truth) == count, (len(rows), len(truth))
    parsed = lambda cell: None if cell is None else json.loads(cell)  # noqa: E731
    shards = {}
    for row in rows:
        shard, record = truth[row["sequence_number"]]
        change = record["dynamodb"]
        assert row["event_id"] == row["sequence_number"], row["event_id"]
        assert row["event_name"] == record["eventName"] and row["event_version"] == record["eventVersion"]
        assert row["event_source"] == record["eventSource"] == "aws:dynamodb"
        assert (row["keyspace_name"], row["table_name"]) == ("tables", "odd")
        # The protocol has longer names for shards.
        assert shards.setdefault(row["shard_id"], shard) == shard, row["shard_id"]
        moment = change["ApproximateCreationDateTime"].astimezone(timezone.utc)
        # The protocol tells seconds, the column milliseconds.
        assert abs((row["event_time"] - moment).total_seconds()) < 1, (row["event_time"], moment)
        assert parsed(row["keys"]) == plain(change["Keys"])
        for column, image in [("new_image", "NewImage"), ("old_image", "OldImage")]:
            found = parsed(row[column])
            assert (found and plain(found)) == (plain(change[image]) if image in change else None), row["keys"]
        assert (row["size_bytes"], row["stream_view_type"]) == (change["SizeBytes"], change["StreamViewType"])
        assert row["clustering_keys"] is row["origin"] is row["user_identity"] is None


@case
def a_database_asks_the_files(server):
    # The files of the case before: types, filters by time, paths into images, and the last image of each row.
    files = f"read_parquet('{os.path.join(server.folder.name, 'odd-files', '*.parquet')}')"
    ask = duckdb.connect().execute
    types = dict(ask(f"select column_name, column_type from (describe select * from {files})").fetchall())
    assert types["event_time"] == "TIMESTAMP WITH TIME ZONE" and types["new_image"] == types["keys"] == "JSON", types
    assert types["size_bytes"] == "BIGINT" and types["event_name"] == "VARCHAR", types
    counts = ask(f"select event_name, count(*)::int from {files} group by 1 order by 1").fetchall()
    assert counts == [("INSERT", 44), ("MODIFY", 1), ("REMOVE", 2)], counts
    recent = ask(f"select count(*) from {files} where event_time > now() - interval 1 hour").fetchone()
    assert recent == (47,), recent
    total = ask(f"select sum((new_image->'n'->>'N')::int)::int from {files} where (keys->'id'->>'S') like 'row %'").fetchone()
    assert total == (sum(range(40)),), total
    last = ask(f"""
        select keys->'id'->>'S' as id, arg_max(event_name, (length(sequence_number), sequence_number)) as last
        from {files} group by 1 having last <> 'REMOVE'""").fetchall()
    rows = client("dynamodb").scan(TableName="odd", ProjectionExpression="id")["Items"]
    assert sorted(row for row, _ in last) == sorted(row["id"]["S"] for row in rows)


@case
def a_killed_bot_writes_the_same_files_again(server):
    flow = prepare(server, "again", 10)
    count = odd_changes("again")
    with bot(server, flow, signal.SIGKILL):
        eventually(lambda: archived("again") == count, "all changes are archived", 60)
    before = stored("again")
    server.kill()
    client("dynamodb").put_item(TableName="again", Item={"id": {"S": "later"}})
    with bot(server, flow):
        eventually(lambda: archived("again") == count + 1, "one more change is archived", 60)
    after = stored("again")
    assert {key: after.get(key) for key in before} == before and len(after) == len(before) + 1


def verify(server, flow):
    """What the comparison finds, how long it takes, and how much memory."""
    began, megabytes = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command(server, "cdc", "verify", flow, "--json"), stdout=out, stderr=subprocess.DEVNULL)
        # What the system says about a child that has ended counts its parent before the child began.
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status") as status:
                peak = [line.split()[1] for line in status if line.startswith("VmHWM:")]
            megabytes = max(megabytes, *(int(kibibytes) / 1024 for kibibytes in peak), 0)
            time.sleep(0.02)
        seconds = time.monotonic() - began
        out.seek(0)
        return json.loads(out.readline()), process.returncode, seconds, megabytes


def rewrite(name, key, change):
    """Puts what `change` makes of a file's rows in its place."""
    table = change(pq.read_table(io.BytesIO(body(name, key))))
    file = io.BytesIO()
    pq.write_table(table, file, compression="gzip")
    client("s3").put_object(Bucket=f"{name}-archive", Key=key, Body=file.getvalue())


def fill(server, name):
    """Puts the rows, by several at once and without an SDK, which would take longer than all else."""
    headers = {
        "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.BatchWriteItem",
        "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, "
                         "Signature=any",
    }

    def put(first):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        for start in range(first * 25, ROWS, WRITERS * 25):
            rows = ",".join(
                f'{{"PutRequest":{{"Item":{{"id":{{"S":"p{number:07}"}},"name":{{"S":"number {number}"}},"n":{{"N":"{number}"}}}}}}}}'
                for number in range(start, min(start + 25, ROWS)))
            connection.request("POST", "/", f'{{"RequestItems":{{"{name}":[{rows}]}}}}', headers)
            answer = connection.getresponse()
            told = answer.read()
            assert answer.status == 200 and not json.loads(told).get("UnprocessedItems"), told

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(put, range(WRITERS)))


@case
def one_wrong_row_among_very_many_is_found(server):
    flow = prepare(server, "people", 10_000)
    with bot(server, flow):
        fill(server, "people")
        eventually(lambda: archived("people") == ROWS, "every change is archived", 60 + ROWS / 2_000)
    report, code, seconds, megabytes = verify(server, flow)
    assert (report["rows"], report["changes"], report["found"], code) == (ROWS, ROWS, {}, 0), report
    print(f"archive_parquet.py: {ROWS:,} rows compared in {seconds:.1f} s with {megabytes:.0f} MB")
    assert megabytes < VERIFY_MEGABYTES_MAX and seconds < VERIFY_SECONDS_MAX, (megabytes, seconds)

    keys = sorted(stored("people"))
    assert len(keys) >= 3, keys

    def without(table):
        return pa.concat_tables([table.slice(0, 17), table.slice(18)])

    def twice(table):
        return pa.concat_tables([table, table.slice(23, 1)])

    def altered(table):
        place, cells = table.column_names.index("new_image"), table["new_image"].to_pylist()
        cells[29] = cells[29].replace("number ", "numbre ")
        return table.set_column(place, "new_image", pa.array(cells, pa.string()))

    for key, change in zip(keys, [without, twice, altered]):
        rewrite("people", key, change)
    report, code, *_ = verify(server, flow)
    assert report["found"] == {"missing": 1, "duplicated": 1, "altered": 1} and code == 1, report


run()
