"""`tessera replay`: Chakra execution traces, those that Tessera writes and hand-made ones, on a cluster."""

import gzip
import json
import struct
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, SCENARIOS, EndToEnd, settings

SMALL = settings("training.sequence_length=128")
CLUSTER = "hgx-h100-4"
LOAD, STORE, COMPUTE, SEND, RECV, COLLECTIVE = 2, 3, 4, 5, 6, 7
METADATA = 1


def varint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(data + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def delimited(message):
    return varint(len(message)) + message


def attribute(name, value):
    if isinstance(value, bool):
        return data(10, data(1, name) + number(27, value))
    if isinstance(value, str):
        return data(10, data(1, name) + data(29, value))
    return data(10, data(1, name) + number(9, value))


def node(identity, kind, micros=0, after=(), control=(), name="", **attributes):
    """As the converters of Chakra write it: lists of ids packed."""
    message = number(1, identity) + data(2, name or f"node {identity}") + number(3, kind)
    if control:
        message += data(4, b"".join(map(varint, control)))
    if after:
        message += data(5, b"".join(map(varint, after)))
    message += number(7, micros)
    return message + b"".join(attribute(key, value) for key, value in attributes.items())


def trace(*nodes, version="1.0.0"):
    return delimited(data(1, version)) + b"".join(map(delimited, nodes))


class Replay(EndToEnd):
    def write(self, *ranks, groups=None):
        for rank, content in enumerate(ranks):
            (self.folder / f"job.{rank}.et").write_bytes(content)
        if groups is not None:
            (self.folder / "job.groups.json").write_text(json.dumps(groups))

    def replay(self, *options, cluster=CLUSTER, prefix="job"):
        return json.loads(self.answer("replay", prefix, "--cluster", cluster, "--format", "json", *options))

    def step_of(self, *ranks, groups=None, cluster=CLUSTER):
        for old in self.folder.glob("job.*"):
            old.unlink()
        self.write(*ranks, groups=groups)
        return self.replay(cluster=cluster)["step_time_s"]

    def assert_round_trip(self, scenario, cluster, *assignments, version="1.0.0"):
        exact = self.simulate(scenario, *assignments)["step_time_s"]
        self.answer("simulate", scenario, *settings(*assignments), "--chakra", self.folder / "job",
                    "--chakra-version", version)
        self.assertAlmostEqual(self.replay(cluster=cluster)["step_time_s"] / exact, 1, delta=1e-4)

    def test_what_tessera_writes_takes_the_same_time_again(self):
        self.assert_round_trip(DATA_PARALLEL, CLUSTER, "training.sequence_length=128")

    def test_a_pipeline_takes_the_same_time_again(self):
        self.assert_round_trip(PIPELINE, CLUSTER, "training.sequence_length=128", version="0.0.4")

    def test_tensor_parallel_over_half_precision_takes_the_same_time_again(self):
        self.assert_round_trip(SCENARIOS / "llama-3-8b_8xh100_tp8_bf16.yaml", "dgx-h100")

    def test_interleaved_stages_take_the_same_time_again(self):
        self.assert_round_trip(SCENARIOS / "gpt3-2.7b_8xh100_pp4_interleaved_bf16.yaml", "dgx-h100")

    def test_kernels_share_one_stream_and_cpu_nodes_another(self):
        gpu = node(1, COMPUTE, 100), node(2, COMPUTE, 50)
        self.assertAlmostEqual(self.step_of(trace(*gpu)), 150e-6)
        self.assertAlmostEqual(self.step_of(trace(*gpu, node(3, COMPUTE, 170, is_cpu_op=True))), 170e-6)

    def test_both_kinds_of_dependencies_hold_and_metadata_nodes_pass_them_on(self):
        for dependent in (node(3, COMPUTE, 50, after=[2]), node(3, COMPUTE, 50, control=[2])):
            step = self.step_of(trace(dependent, node(2, METADATA, after=[1]),
                                      node(1, COMPUTE, 100, is_cpu_op=True)))
            self.assertAlmostEqual(step, 150e-6)

    def test_a_node_waits_for_any_number_of_others(self):
        last = {"comm_size": 1 << 20, "comm_type": 0}
        waits = [node(identity, COLLECTIVE, **last) for identity in range(1, 6)]
        own = node(6, COMPUTE, 100), node(7, COMPUTE, 300, is_cpu_op=True)
        alone = self.step_of(*[trace(*waits)] * 2)
        both = self.step_of(*[trace(*waits, *own, node(8, COMPUTE, 1000, after=range(1, 8)))] * 2)
        self.assertGreaterEqual(both, max(alone, 300e-6) + 1e-3)

    def test_the_wait_of_a_collective_ends_with_its_last_member(self):
        collective = node(2, COLLECTIVE, after=[1], comm_type=0, comm_size=1 << 20)
        ranks = [trace(node(1, COMPUTE, micros), collective) for micros in (10, 500)]
        alone = self.step_of(*[trace(collective.replace(data(5, varint(1)), b""))] * 2)
        self.assertAlmostEqual(self.step_of(*ranks), 500e-6 + alone, delta=1e-9)

    def test_an_all_gather_counts_what_every_rank_gives(self):
        size = 64 << 20
        gather = self.step_of(*[trace(node(1, COLLECTIVE, comm_type=2, comm_size=size))] * 4)
        scatter = self.step_of(*[trace(node(1, COLLECTIVE, comm_type=7, comm_size=4 * size))] * 4)
        self.assertAlmostEqual(gather / scatter, 1, delta=0.05)

    def test_groups_tell_who_communicates(self):
        def rank(name):
            return trace(node(1, COLLECTIVE, comm_type=0, comm_size=1 << 26, pg_name=name))
        pair = self.step_of(*map(rank, "abab"), groups={"a": [0, 2], "b": [3, 1]})
        every = self.step_of(*map(rank, "cccc"), groups={"c": [0, 1, 2, 3]})
        alone = self.step_of(*map(rank, "aa"), groups={"a": [0, 1]})
        self.assertAlmostEqual(pair / alone, 1, delta=1e-6)
        self.assertNotAlmostEqual(every / pair, 1, delta=0.1)
        self.assertAlmostEqual(self.step_of(*[trace(node(1, COLLECTIVE, comm_type=0, comm_size=1 << 26))] * 4), every)

    def test_messages_of_one_tag_arrive_in_their_order(self):
        sender = [node(i, SEND, after=[i - 1] if i else [], comm_dst=1, comm_tag=7, comm_size=1 << 24)
                  for i in range(3)]
        receiver = [node(i, RECV, after=[i - 1] if i else [], comm_src=0, comm_tag=7, comm_size=1 << 24)
                    for i in range(3)]
        step = self.step_of(trace(*sender), trace(*receiver, node(9, COMPUTE, 100, after=[2])))
        one = self.step_of(trace(sender[0]), trace(receiver[0]))
        self.assertAlmostEqual(step, 3 * one + 100e-6, delta=1e-8)

    def test_work_without_a_duration_takes_the_roofline_s_time(self):
        self.write(trace(node(1, COMPUTE, num_ops=10**12, tensor_size=1)))
        result = self.run_tessera("replay", "job", "--cluster", CLUSTER, "--format", "json")
        self.assertIn("1 nodes have work and no duration: time of the roofline in bf16", result.stderr)
        self.assertAlmostEqual(json.loads(result.stdout)["step_time_s"], 1e12 / 989.4e12, delta=1e-6)

    def test_reads_gzip_and_other_widths_of_numbers(self):
        wide = (number(1, 1) + number(3, COLLECTIVE) + data(10, data(1, "comm_type") + number(7, 0)) +
                data(10, data(1, "comm_size") + number(13, 1 << 20)) +
                data(10, data(1, "other") + varint(3 << 3 | 1) + struct.pack("<d", 1.5)))
        plain = self.step_of(*[trace(node(1, COLLECTIVE, comm_type=0, comm_size=1 << 20))] * 2)
        self.assertEqual(self.step_of(*[gzip.compress(trace(wide))] * 2), plain)

    def test_says_what_is_wrong_with_a_file(self):
        good = trace(node(1, COMPUTE, 10))
        cases = [
            (b"", "is empty"), (good[:-2], "node 0: ends 2 bytes too early"),
            (trace(node(1, COMPUTE), version="0.0.1"), 'name schema version "0.0.1"'),
            (trace(node(1, 9)), "node type 9"), (trace(), "has no nodes"),
            (trace(node(1, COMPUTE, after=[5])), "depends on id 5, which no node has"),
            (trace(node(1, COMPUTE), node(1, COMPUTE)), "repeats the id of another node"),
            (trace(node(1, COMPUTE, after=[2]), node(2, COMPUTE, after=[1])), "depends on nodes that depend on it"),
            (trace(node(1, COLLECTIVE, comm_size=-5, comm_type=0)), "comm_size is -5"),
            (trace(node(1, COLLECTIVE, comm_size=5, comm_type=12)), "comm_type is 12"),
            (trace(node(1, COLLECTIVE, comm_size=5, comm_type=3)), "gather or scatter"),
            (trace(node(1, COLLECTIVE, comm_size=5, comm_type=0, pg_name="x")), 'group "x", which the groups file'),
            (trace(node(1, SEND, comm_dst=3, comm_size=5)), "sends to rank 3"),
            (b"{\"not\": \"protobuf\"}" * 9, "give a Chakra execution trace"),
        ]
        for content, message in cases:
            self.write(content)
            self.assert_fails(3, message, "replay", "job", "--cluster", CLUSTER)
            self.assertIn("job.0.et", self.run_tessera("replay", "job", "--cluster", CLUSTER).stderr)

    def test_says_what_does_not_fit_together(self):
        collective = node(1, COLLECTIVE, comm_size=5, comm_type=0)
        self.write(trace(collective), trace(node(1, COMPUTE, 1)))
        self.assert_fails(3, "rank 1: collective 0 of listed group 0 is missing", "replay", "job", "--cluster", CLUSTER)
        self.write(trace(node(1, SEND, comm_dst=1, comm_size=5)), trace(node(1, COMPUTE, 1)))
        self.assert_fails(3, "1 are sent and 0 received", "replay", "job", "--cluster", CLUSTER)
        self.write(*[trace(node(1, COMPUTE, 1))] * 5)
        self.assert_fails(3, "5 ranks do not fit on 4 GPUs", "replay", "job", "--cluster", CLUSTER)
        self.assert_fails(3, "none.0.et", "replay", "none", "--cluster", CLUSTER)
        self.write(trace(collective), groups={"1": ["a"]})
        self.assert_fails(3, "job.groups.json", "replay", "job", "--cluster", CLUSTER)

    def test_names_of_any_bytes_reach_all_outputs(self):
        name = "</script><img onerror=x>\n" + "é"
        self.write(trace(number(1, 1) + data(2, name.encode() + b"\xff") + number(3, COMPUTE) + number(7, 5)))
        self.answer("replay", "job", "--cluster", CLUSTER, "--trace", "step.json", "--picture", "step.svg",
                    "--report", "step.html")
        self.assertNotIn("<img", (self.folder / "step.html").read_text())
        self.assertNotIn("<img", (self.folder / "step.svg").read_text())
        names = [event["name"] for event in json.loads((self.folder / "step.json").read_text())["traceEvents"]]
        self.assertTrue(any("</script><img onerror=x> é" in name for name in names))


    def test_json_traces_of_pytorch_are_named(self):
        """What torch.profiler writes beside Chakra traces, under its own name and under a Chakra trace's."""
        observed = {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026-01-01 00:00:00", "start_ts": 1, "nodes": [
            {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "attrs": []}]}
        profile = {"schemaVersion": 1, "traceEvents": []}
        for name in ("job.0.et", "trace.json"):
            prefix = "job" if name == "job.0.et" else name
            self.plant(name, json.dumps(observed))
            self.assert_fails(3, "is an execution trace of PyTorch (JSON, schema 1.1.1-chakra.0.0.4)", "replay", prefix,
                              "--cluster", CLUSTER)
            self.plant(name, json.dumps(profile))
            self.assert_fails(3, "is a profile of torch.profiler (Kineto)", "replay", prefix, "--cluster", CLUSTER)


if __name__ == "__main__":
    unittest.main()
