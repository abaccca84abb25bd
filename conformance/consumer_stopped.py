"""Workers of ours on a server that stands still, workers that stand still themselves, and workers whose clock is set.

All the while records are written. Nothing is lost, those of a key come in their order, a checkpoint never goes back, and a worker
begins anew behind its checkpoint.
"""

import glob
import os
import signal
import time
from collections import Counter
from contextlib import contextmanager

from harness import Skipped, case, run, skipped
from kcl_fleet import Application, Lookout, check_deliveries, client, keys

SHARDS = 4
# A lease holds for five seconds.
STANDSTILL = 8


class Fleet(Application):
    """Two workers of ours."""

    def __init__(self, server, name, **more):
        super().__init__(server, "POLLING", name, SHARDS, keys())
        self.lookout, self.more = Lookout(self), more

    def begin(self):
        self.work_of_ours("one", **self.more)
        self.wait_for_shards(*range(SHARDS))
        self.work_of_ours("two")
        self.lookout.start()
        self.wait_for_shares(one=2, two=2)

    def wait_for_shares(self, **shares):
        def owners():
            return Counter(lease["leaseOwner"]["S"] if "leaseOwner" in lease and "checkpointOwner" not in lease else None
                           for lease in self.leases().values())

        self.wait(f"the shares {shares}", lambda: owners() == shares)

    def go_on(self):
        """Waits until records come through again that are written from now on."""
        behind = self.writer.acknowledged + 1
        self.wait("everything to go on", lambda: all(behind in self.numbers(key) for key in self.keys))

    @contextmanager
    def standing(self, process):
        """Stops a process for as long as the body runs."""
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def end(self):
        """Stops everything and checks it. Returns what was processed twice."""
        self.finish()
        time.sleep(1)
        orderly = self.stop()
        self.lookout.ended.set()
        self.lookout.join()
        self.check_records()
        twice = sum((check_deliveries(self.lookout, worker) for worker in ("one", "two")), Counter())
        reached = {}
        for _, leases in self.lookout.looks:
            for shard, (_, checkpoint) in leases.items():
                number = int(checkpoint) if checkpoint.isdigit() else 0
                assert number >= reached.get(shard, 0), ("a checkpoint goes back", shard, checkpoint, reached[shard])
                reached[shard] = number
        assert len(self.lookout.looks) > 50, len(self.lookout.looks)
        for shard, number in reached.items():
            last = self.seen("record", shard=shard)[-1]["sequence"]
            assert self.leases()[shard[-1]]["checkpoint"]["S"] == last, (shard, last)
        assert orderly
        return twice

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *_):
        self.lookout.ended.set()
        self.writer.ended.set()
        self.stop(grace=5)


@case
def a_server_that_stands_still_for_longer_than_a_lease(server):
    with Fleet(server, "standing-server") as fleet:
        for _ in range(2):
            with fleet.standing(server.process):
                time.sleep(STANDSTILL)
            fleet.go_on()
        fleet.end()


@case
def a_worker_that_stands_still_loses_its_leases_and_comes_back(server):
    with Fleet(server, "standing-worker") as fleet:
        with fleet.standing(fleet.workers["one"]):
            fleet.wait_for_shares(two=SHARDS)
            fleet.go_on()
        fleet.wait_for_shares(one=2, two=2)
        fleet.go_on()
        fleet.end()


@case
def a_worker_whose_clock_is_set(server):
    libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not libraries:
        skipped("workers whose clock is set: there is no libfaketime")
        raise Skipped
    clock = os.path.join(server.folder.name, "clock")

    def set_clock(by):
        # A file that is read while it is written has no time in it.
        with open(f"{clock}.new", "w") as file:
            file.write(by)
        os.rename(f"{clock}.new", clock)

    set_clock("+0")
    # What a process measures goes on evenly, as it does where somebody sets the clock of a machine.
    fake = {"LD_PRELOAD": libraries[0], "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with Fleet(server, "set-clock", **fake) as fleet:
        def is_off_by(seconds):
            key = {"wid": {"S": "one"}}
            row = client("dynamodb").get_item(TableName=f"{fleet.name}-WorkerMetricStats", Key=key, ConsistentRead=True)
            return abs(int(row["Item"]["lut"]["N"]) - time.time() - seconds) < 20

        # By a day or more a worker counts as gone, to Java's leaders as well as to ours.
        for seconds in [43_200, -43_200, 3_600, -60, 0]:
            set_clock(f"{seconds:+}")
            # It says what time it is three times a minute at least.
            fleet.wait(f"a clock that is {seconds} s off", lambda: is_off_by(seconds))
            fleet.go_on()
        twice = fleet.end()
        assert not twice.total(), twice


run()
