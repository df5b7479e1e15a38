"""Perfetto's own format and Chakra's, read back by a decoder of the Protobuf wire format that shares nothing with ours."""

import gzip
import json
import unittest
from collections import Counter, defaultdict

from tessera_command import DATA_PARALLEL, PIPELINE, EndToEnd, settings

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
SMALL = settings("training.sequence_length=128")


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Field number -> values in order: integers, or bytes of texts and messages."""
    found, at = defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert tag & 7 == 2, tag
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        found[tag >> 3].append(value)
    return found


def delimited(data):
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        yield fields(data[at:at + length])
        at += length


class Perfetto(EndToEnd):
    def traces(self, scenario):
        """Events of the JSON trace, and packets of the native one, of the same step."""
        for name in ("step.json", "step.pftrace", "step.pftrace.gz"):
            self.answer("simulate", scenario, *SMALL, "--trace", self.folder / name)
        native = (self.folder / "step.pftrace").read_bytes()
        self.assertEqual(gzip.decompress((self.folder / "step.pftrace.gz").read_bytes()), native)
        events = json.loads((self.folder / "step.json").read_text())["traceEvents"]
        return events, [fields(packet) for packet in fields(native)[1]]

    def test_a_native_trace_holds_what_the_json_holds(self):
        events, packets = self.traces(PIPELINE)
        names, tracks, slices, flows = {}, {}, [], Counter()
        open_slices = defaultdict(list)
        for packet in packets:
            for entry in (fields(names_) for interned in packet[12] for names_ in fields(interned)[2]):
                names[entry[1][0]] = entry[2][0].decode()
            for descriptor in map(fields, packet[60]):
                tracks[descriptor[1][0]] = descriptor
        timed = [(packet[8][0], fields(packet[11][0])) for packet in packets if packet[11]]
        for time, event in sorted(timed, key=lambda entry: entry[0]):
            track, kind = event[11][0], event[9][0]
            self.assertIn(track, tracks)
            if kind == BEGIN:
                arguments = json.loads(fields(event[4][0])[9][0])
                open_slices[track].append((names[event[10][0]], event[22][0].decode(), time, arguments))
            elif kind == END:
                name, category, begin, arguments = open_slices[track].pop()
                slices.append((name, category, begin, time - begin, json.dumps(arguments, sort_keys=True)))
            elif kind == INSTANT:
                flows["s" if event[47] else "f"] += 1
        self.assertFalse(any(open_slices.values()))

        def nanoseconds(value):
            return round(value * 1000)
        expected = [(event["name"], event["cat"], nanoseconds(event["ts"]), nanoseconds(event["dur"]),
                     json.dumps(event["args"], sort_keys=True)) for event in events if event["ph"] == "X"]
        self.assertGreater(len(expected), 1000)
        self.assertEqual(Counter(slices), Counter(expected))
        self.assertEqual(flows, Counter(event["ph"] for event in events if event["ph"] in "sf"))
        counted = [(time, event[30][0]) for time, event in timed if event[9][0] == COUNTER]
        self.assertEqual(Counter(counted), Counter((nanoseconds(event["ts"]), *event["args"].values())
                                                   for event in events if event["ph"] == "C"))

    def test_the_critical_path_is_a_track_without_a_gap(self):
        events, _ = self.traces(PIPELINE)
        pieces = [event for event in events if event.get("cat") == "critical path"]
        self.assertEqual({event["pid"] for event in pieces}, {6}, "behind four GPUs and the links")
        self.assertEqual(pieces[0]["ts"], 0)
        for piece, after in zip(pieces, pieces[1:]):
            self.assertAlmostEqual(piece["ts"] + piece["dur"], after["ts"], delta=1e-6)
        last = max(event["ts"] + event["dur"] for event in events if event.get("cat") == "segment")
        self.assertAlmostEqual(pieces[-1]["ts"] + pieces[-1]["dur"], last, delta=1e-3)

    def test_counters_of_links_add_up_to_what_messages_hold(self):
        events, _ = self.traces(PIPELINE)
        end = max(event["ts"] + event["dur"] for event in events if event.get("cat") == "segment")
        sent = sum(event["args"]["bytes"] for event in events if event["ph"] == "X" and event["name"].startswith("send to stage"))
        carried = 0
        for link in (f"node0/gpu{i}->gpu{j} [MB/s]" for i in range(4) for j in range(4) if abs(i - j) == 1):
            counted = [(event["ts"], event["args"]["MB/s"]) for event in events if event["name"] == link] + [(end, 0)]
            carried += sum(rate * (after - time) for (time, rate), (after, _) in zip(counted, counted[1:]))
        self.assertAlmostEqual(carried / sent, 1, delta=0.05)

    def test_kernels_have_their_share_of_the_roofline(self):
        events, _ = self.traces(DATA_PARALLEL)
        shares = [event["args"]["roofline_percent"] for event in events if event["ph"] == "X" and event["args"].get("kind") == "gemm"]
        self.assertGreater(len(shares), 100)
        self.assertTrue(all(0 < share <= 100 for share in shares))

    def test_tracks_have_parents_and_names(self):
        events, packets = self.traces(DATA_PARALLEL)
        descriptors = [fields(descriptor) for packet in packets for descriptor in packet[60]]
        processes = {entry[1][0]: fields(entry[3][0])[6][0].decode() for entry in descriptors if entry[3]}
        self.assertEqual(sorted(processes.values()),
                         sorted(event["args"]["name"] for event in events if event["name"] == "process_name"))
        for entry in descriptors:
            self.assertTrue(entry[3] or entry[5][0] in processes)


class Chakra(EndToEnd):
    def ranks(self, scenario, count, version="1.0.0"):
        """Nodes of every rank by id, as (type, name, dependencies, attributes), and the groups."""
        self.answer("simulate", scenario, *SMALL, "--chakra", self.folder / "step", "--chakra-version", version)
        self.assertEqual(self.files(), sorted([*(f"step.{rank}.et" for rank in range(count)), "step.groups.json"]))
        ranks = []
        for rank in range(count):
            metadata, *nodes = delimited((self.folder / f"step.{rank}.et").read_bytes())
            self.assertEqual(metadata[1][0].decode(), version)
            ranks.append({node[1][0]: (node[3][0], node[2][0].decode(), node[5], self.attributes(node), node[7])
                          for node in nodes})
            self.assertEqual(len(ranks[-1]), len(nodes))
        return ranks, json.loads((self.folder / "step.groups.json").read_text())

    @staticmethod
    def attributes(node):
        entries = [fields(entry) for entry in node[10]]
        return {entry[1][0].decode(): (entry[9] or entry[29] or entry[27])[0] for entry in entries}

    def test_dependencies_come_before_what_waits_for_them(self):
        for nodes in self.ranks(PIPELINE, 4)[0]:
            for number, (_, _, dependencies, _, _) in nodes.items():
                for dependency in dependencies:
                    self.assertIn(dependency, nodes)
                    self.assertLess(dependency, number)

    def test_every_message_has_its_other_end(self):
        ranks, _ = self.ranks(PIPELINE, 4, version="0.0.4")
        ends = {5: Counter(), 6: Counter()}
        for nodes in ranks:
            for kind, _, _, attributes, _ in nodes.values():
                if kind in ends:
                    ends[kind][tuple(attributes[f"comm_{key}"] for key in ("src", "dst", "tag", "size"))] += 1
        self.assertGreater(len(ends[5]), 8)
        self.assertEqual(ends[5], ends[6])

    def test_members_of_a_group_call_the_same_collectives(self):
        ranks, groups = self.ranks(DATA_PARALLEL, 4)
        called = [Counter((attributes["pg_name"].decode(), attributes["comm_type"], attributes["comm_size"])
                          for kind, _, _, attributes, _ in nodes.values() if kind == 7) for nodes in ranks]
        self.assertTrue(called[0])
        self.assertEqual(called, [called[0]] * 4)
        for name, _, _ in called[0]:
            self.assertEqual(groups[name], [0, 1, 2, 3])

    def test_kernels_carry_their_time_and_work(self):
        step = self.simulate(DATA_PARALLEL, "training.sequence_length=128")
        nodes = self.ranks(DATA_PARALLEL, 4)[0][0]
        compute = [(attributes, micros) for kind, _, _, attributes, micros in nodes.values() if kind == 4]
        nanoseconds = sum(attributes["duration_ns"] for attributes, _ in compute)
        kernels = sum(kind["seconds"] for kind in step["kernel_kinds"])
        self.assertAlmostEqual(nanoseconds * 1e-9, kernels, delta=1e-9 * len(compute))
        for attributes, micros in compute:
            self.assertAlmostEqual((micros or [0])[0] * 1000, attributes["duration_ns"], delta=501)


if __name__ == "__main__":
    unittest.main()
