"""Workers of the Kinesis Client Library for Java, version 3, and of ours in one application, on our server.

Two applications at a time: in one a worker of Java's is first and leads, in the other one of ours. The second worker is of the
other kind and gets shards handed over. Then come a split and a merge, and the first worker is killed: the other kind goes on. All
the while records are written. At the end every record that was acknowledged has been processed, those of a key in their
order, and only what the killed worker had in hand was processed twice.

Then a worker of each kind goes on while the server is killed again and again, and is away once for longer than a lease holds. Nothing
is lost, the order of a key is kept, and ours process nothing again that the table said was processed.
"""

import os
import sys
import time
from collections import Counter

from harness import case, eventually, run
from kcl_fleet import Application, Lookout, check_deliveries, client, keys, together

SHARDS = 4
# How long the server stays away each time it is killed; a lease holds for five seconds. What lies between two deaths is
# no multiple of anything that workers do regularly.
AWAY = [0, 0, 0.5, 0, 1.3, 0, 0, 2.1, 0, 8, 0, 0]
BETWEEN = 2.37


class Mixed(Application):
    """An application whose first worker is of one kind and whose second is of the other."""

    def __init__(self, server, first, second, name=None):
        super().__init__(server, "POLLING", name or f"mixed-{first}-first", SHARDS, keys())
        self.first, self.second = first, second
        self.killed_after = None

    def start(self, kind):
        (self.work if kind == "java" else self.work_of_ours)(kind)

    def owners(self):
        """Who reads the shards that have not ended: those that change hands have nobody."""
        open_leases = [lease for lease in self.leases().values() if lease["checkpoint"]["S"] != "SHARD_END"]
        return Counter(lease["leaseOwner"]["S"] if "leaseOwner" in lease and "checkpointOwner" not in lease else None
                       for lease in open_leases)

    def wait_for_share(self, worker, least=1):
        self.wait(f"shards of {worker}", lambda: self.owners()[worker] >= least and self.owners()[None] == 0)

    def check_nothing_twice(self):
        """Nobody died so far, so nothing was processed twice: neither at a handover nor at the end of a shard."""
        counts = Counter(line["sequence"] for line in self.seen("record"))
        twice = [line for line in self.seen("record") if counts[line["sequence"]] > 1]
        assert not twice, (self.name, len(twice), twice[:6])

    def crash(self):
        self.killed_after = len(self.seen("record"))
        self.kill(self.first)
        behind, begun = self.writer.acknowledged, time.monotonic()
        self.wait(f"{self.second} to go on alone", lambda: all(behind in self.numbers(key) for key in self.keys))
        return time.monotonic() - begun

    def check_repetitions(self):
        """What was processed twice was first in the hands of the one that was killed."""
        first = {}
        for line in self.seen("record"):
            before = first.setdefault(line["sequence"], line["worker"])
            assert before == line["worker"] or before == self.first, (self.name, before, line)
        of_the_other = Counter(line["sequence"] for line in self.seen("record", worker=self.second))
        assert not [sequence for sequence, count in of_the_other.items() if count > 1], self.name

    def check_leases(self):
        leases = self.leases()
        for name, lease in leases.items():
            assert "checkpointOwner" not in lease, lease
            if lease["checkpoint"]["S"] != "SHARD_END":
                last = self.seen("record", shard=lease["leaseKey"]["S"])[-1]["sequence"]
                assert lease["checkpoint"]["S"] == last, (name, lease, last)
        children = {"0": "45", "1": "6", "5": "6"}
        for name, expected in children.items():
            if name in leases:
                assert leases[name]["checkpoint"]["S"] == "SHARD_END", leases[name]
                assert sorted(child[-1] for child in leases[name]["childShardIds"]["SS"]) == list(expected), leases[name]


@case
def java_and_rust_workers_in_one_application(server):
    applications = [Mixed(server, "java", "rust"), Mixed(server, "rust", "java")]
    kinesis = client("kinesis")
    begun = time.monotonic()

    def told(what):
        if os.environ.get("KCL_VERBOSE"):
            print(f"{time.monotonic() - begun:6.1f} s {what}", file=sys.stderr)

    try:
        together(applications, lambda each: each.start(each.first))
        together(applications, lambda each: each.wait_for_shards(*range(SHARDS)))
        told("the first workers are at work")
        together(applications, lambda each: each.start(each.second))
        together(applications, lambda each: each.wait_for_share(each.second))
        for each in applications:
            each.wait(f"records of {each.second}", lambda: each.seen("record", worker=each.second))
        together(applications, Mixed.check_nothing_twice)
        told("shards were handed over, from Java to ours and from ours to Java")
        for each in applications:
            kinesis.split_shard(StreamName=each.name, ShardToSplit="shardId-000000000000", NewStartingHashKey=str(2**125))
        together(applications, lambda each: each.wait_for_shards(4, 5))
        told("children of the split are read")
        for each in applications:
            kinesis.merge_shards(StreamName=each.name, ShardToMerge="shardId-000000000005",
                                 AdjacentShardToMerge="shardId-000000000001")
        together(applications, lambda each: each.wait_for_shards(6))
        told("the child of the merge is read")
        together(applications, lambda each: each.wait_for_share(each.first))
        together(applications, lambda each: each.wait_for_share(each.second))
        together(applications, Mixed.check_nothing_twice)
        for each in applications:
            told(f"{each.first} was killed, and {each.second} went on alone after {each.crash():.1f} s")
        together(applications, lambda each: each.finish())
        told("all records are processed")
        time.sleep(1)
        orderly = [each.stop() for each in applications]
        assert all(orderly), orderly
        together(applications, lambda each: each.check_records())
        together(applications, Mixed.check_repetitions)
        together(applications, Mixed.check_leases)
    finally:
        for each in applications:
            each.writer.ended.set()
            each.stop(grace=5)


@case
def a_server_that_is_killed_again_and_again(server):
    application = Mixed(server, "java", "rust", "mixed-crashes")
    lookout = Lookout(application)
    try:
        application.start("java")
        application.wait_for_shards(*range(SHARDS))
        application.start("rust")
        for worker in ("java", "rust"):
            application.wait_for_share(worker)
        lookout.start()
        kinesis = client("kinesis")
        for number, away in enumerate(AWAY):
            time.sleep(BETWEEN)
            server.kill(away)
            if number == 2:
                kinesis.split_shard(StreamName=application.name, ShardToSplit="shardId-000000000000", NewStartingHashKey=str(2**125))
            if number == 7:
                kinesis.merge_shards(StreamName=application.name, ShardToMerge="shardId-000000000005",
                                     AdjacentShardToMerge="shardId-000000000001")
            behind = application.writer.acknowledged
            eventually(lambda: application.writer.acknowledged > behind, "more records")
        behind = application.writer.acknowledged
        application.wait("everything to go on", lambda: all(behind in application.numbers(key) for key in application.keys))
        application.wait_for_shards(4, 5, 6)
        for worker in ("java", "rust"):
            application.wait_for_share(worker)
        application.finish()
        time.sleep(1)
        orderly = application.stop()
        lookout.ended.set()
        lookout.join()
        application.check_records()
        twice = check_deliveries(lookout, "rust")
        if os.environ.get("KCL_VERBOSE"):
            print(f"{len(application.seen('record'))} records, twice: {dict(twice)}", file=sys.stderr)
        assert orderly
        application.check_leases()
    finally:
        lookout.ended.set()
        application.writer.ended.set()
        application.stop(grace=5)


run()
