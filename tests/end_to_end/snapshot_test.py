"""Memory snapshots: python3's own pickle reads what is written, and writes what is read."""

import json
import pickle
import unittest

from tessera_command import DATA_PARALLEL, EndToEnd

MIB = 1 << 20
BASE = 0x7F0000000000


class Evil:
    """Unpickled by pickle, it would leave a file."""

    def __init__(self, file):
        self.file = str(file)

    def __reduce__(self):
        return open, (self.file, "w")


def frames(file, name):
    return [{"filename": file, "line": 3, "name": name}]


def snapshot():
    """12 MiB of weights from before the recording; 20 MiB of activations and 12 of gradients meet."""
    torch = "/usr/lib/python3/dist-packages/torch/"
    blocks = [{"address": BASE, "size": 12 * MIB, "requested_size": 12 * MIB - 100, "state": "active_allocated",
               "frames": frames(torch + "nn/modules/module.py", "_apply")},
              {"address": BASE + 12 * MIB, "size": 12 * MIB, "requested_size": 12 * MIB, "state": "active_allocated",
               "frames": frames(torch + "autograd/__init__.py", "backward")},
              {"address": BASE + 24 * MIB, "size": 40 * MIB, "requested_size": 0, "state": "inactive", "frames": []}]
    def event(action, offset, size, *stack):
        return {"action": action, "addr": BASE + offset, "size": size, "stream": 0, "frames": frames(*stack) if stack else [],
                "time_us": 1}
    trace = [event("alloc", 24 * MIB, 20 * MIB, "model.py", "forward"),
             event("alloc", 12 * MIB, 12 * MIB, torch + "autograd/__init__.py", "backward"),
             event("free_requested", 24 * MIB, 20 * MIB), event("free_completed", 24 * MIB, 20 * MIB)]
    segment = {"device": 0, "address": BASE, "total_size": 64 * MIB, "allocated_size": 24 * MIB, "active_size": 24 * MIB,
               "stream": 0, "segment_type": "large", "is_expandable": False, "frames": [], "blocks": blocks}
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {"max_split_size": -1, "ratio": 0.5}}


class Snapshots(EndToEnd):
    def write(self, value, protocol=4):
        file = self.folder / "snapshot.pickle"
        file.write_bytes(pickle.dumps(value, protocol))
        return file

    def test_reads_the_device_that_a_process_computes_on(self):
        other = snapshot()
        stray = {**other["segments"][0], "total_size": 2 * MIB, "allocated_size": 0, "blocks": [
            {"address": BASE, "size": 2 * MIB, "requested_size": 0, "state": "inactive", "frames": []}]}
        value = {**other, "segments": [stray, {**other["segments"][0], "device": 1}], "device_traces": [[], other["device_traces"][0]]}
        answer = json.loads(self.answer("snapshot", "read", self.write(value), "--format", "json"))
        self.assertEqual(answer["measured"]["allocated_bytes"], (12 + 20 + 12) * MIB)

    def test_reads_what_pickle_writes_in_every_protocol(self):
        for protocol in (2, 3, 4, 5):
            with self.subTest(protocol=protocol):
                answer = json.loads(self.answer("snapshot", "read", self.write(snapshot(), protocol), "--format", "json"))
                measured = answer["measured"]
                self.assertEqual(measured["allocated_bytes"], (12 + 20 + 12) * MIB)
                self.assertEqual(measured["reserved_bytes"], 64 * MIB)
                uses = {name: bytes // MIB for name, bytes in measured["at_peak_bytes"].items() if bytes}
                self.assertEqual(uses, {"parameters": 12, "activations": 20, "gradients": 12})

    def test_pickle_reads_what_is_written(self):
        file = self.folder / "step.pickle"
        result = self.run_tessera("simulate", DATA_PARALLEL, "--snapshot-out", file)
        self.assertIn(result.returncode, (0, 4), result.stderr)
        written = pickle.loads(file.read_bytes())
        self.assertEqual(file.read_bytes()[:2], b"\x80\x04")
        self.assertEqual(set(written), {"segments", "device_traces"})
        for segment in written["segments"]:
            self.assertEqual(sum(block["size"] for block in segment["blocks"]), segment["total_size"])
            address = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], address)
                address += block["size"]
        live = {}  # what is taken is given back once, with its size
        for event in written["device_traces"][0]:
            if event["action"] == "alloc":
                self.assertNotIn(event["addr"], live)
                live[event["addr"]] = event["size"]
            elif event["action"] == "free_completed":
                self.assertEqual(live.pop(event["addr"]), event["size"])
        held = {block["address"]: block["size"] for segment in written["segments"] for block in segment["blocks"]
                if block["state"] == "active_allocated"}
        self.assertEqual(live, held)

    def test_a_step_compares_with_itself(self):
        file = self.folder / "step.pickle"
        self.run_tessera("simulate", DATA_PARALLEL, "--snapshot-out", file)
        answer = json.loads(self.answer("snapshot", "read", file, "--scenario", DATA_PARALLEL, "--format", "json"))
        self.assertEqual(answer["measured"], answer["simulated"])
        memory = self.simulate(DATA_PARALLEL)["memory"]
        self.assertLess(abs(answer["measured"]["reserved_bytes"] / memory["reserved_bytes"] - 1), 0.01)

    def test_runs_nothing(self):
        trap = self.folder / "trap"
        result = self.run_tessera("snapshot", "read", self.write({"segments": [Evil(trap)]}))
        self.assertEqual(result.returncode, 3)
        self.assertIn("would run code", result.stderr)
        self.assertIn("byte ", result.stderr)
        self.assertFalse(trap.exists())

    def test_says_what_is_no_snapshot(self):
        for value, word in (({"traces": []}, "segments"), ("text", "snapshot"), ({"segments": [{}]}, "segments[0]")):
            with self.subTest(word=word):
                result = self.run_tessera("snapshot", "read", self.write(value))
                self.assertEqual(result.returncode, 3)
                self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main()
