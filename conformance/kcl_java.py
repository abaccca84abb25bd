"""The Kinesis Client Library for Java, version 3: two applications at a time, one that polls and one with fan-out.

Each has two workers, of which the second starts when the first is at work and gets a shard handed over; then come a split,
a crash of the server, a merge and another crash. All the while records are written. At the end every record that was
acknowledged has been processed, those of a key in their order, and the leases say so.
"""

import os
import sys
import time

from harness import case, eventually, run
from kcl_fleet import Application, client, together


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


def crash(server, applications):
    """Ends the server while records are written, but not while a shard changes hands."""
    for each in applications:
        each.wait("an end of handovers", lambda: not any("checkpointOwner" in lease for lease in each.leases().values()))
    server.kill()


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
        together(applications, lambda each: each.finish())
        told("all records are processed")
        time.sleep(1)
        orderly = [each.stop() for each in applications]
        assert all(orderly), orderly
        told("the workers have stopped")
        together(applications, lambda each: each.check_records())
        together(applications, check_leases)
    finally:
        for each in applications:
            each.writer.ended.set()
            each.stop(grace=5)


run()
