"""DynamoDB by boto3: every operation, the client's API and the resource's, paginators, waiters, errors, and a crash."""

from decimal import Decimal

import boto3
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import case, eventually, run, through_crashes

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def options(**more):
    return {"config": Config(retries={"max_attempts": 0, "mode": "standard"}, read_timeout=30), **more}


def client():
    return boto3.client("dynamodb", **options())


def resource():
    return boto3.resource("dynamodb", **options())


def streams():
    return boto3.client("dynamodbstreams", **options())


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
        return error.response
    raise AssertionError(f"{code} was expected of {arguments}")


def message(code, call, **arguments):
    return refused(code, call, **arguments)["Error"]["Message"]


def make(name, hash="id:S", range=None, indexes=(), local=(), **more):
    """A table; indexes are `name hash range projection`."""
    kinds = {}

    def schema(*parts):
        elements = []
        for part, role in zip([part for part in parts if part], ("HASH", "RANGE")):
            attribute, kind = part.split(":")
            kinds[attribute] = kind
            elements.append({"AttributeName": attribute, "KeyType": role})
        return elements

    def index(name, hash, range, projection):
        return {"IndexName": name, "KeySchema": schema(hash, range), "Projection": projection}

    request = {"TableName": name, "KeySchema": schema(hash, range), "BillingMode": "PAY_PER_REQUEST", **more}
    if indexes:
        request["GlobalSecondaryIndexes"] = [index(*one) for one in indexes]
    if local:
        request["LocalSecondaryIndexes"] = [index(*one) for one in local]
    request["AttributeDefinitions"] = [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]
    dynamodb = client()
    dynamodb.create_table(**request)
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    return dynamodb


ALL = {"ProjectionType": "ALL"}


@case
def tables_are_made_described_listed_and_deleted(server):
    dynamodb = make("tables-a", "h:S", "r:N", indexes=[("by-x", "x:S", "r:N", ALL)],
                    local=[("by-y", "h:S", "y:B", {"ProjectionType": "KEYS_ONLY"})],
                    StreamSpecification=STREAM, Tags=[{"Key": "team", "Value": "ä"}])
    table = dynamodb.describe_table(TableName="tables-a")["Table"]
    assert table["TableStatus"] == "ACTIVE" and table["ItemCount"] == 0 and table["TableSizeBytes"] == 0, table
    assert table["KeySchema"] == [{"AttributeName": "h", "KeyType": "HASH"},
                                  {"AttributeName": "r", "KeyType": "RANGE"}], table
    assert {(one["AttributeName"], one["AttributeType"]) for one in table["AttributeDefinitions"]} == {
        ("h", "S"), ("r", "N"), ("x", "S"), ("y", "B")}
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/tables-a"
    assert table["LatestStreamArn"].startswith(table["TableArn"] + "/stream/")
    assert table["StreamSpecification"] == STREAM
    (wide,), (narrow,) = table["GlobalSecondaryIndexes"], table["LocalSecondaryIndexes"]
    assert wide["IndexStatus"] == "ACTIVE" and wide["Projection"] == ALL and wide["IndexName"] == "by-x"
    assert narrow["IndexName"] == "by-y" and "IndexStatus" not in narrow
    assert dynamodb.describe_table(TableName=table["TableArn"])["Table"]["TableName"] == "tables-a"
    tags = dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "ä"}], tags

    message("ResourceInUseException", dynamodb.create_table, TableName="tables-a", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "h", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "h", "AttributeType": "S"}])
    for number in range(5):
        make(f"tables-b{number}")
    pages = list(dynamodb.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 2}))
    names = [name for page in pages for name in page["TableNames"]]
    assert len(pages) >= 3 and names == sorted(names) and {"tables-a", "tables-b0", "tables-b4"} <= set(names), names
    dynamodb.delete_table(TableName="tables-a")
    dynamodb.get_waiter("table_not_exists").wait(TableName="tables-a", WaiterConfig={"Delay": 1})
    why = message("ResourceNotFoundException", dynamodb.describe_table, TableName="tables-a")
    assert why == "Requested resource not found: Table: tables-a not found", why
    assert message("ResourceNotFoundException", dynamodb.get_item, TableName="tables-a",
                   Key={"h": {"S": "a"}}) == "Requested resource not found"


@case
def tables_that_cannot_be_are_refused(server):
    dynamodb = client()

    def make_of(elements, definitions, **more):
        return message("ValidationException", dynamodb.create_table, TableName=more.pop("TableName", "refused"),
                       KeySchema=[{"AttributeName": name, "KeyType": role} for name, role in elements],
                       AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in definitions],
                       **{"BillingMode": "PAY_PER_REQUEST", **more})

    one = [("h", "HASH")]
    assert "satisfy regular expression pattern: [a-zA-Z0-9_.-]+" in make_of(one, "h", TableName="a b c")
    assert "first KeySchemaElement is not a HASH" in make_of([("h", "RANGE")], "h")
    assert "second KeySchemaElement is not a RANGE" in make_of([("h", "HASH"), ("r", "HASH")], "hr")
    assert "have the same name" in make_of([("h", "HASH"), ("h", "RANGE")], "hx")
    assert "Some index key attribute have no definition" in make_of([("h", "HASH"), ("h", "RANGE")], "h")
    assert "not defined in AttributeDefinitions" in make_of(one, "x")
    assert "does not exactly match" in make_of(one, "hx")
    assert "must both be specified" in make_of(one, "h", BillingMode="PROVISIONED")
    assert "Neither ReadCapacityUnits" in make_of(
        one, "h", ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
    assert "does not have a range key" in make_of(one, "hx", LocalSecondaryIndexes=[{
        "IndexName": "idx", "Projection": ALL, "KeySchema": [{"AttributeName": "h", "KeyType": "HASH"},
                                                            {"AttributeName": "x", "KeyType": "RANGE"}]}])
    assert "NonKeyAttributes is not specified" in make_of(one, "hx", GlobalSecondaryIndexes=[{
        "IndexName": "idx", "Projection": {"ProjectionType": "INCLUDE"},
        "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}])
    assert "refused" not in dynamodb.list_tables()["TableNames"]


@case
def settings_are_read_back(server):
    dynamodb = make("settings", BillingMode="PROVISIONED", TableClass="STANDARD_INFREQUENT_ACCESS",
                    ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
                    DeletionProtectionEnabled=True)
    described = lambda: dynamodb.describe_table(TableName="settings")["Table"]
    assert described()["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert described()["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert "protected against deletion" in message("ValidationException", dynamodb.delete_table, TableName="settings")
    dynamodb.update_table(TableName="settings", BillingMode="PAY_PER_REQUEST", DeletionProtectionEnabled=False)
    server.kill()
    assert described()["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert described()["DeletionProtectionEnabled"] is False
    arn = described()["TableArn"]
    dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": key, "Value": key * 2} for key in "abc"])
    dynamodb.untag_resource(ResourceArn=arn, TagKeys=["b", "z"])
    pages = dynamodb.get_paginator("list_tags_of_resource").paginate(ResourceArn=arn)
    tags = [(tag["Key"], tag["Value"]) for page in pages for tag in page["Tags"]]
    assert tags == [("a", "aa"), ("c", "cc")], tags
    many = [{"Key": str(number), "Value": ""} for number in range(49)]
    assert "Too many tags" in message("ValidationException", dynamodb.tag_resource, ResourceArn=arn, Tags=many)
    assert dynamodb.describe_limits()["TableMaxReadCapacityUnits"] > 0
    assert dynamodb.describe_endpoints()["Endpoints"][0]["Address"] == f"127.0.0.1:{server.port}"
    backups = dynamodb.describe_continuous_backups(TableName="settings")["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"
    message("ValidationException", dynamodb.update_table, TableName="settings")
    dynamodb.delete_table(TableName="settings")


@case
def values_of_all_types_come_back(server):
    make("values", "id:S")
    table = resource().Table("values")
    item = {"id": "ü", "n": Decimal("-12345678901234567890123456789.012345678"), "small": Decimal("1E-130"),
            "b": Binary(bytes(range(256))), "yes": True, "no": False, "null": None, "empty": "", "none": [],
            "list": [1, "a", [None, {"x": set([Decimal(1), Decimal("2.50")])}]], "map": {"a.b": {"c": Binary(b"")}},
            "ss": {"a", "", "ü"}, "ns": {Decimal("1"), Decimal("-0.001")}, "bs": {Binary(b"x"), Binary(b"y")}}
    table.put_item(Item=item)
    got = table.get_item(Key={"id": "ü"}, ConsistentRead=True)["Item"]
    assert got == item, got
    raw = client()
    raw.put_item(TableName="values", Item={"id": {"S": "n"}, "n": {"N": "007.500"}, "e": {"N": "1e3"}})
    got = raw.get_item(TableName="values", Key={"id": {"S": "n"}})["Item"]
    assert got["n"] == {"N": "7.5"} and got["e"] == {"N": "1000"}, got

    def put(value):
        return message("ValidationException", raw.put_item, TableName="values", Item={"id": {"S": "x"}, "a": value})

    assert "cannot be converted to a numeric value: x" in put({"N": "x"})
    assert "more than 38 significant digits" in put({"N": "1" * 39})
    assert "Number overflow" in put({"N": "1e126"}) and "Number underflow" in put({"N": "1e-131"})
    assert "string set  may not be empty" in put({"SS": []})
    assert "contains duplicates" in put({"SS": ["a", "a"]}) and "contains duplicates" in put({"NS": ["1", "1.0"]})
    assert "must have the value of true" in put({"NULL": False})
    assert "exceeded the maximum allowed size" in put({"S": "x" * 409600})
    assert "exceeded the maximum allowed size" not in str(
        raw.put_item(TableName="values", Item={"id": {"S": "x"}, "a": {"S": "x" * (409600 - 4)}}))
    deep = {"S": "x"}
    for _ in range(33):
        deep = {"L": [deep]}
    assert "Nesting Levels" in put(deep)


@case
def keys_are_checked(server):
    dynamodb = make("keys", "h:S", "r:N", indexes=[("by-x", "x:S", None, ALL)])
    both = {"h": {"S": "a"}, "r": {"N": "1"}}

    def put(**item):
        return message("ValidationException", dynamodb.put_item, TableName="keys", Item=item)

    def get(**key):
        return message("ValidationException", dynamodb.get_item, TableName="keys", Key=key)

    assert "Missing the key r in the item" in put(h={"S": "a"})
    assert "Type mismatch for key h expected: S actual: N" in put(h={"N": "1"}, r={"N": "1"})
    assert "cannot contain an empty string value. Key: h" in put(h={"S": ""}, r={"N": "1"})
    assert "Size of hashkey" in put(h={"S": "x" * 2049}, r={"N": "1"})
    assert "Type mismatch for Index Key x Expected: S Actual: N IndexName: by-x" in put(x={"N": "1"}, **both)
    for key in ({"h": {"S": "a"}}, {"h": {"S": "a"}, "r": {"S": "1"}}, {**both, "x": {"S": "a"}}, {}):
        assert get(**key) == "The provided key element does not match the schema", key
    why = message("ValidationException", dynamodb.update_item, TableName="keys", Key=both,
                  UpdateExpression="SET h = :v", ExpressionAttributeValues={":v": {"S": "x"}})
    assert why.endswith("Cannot update attribute h. This attribute is part of the key"), why


@case
def writes_return_what_was_asked_for(server):
    make("returns", "id:S")
    table = resource().Table("returns")
    assert "Attributes" not in table.put_item(Item={"id": "a", "v": 1}, ReturnValues="ALL_OLD")
    assert table.put_item(Item={"id": "a", "v": 2}, ReturnValues="ALL_OLD")["Attributes"] == {"id": "a", "v": 1}

    def update(returning, expression, **values):
        return table.update_item(Key={"id": "a"}, UpdateExpression=expression, ReturnValues=returning,
                                 ExpressionAttributeValues={f":{name}": value for name, value in values.items()})

    assert update("ALL_NEW", "SET w = :w ADD v :one", w={"x": [1]}, one=1)["Attributes"] == {
        "id": "a", "v": 3, "w": {"x": [1]}}
    assert update("ALL_OLD", "SET v = :v", v=4)["Attributes"] == {"id": "a", "v": 3, "w": {"x": [1]}}
    assert update("UPDATED_NEW", "SET w.x[0] = :v, v = v + :v", v=5)["Attributes"] == {"v": 9, "w": {"x": [5]}}
    assert update("UPDATED_OLD", "SET v = :v", v=0)["Attributes"] == {"v": 9}
    assert "Attributes" not in update("NONE", "SET v = :v", v=7)
    new = table.update_item(Key={"id": "new"}, UpdateExpression="SET l = list_append(if_not_exists(l, :e), :l)",
                            ExpressionAttributeValues={":e": [], ":l": ["a"]}, ReturnValues="ALL_NEW")
    assert new["Attributes"] == {"id": "new", "l": ["a"]}
    assert message("ValidationException", table.put_item, Item={"id": "a"},
                   ReturnValues="ALL_NEW") == "Return values set to invalid value"
    assert table.delete_item(Key={"id": "a"}, ReturnValues="ALL_OLD")["Attributes"]["v"] == 7
    assert "Attributes" not in table.delete_item(Key={"id": "a"}, ReturnValues="ALL_OLD")
    used = table.put_item(Item={"id": "c", "x": "x" * 2000}, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
    assert used == {"TableName": "returns", "CapacityUnits": 2.0}, used


@case
def conditions_hold_or_nothing_happens(server):
    make("conditions", "id:S")
    table = resource().Table("conditions")
    table.put_item(Item={"id": "a", "v": 1}, ConditionExpression=Attr("id").not_exists())
    error = refused("ConditionalCheckFailedException", table.put_item, Item={"id": "a", "v": 2},
                    ConditionExpression=Attr("id").not_exists(), ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert error["Error"]["Message"] == "The conditional request failed"
    assert error["Item"] == {"id": {"S": "a"}, "v": {"N": "1"}}, error
    assert "Item" not in refused("ConditionalCheckFailedException", table.delete_item, Key={"id": "a"},
                                 ConditionExpression=Attr("v").gt(1))
    table.update_item(Key={"id": "a"}, UpdateExpression="SET v = v + :one",
                      ConditionExpression=Attr("v").between(1, 3) & (Attr("id").begins_with("a") | Attr("x").exists())
                      & ~Attr("v").is_in([7, 8]) & Attr("id").size().eq(1) & Attr("v").attribute_type("N"),
                      ExpressionAttributeValues={":one": 1})
    assert table.get_item(Key={"id": "a"})["Item"]["v"] == 2
    refused("ConditionalCheckFailedException", table.update_item, Key={"id": "b"}, UpdateExpression="SET v = :v",
            ConditionExpression="attribute_exists(id)", ExpressionAttributeValues={":v": 1})
    assert "Item" not in table.get_item(Key={"id": "b"})


@case
def an_invalid_path_is_a_validation_exception(server):
    """Clients that checkpoint into nested maps make the item when they see it, and only then."""
    make("checkpoints", "id:S")
    table = resource().Table("checkpoints")
    update = {"Key": {"id": "bot"}, "UpdateExpression": "set #checkpoints.#type.#event = :value",
              "ConditionExpression": "#checkpoints.#type.#event.#checkpoint = :expected "
                                     "or attribute_not_exists(#checkpoints.#type.#event.#checkpoint)",
              "ExpressionAttributeNames": {"#checkpoints": "checkpoints", "#type": "read", "#event": "queue:a.b",
                                           "#checkpoint": "checkpoint"}}

    def checkpoint(value, expected):
        values = {":value": {"checkpoint": value}, ":expected": expected}
        return table.update_item(**update, ExpressionAttributeValues=values)

    why = None
    try:
        checkpoint("z/1", "z/0")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "ValidationException"
        why = error.response["Error"]["Message"]
    assert why == "The document path provided in the update expression is invalid for update", why
    table.put_item(Item={"id": "bot", "checkpoints": {"read": {}, "write": {}}})
    checkpoint("z/1", "z/0")
    checkpoint("z/2", "z/1")
    try:
        checkpoint("z/3", "z/1")
        raise AssertionError("a stale checkpoint was taken")
    except ClientError as error:
        assert error.response["Error"]["Code"] == "ConditionalCheckFailedException", error
    read = table.get_item(Key={"id": "bot"})["Item"]["checkpoints"]["read"]
    assert read == {"queue:a.b": {"checkpoint": "z/2"}}, read


@case
def expressions_are_refused_in_known_words(server):
    dynamodb = make("words", "id:S")
    key = {"id": {"S": "a"}}
    dynamodb.put_item(TableName="words", Item={**key, "s": {"S": "x"}, "n": {"N": "1"}})

    def update(expression, values=None, names=None):
        more = {"ExpressionAttributeValues": values} if values else {}
        more |= {"ExpressionAttributeNames": names} if names else {}
        return message("ValidationException", dynamodb.update_item, TableName="words", Key=key,
                       UpdateExpression=expression, **more)

    one = {":v": {"N": "1"}}
    assert update("SET status = :v", one) == ("Invalid UpdateExpression: Attribute name is a reserved keyword; "
                                              "reserved keyword: status")
    assert update("SET a = :v SET b = :v", one).endswith(
        'The "SET" section can only be used once in an update expression;')
    assert update("SET a == :v", one) == 'Invalid UpdateExpression: Syntax error; token: "=", near: "== :v"'
    assert update("SET a = :v", {**one, ":w": {"N": "1"}}).endswith("unused in expressions: keys: {:w}")
    assert update("SET #a = :v", one).endswith("is not defined; attribute name: #a")
    assert update("SET a = s + :v", one) == "An operand in the update expression has an incorrect data type"
    assert update("SET a = zz") == ("The provided expression refers to an attribute that does not exist in the item")
    assert update("ADD s :v", one) == "An operand in the update expression has an incorrect data type"
    assert "overlap with each other" in update("SET a = :v, a.b = :v", one)


@case
def older_parameters_mean_the_same(server):
    """As the Java KCL writes its leases."""
    dynamodb = make("leases", "leaseKey:S")
    lease = {"leaseKey": {"S": "shard-1"}, "leaseCounter": {"N": "1"}, "checkpoint": {"S": "TRIM_HORIZON"}}
    dynamodb.put_item(TableName="leases", Item=lease, Expected={"leaseKey": {"Exists": False}})
    message("ConditionalCheckFailedException", dynamodb.put_item, TableName="leases", Item=lease,
            Expected={"leaseKey": {"Exists": False}})
    renew = {"TableName": "leases", "Key": {"leaseKey": {"S": "shard-1"}},
             "AttributeUpdates": {"leaseCounter": {"Value": {"N": "2"}, "Action": "PUT"},
                                  "leaseOwner": {"Value": {"S": "worker"}, "Action": "PUT"},
                                  "ownerSwitchesSinceCheckpoint": {"Value": {"N": "1"}, "Action": "ADD"},
                                  "checkpointOwner": {"Action": "DELETE"}},
             "Expected": {"leaseCounter": {"Value": {"N": "1"}}, "leaseOwner": {"Exists": False}}}
    got = dynamodb.update_item(**renew, ReturnValues="ALL_NEW")["Attributes"]
    assert got == {**lease, "leaseCounter": {"N": "2"}, "leaseOwner": {"S": "worker"},
                   "ownerSwitchesSinceCheckpoint": {"N": "1"}}, got
    error = refused("ConditionalCheckFailedException", dynamodb.update_item, **renew,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert error["Item"]["leaseOwner"] == {"S": "worker"}
    listed = dynamodb.scan(TableName="leases", AttributesToGet=["leaseKey"], ScanFilter={
        "leaseCounter": {"ComparisonOperator": "GE", "AttributeValueList": [{"N": "2"}]},
        "checkpoint": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "TRIM"}]}})
    assert listed["Items"] == [{"leaseKey": {"S": "shard-1"}}], listed
    found = dynamodb.query(TableName="leases", KeyConditions={
        "leaseKey": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "shard-1"}]}},
        QueryFilter={"leaseOwner": {"ComparisonOperator": "NOT_NULL"}})
    assert found["Count"] == 1, found
    assert "both expression and non-expression" in message(
        "ValidationException", dynamodb.get_item, TableName="leases", Key={"leaseKey": {"S": "a"}},
        AttributesToGet=["a"], ProjectionExpression="a")
    dynamodb.delete_item(TableName="leases", Key={"leaseKey": {"S": "shard-1"}}, ConditionalOperator="OR", Expected={
        "leaseCounter": {"ComparisonOperator": "LT", "Value": {"N": "1"}},
        "leaseOwner": {"ComparisonOperator": "IN", "AttributeValueList": [{"S": "worker"}, {"S": "b"}]}})
    assert dynamodb.scan(TableName="leases")["Count"] == 0


def fill(table, groups=3, items=20):
    with table.batch_writer() as batch:
        for group in range(groups):
            for number in range(items):
                batch.put_item(Item={"h": f"g{group}", "r": number, "x": f"x{number % 5}", "s": "s" * (number + 1)})


@case
def queries_page_filter_and_turn_round(server):
    make("queries", "h:S", "r:N", indexes=[("by-x", "x:S", "r:N", {"ProjectionType": "INCLUDE",
                                                                  "NonKeyAttributes": ["s"]})],
         local=[("by-s", "h:S", "s:S", {"ProjectionType": "KEYS_ONLY"})])
    table = resource().Table("queries")
    fill(table)
    numbers = lambda answer: [int(item["r"]) for item in answer["Items"]]
    of_group = Key("h").eq("g1")
    assert numbers(table.query(KeyConditionExpression=of_group)) == list(range(20))
    assert numbers(table.query(KeyConditionExpression=of_group, ScanIndexForward=False)) == list(range(19, -1, -1))
    assert numbers(table.query(KeyConditionExpression=of_group & Key("r").between(3, 5))) == [3, 4, 5]
    assert numbers(table.query(KeyConditionExpression=of_group & Key("r").lt(2))) == [0, 1]
    page = table.query(KeyConditionExpression=of_group, FilterExpression=Attr("x").eq("x2"), Limit=10)
    assert numbers(page) == [2, 7] and page["Count"] == 2 and page["ScannedCount"] == 10, page
    assert page["LastEvaluatedKey"] == {"h": "g1", "r": 9}, page
    following = table.query(KeyConditionExpression=of_group, ExclusiveStartKey=page["LastEvaluatedKey"], Limit=3)
    assert numbers(following) == [10, 11, 12]
    count = table.query(KeyConditionExpression=of_group, Select="COUNT")
    assert count["Count"] == 20 and "Items" not in count, count
    pages = client().get_paginator("query").paginate(
        TableName="queries", KeyConditionExpression="h = :h", ExpressionAttributeValues={":h": {"S": "g2"}},
        PaginationConfig={"PageSize": 7})
    assert [page["Count"] for page in pages] == [7, 7, 6]

    wide = table.query(IndexName="by-x", KeyConditionExpression=Key("x").eq("x3") & Key("r").gte(10))
    assert sorted((item["h"], int(item["r"])) for item in wide["Items"]) == [
        (f"g{group}", number) for group in range(3) for number in (13, 18)], wide
    first = table.query(IndexName="by-x", KeyConditionExpression=Key("x").eq("x3"), Limit=1)
    assert set(first["LastEvaluatedKey"]) == {"h", "r", "x"}, first
    local = table.query(IndexName="by-s", KeyConditionExpression=of_group & Key("s").begins_with("sss"), Limit=2,
                        ConsistentRead=True)
    assert local["Items"] == [{"h": "g1", "r": number, "s": "s" * (number + 1)} for number in (2, 3)], local
    whole = table.query(IndexName="by-s", KeyConditionExpression=of_group, Select="ALL_ATTRIBUTES", Limit=2)
    assert [item["x"] for item in whole["Items"]] == ["x0", "x1"], whole
    parts = table.query(IndexName="by-s", KeyConditionExpression=of_group, ProjectionExpression="x", Limit=2)
    assert parts["Items"] == [{"x": "x0"}, {"x": "x1"}], parts

    def refusal(**arguments):
        return message("ValidationException", table.query, **{"KeyConditionExpression": of_group, **arguments})

    assert refusal(IndexName="by-s", FilterExpression=Attr("x").eq("x1")) == (
        "One or more parameter values were invalid: Secondary index by-s does not project one or more filter "
        "attributes: [x]")
    assert "Consistent reads are not supported" in refusal(
        IndexName="by-x", KeyConditionExpression=Key("x").eq("a"), ConsistentRead=True)
    assert refusal(KeyConditionExpression=Key("r").eq(1)) == "Query condition missed key schema element: h"
    assert refusal(KeyConditionExpression=Key("h").gt("a")) == "Query key condition not supported"
    assert refusal(KeyConditionExpression=of_group & Key("z").eq(1)) == "Query condition missed key schema element: r"
    assert "type does not match schema type" in refusal(KeyConditionExpression=Key("h").eq(1))
    assert refusal(FilterExpression=Attr("r").eq(1)) == ("Filter Expression can only contain non-primary key "
                                                       "attributes: Primary key attribute: r")
    assert refusal(IndexName="nope") == "The table does not have the specified index: nope"
    assert refusal(ExclusiveStartKey={"h": "g1"}) == "The provided starting key is invalid"
    assert "Select type ALL_ATTRIBUTES is not supported" in refusal(
        IndexName="by-x", KeyConditionExpression=Key("x").eq("a"), Select="ALL_ATTRIBUTES")
    assert "only the Count" in refusal(Select="COUNT", ProjectionExpression="x")


@case
def scans_see_everything_once(server):
    make("scans", "h:S", "r:N")
    table = resource().Table("scans")
    fill(table, groups=40, items=5)
    everything = {(f"g{group}", number) for group in range(40) for number in range(5)}
    keys = lambda items: [(item["h"], int(item["r"])) for item in items]
    seen = []
    for segment in range(4):
        start = {}
        while True:
            page = table.scan(Segment=segment, TotalSegments=4, Limit=7, **start)
            seen += keys(page["Items"])
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert len(seen) == 200 and set(seen) == everything
    pages = client().get_paginator("scan").paginate(
        TableName="scans", ProjectionExpression="#h, r", ExpressionAttributeNames={"#h": "h"},
        FilterExpression="r > :r", ExpressionAttributeValues={":r": {"N": "2"}}, PaginationConfig={"PageSize": 33})
    pages = list(pages)
    assert sum(page["Count"] for page in pages) == 80 and sum(page["ScannedCount"] for page in pages) == 200
    assert all(set(item) == {"h", "r"} for page in pages for item in page["Items"])
    assert table.item_count == 200, table.item_count
    refusal = lambda **arguments: message("ValidationException", table.scan, **arguments)
    assert "Segment parameter is zero-based" in refusal(Segment=2, TotalSegments=2)
    assert "TotalSegments parameter is required" in refusal(Segment=0)
    assert "Segment parameter is required" in refusal(TotalSegments=2)
    assert "less than or equal to 1000000" in message("ValidationException", table.scan, Segment=0, TotalSegments=10**7)


@case
def batches_do_each_on_its_own(server):
    dynamodb = make("batches", "id:S")
    make("batches-b", "id:N")
    put = lambda number: {"PutRequest": {"Item": {"id": {"S": str(number)}, "v": {"N": str(number)}}}}
    answer = dynamodb.batch_write_item(RequestItems={
        "batches": [put(number) for number in range(20)],
        "batches-b": [{"PutRequest": {"Item": {"id": {"N": "1"}}}}]}, ReturnConsumedCapacity="TOTAL")
    assert answer["UnprocessedItems"] == {} and len(answer["ConsumedCapacity"]) == 2, answer
    got = dynamodb.batch_get_item(RequestItems={
        "batches": {"Keys": [{"id": {"S": str(number)}} for number in (3, 5, 99)], "ProjectionExpression": "v",
                    "ConsistentRead": True},
        "batches-b": {"Keys": [{"id": {"N": "1.0"}}]}})
    assert sorted(item["v"]["N"] for item in got["Responses"]["batches"]) == ["3", "5"], got
    assert got["Responses"]["batches-b"] == [{"id": {"N": "1"}}] and got["UnprocessedKeys"] == {}, got
    dynamodb.batch_write_item(RequestItems={"batches": [{"DeleteRequest": {"Key": {"id": {"S": "3"}}}}, put(4)]})
    assert dynamodb.scan(TableName="batches", Select="COUNT")["Count"] == 19

    large = [{"PutRequest": {"Item": {"id": {"S": f"large{number}"}, "x": {"S": "x" * 390_000}}}}
             for number in range(25)]
    for start in range(0, 50, 25):
        for number, one in enumerate(large):
            one["PutRequest"]["Item"]["id"]["S"] = f"large{start + number}"
        dynamodb.batch_write_item(RequestItems={"batches": large})
    wanted = {"batches": {"Keys": [{"id": {"S": f"large{number}"}} for number in range(50)]}}
    rounds, found = 0, set()
    while wanted:
        got = dynamodb.batch_get_item(RequestItems=wanted)
        found |= {item["id"]["S"] for item in got["Responses"]["batches"]}
        wanted, rounds = got["UnprocessedKeys"], rounds + 1
    assert rounds > 1 and found == {f"large{number}" for number in range(50)}, (rounds, len(found))

    refusal = lambda call, items: message("ValidationException", call, RequestItems=items)
    read, write = dynamodb.batch_get_item, dynamodb.batch_write_item
    key = {"id": {"S": "a"}}
    assert refusal(read, {"batches": {"Keys": [key, key]}}) == "Provided list of item keys contains duplicates"
    assert refusal(write, {"batches": [put(1), put(1)]}) == "Provided list of item keys contains duplicates"
    assert "less than or equal to 25" in refusal(write, {"batches": [put(number) for number in range(26)]})
    many = {"batches": {"Keys": [{"id": {"S": str(number)}} for number in range(101)]}}
    assert "less than or equal to 100" in refusal(read, many)
    spread = {name: {"Keys": [{"id": {"S": str(number)}} for number in range(51)]} for name in ["batches", "others"]}
    assert refusal(read, spread).startswith("Too many items requested")
    assert "does not match the schema" in refusal(read, {"batches": {"Keys": [{"id": {"N": "1"}}]}})
    message("ResourceNotFoundException", read, RequestItems={"nothing": {"Keys": [key]}})


@case
def transactions_happen_as_a_whole(server):
    dynamodb = make("transactions", "id:S")
    key = lambda name: {"id": {"S": name}}
    put = lambda name, **more: {"Put": {"TableName": "transactions", "Item": key(name), **more}}
    absent = {"ConditionExpression": "attribute_not_exists(id)"}
    once = {"TransactItems": [put("a", **absent), put("b")], "ClientRequestToken": "once"}
    dynamodb.transact_write_items(**once)
    dynamodb.transact_write_items(**once)
    message("IdempotentParameterMismatchException", dynamodb.transact_write_items, TransactItems=[put("z")],
            ClientRequestToken="once")
    error = refused("TransactionCanceledException", dynamodb.transact_write_items, TransactItems=[
        {"Update": {"TableName": "transactions", "Key": key("c"), "UpdateExpression": "SET v = :v",
                    "ExpressionAttributeValues": {":v": {"N": "1"}}}},
        put("a", **absent, ReturnValuesOnConditionCheckFailure="ALL_OLD"),
        {"ConditionCheck": {"TableName": "transactions", "Key": key("b"), "ConditionExpression": "id = :b",
                            "ExpressionAttributeValues": {":b": {"S": "b"}}}},
        {"Delete": {"TableName": "transactions", "Key": key("d")}}])
    reasons = error["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed", "None", "None"], error
    assert reasons[1]["Item"] == key("a") and reasons[1]["Message"] == "The conditional request failed", error
    assert error["Error"]["Message"].endswith("[None, ConditionalCheckFailed, None, None]"), error
    got = dynamodb.transact_get_items(TransactItems=[
        {"Get": {"TableName": "transactions", "Key": key(name)}} for name in "abc"])["Responses"]
    assert got == [{"Item": key("a")}, {"Item": key("b")}, {}], got
    error = refused("TransactionCanceledException", dynamodb.transact_write_items, TransactItems=[
        put("e"), {"Update": {"TableName": "transactions", "Key": key("a"), "UpdateExpression": "SET x.y = :v",
                              "ExpressionAttributeValues": {":v": {"N": "1"}}}}])
    assert [reason["Code"] for reason in error["CancellationReasons"]] == ["None", "ValidationError"], error
    assert "document path" in error["CancellationReasons"][1]["Message"]
    assert message("ValidationException", dynamodb.transact_write_items, TransactItems=[
        put("a"), put("a")]) == "Transaction request cannot include multiple operations on one item"
    assert dynamodb.scan(TableName="transactions", Select="COUNT")["Count"] == 2


@case
def indexes_come_and_go(server):
    dynamodb = make("indexes", "id:S")
    table = resource().Table("indexes")
    with table.batch_writer() as batch:
        for number in range(50):
            batch.put_item(Item={"id": str(number), "kind": "even" if number % 2 == 0 else "odd"})
    dynamodb.update_table(
        TableName="indexes", AttributeDefinitions=[{"AttributeName": "kind", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": {"IndexName": "by-kind", "Projection": {"ProjectionType": "KEYS_ONLY"},
                                                 "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}]}}])

    def state():
        indexes = dynamodb.describe_table(TableName="indexes")["Table"].get("GlobalSecondaryIndexes", [])
        return [index["IndexStatus"] for index in indexes]

    eventually(lambda: state() == ["ACTIVE"], "the index is ready")
    found = table.query(IndexName="by-kind", KeyConditionExpression=Key("kind").eq("odd"))
    assert found["Count"] == 25 and set(found["Items"][0]) == {"id", "kind"}, found
    assert table.scan(IndexName="by-kind")["Count"] == 50
    dynamodb.update_table(TableName="indexes",
                          GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-kind"}}])
    eventually(lambda: state() == [], "the index is gone")
    message("ResourceNotFoundException", dynamodb.update_table, TableName="indexes",
            GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-kind"}}])


@case
def items_expire(server):
    dynamodb = make("expiry", "id:S")
    specification = {"Enabled": True, "AttributeName": "until"}
    assert dynamodb.update_time_to_live(TableName="expiry", TimeToLiveSpecification=specification)[
        "TimeToLiveSpecification"] == specification
    assert dynamodb.describe_time_to_live(TableName="expiry")["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED", "AttributeName": "until"}
    assert "already enabled" in message("ValidationException", dynamodb.update_time_to_live, TableName="expiry",
                                        TimeToLiveSpecification=specification)
    dynamodb.update_time_to_live(TableName="expiry", TimeToLiveSpecification={**specification, "Enabled": False})
    assert dynamodb.describe_time_to_live(TableName="expiry")["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "DISABLED"}


def changes(arn, kind="TRIM_HORIZON"):
    """All records of a stream, shard by shard."""
    found = []
    shards = streams().describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    for shard in shards:
        iterator = streams().get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                                ShardIteratorType=kind)["ShardIterator"]
        while iterator:
            answer = streams().get_records(ShardIterator=iterator, Limit=3)
            found += answer["Records"]
            iterator = answer.get("NextShardIterator")
            if not answer["Records"]:
                break
    return found


@case
def changes_are_told(server):
    dynamodb = make("changes", "id:S", StreamSpecification=STREAM)
    table = resource().Table("changes")
    described = dynamodb.describe_table(TableName="changes")["Table"]
    arn = described["LatestStreamArn"]
    for number in range(10):
        table.put_item(Item={"id": str(number), "v": 0})
        table.update_item(Key={"id": str(number)}, UpdateExpression="ADD v :one", ExpressionAttributeValues={":one": 1})
    table.put_item(Item={"id": "0", "v": 1})
    table.delete_item(Key={"id": "0"})
    records = changes(arn)
    assert len(records) == 21 and len({record["eventID"] for record in records}) == 21, len(records)
    of_zero = [record for record in records if record["dynamodb"]["Keys"] == {"id": {"S": "0"}}]
    assert [record["eventName"] for record in of_zero] == ["INSERT", "MODIFY", "REMOVE"], of_zero
    modified = of_zero[1]["dynamodb"]
    assert modified["OldImage"]["v"] == {"N": "0"} and modified["NewImage"]["v"] == {"N": "1"}, modified
    assert modified["StreamViewType"] == "NEW_AND_OLD_IMAGES" and modified["SizeBytes"] > 0, modified
    assert of_zero[0]["eventSource"] == "aws:dynamodb" and of_zero[0]["awsRegion"] == "us-east-1"
    numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in of_zero]
    assert numbers == sorted(numbers)

    stream = streams().describe_stream(StreamArn=arn, Limit=1)["StreamDescription"]
    assert stream["StreamStatus"] == "ENABLED" and stream["TableName"] == "changes", stream
    assert stream["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}] and len(stream["Shards"]) == 1
    more = streams().describe_stream(StreamArn=arn, ExclusiveStartShardId=stream["LastEvaluatedShardId"])
    assert more["StreamDescription"]["Shards"], more
    for record in of_zero[1:2]:
        for shard in [one["ShardId"] for one in streams().describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]]:
            iterator = streams().get_shard_iterator(
                StreamArn=arn, ShardId=shard, ShardIteratorType="AT_SEQUENCE_NUMBER",
                SequenceNumber=record["dynamodb"]["SequenceNumber"])["ShardIterator"]
            got = streams().get_records(ShardIterator=iterator)["Records"]
            assert all(int(one["dynamodb"]["SequenceNumber"]) >= numbers[1] for one in got)
    assert changes(arn, "LATEST") == []
    assert any(one["StreamArn"] == arn for one in streams().list_streams(TableName="changes")["Streams"])

    server.kill()
    assert len(changes(arn)) == 21
    dynamodb.update_table(TableName="changes", StreamSpecification={"StreamEnabled": False})
    assert "LatestStreamArn" not in dynamodb.describe_table(TableName="changes")["Table"]
    ended = streams().describe_stream(StreamArn=arn)["StreamDescription"]
    assert ended["StreamStatus"] == "DISABLED", ended
    assert all("EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in ended["Shards"]), ended
    assert len(changes(arn)) == 21
    dynamodb.update_table(TableName="changes", StreamSpecification={
        "StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    again = dynamodb.describe_table(TableName="changes")["Table"]["LatestStreamArn"]
    table.put_item(Item={"id": "k", "v": 1})
    assert again != arn and [set(one["dynamodb"]) & {"NewImage", "OldImage"} for one in changes(again)] == [set()]
    dynamodb.delete_table(TableName="changes")
    assert {one["StreamArn"] for one in streams().list_streams(TableName="changes")["Streams"]} == {arn, again}
    assert len(changes(again)) == 1
    message("ValidationException", streams().get_records, ShardIterator="forged")
    message("ResourceNotFoundException", streams().describe_stream, StreamArn=arn[:-1] + "999")


@case
def what_was_acknowledged_is_there_after_a_crash(server):
    dynamodb = make("crash", "id:S")
    for number in range(50):
        dynamodb.put_item(TableName="crash", Item={"id": {"S": str(number)}})
        if number % 20 == 10:
            server.kill()
    assert dynamodb.scan(TableName="crash", Select="COUNT")["Count"] == 50
    dynamodb.update_item(TableName="crash", Key={"id": {"S": "7"}}, UpdateExpression="ADD n :one",
                         ExpressionAttributeValues={":one": {"N": "1"}})
    server.kill()
    got = dynamodb.get_item(TableName="crash", Key={"id": {"S": "7"}}, ConsistentRead=True)["Item"]
    assert got["n"] == {"N": "1"}, got


@case
def crashes_during_calls_lose_nothing(server):
    dynamodb = make("shaken", "id:S")

    def write(number):
        key = {"id": {"S": str(number)}}
        dynamodb.transact_write_items(ClientRequestToken=f"shaken-{number}", TransactItems=[
            {"Put": {"TableName": "shaken", "Item": key}},
            {"Update": {"TableName": "shaken", "Key": {"id": {"S": "sum"}}, "UpdateExpression": "ADD n :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}}}}])

    acknowledged, unknown = through_crashes(server, write)
    pages = dynamodb.get_paginator("scan").paginate(TableName="shaken", ConsistentRead=True)
    items = {item["id"]["S"]: item for page in pages for item in page["Items"]}
    total = int(items.pop("sum")["n"]["N"])
    found = {int(id) for id in items}
    assert set(acknowledged) <= found <= set(acknowledged) | set(unknown)
    assert total == len(found), "a transaction is whole or not at all"
    for number in acknowledged + unknown:
        write(number)
    again = dynamodb.get_item(TableName="shaken", Key={"id": {"S": "sum"}}, ConsistentRead=True)["Item"]
    assert int(again["n"]["N"]) == len(acknowledged) + len(unknown), "what is tried again with its token counts once"


@case
def what_is_not_there_is_unknown(server):
    dynamodb = client()
    code = "UnknownOperationException"
    message(code, dynamodb.list_global_tables)
    message(code, dynamodb.execute_statement, Statement="SELECT * FROM x")
    message(code, dynamodb.create_backup, TableName="abc", BackupName="abc")


if __name__ == "__main__":
    run()
