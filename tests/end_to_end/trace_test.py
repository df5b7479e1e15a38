"""The trace file of a real step shows what the result says. Times in it are microseconds, whole nanoseconds."""

import collections
import gzip
import json
import re
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, SCENARIOS, EndToEnd


def nanoseconds(microseconds):
    return round(microseconds * 1000)


class Trace:
    def __init__(self, text):
        """What GPUs did, without what was found out about it (native_traces_test.py)."""
        events = json.loads(text)["traceEvents"]
        gpus = {event["pid"] for event in events if event["name"] == "process_name" and event["args"]["name"].startswith("GPU ")}
        self.events = [event for event in events if event["pid"] in gpus]

    def of_phase(self, phase):
        return [event for event in self.events if event["ph"] == phase]

    def names(self, kind):
        """Names of processes or threads by (pid, tid)."""
        return {(event["pid"], event["tid"]): event["args"]["name"] for event in self.of_phase("M")
                if event["name"] == kind}

    def slices(self, *categories):
        """(begin, end, event) by track, in order [ns]."""
        tracks = collections.defaultdict(list)
        for event in self.of_phase("X"):
            if event["cat"] in categories:
                begin = nanoseconds(event["ts"])
                tracks[event["pid"], event["tid"]].append((begin, begin + nanoseconds(event["dur"]), event))
        return {track: sorted(slices, key=lambda slice: slice[:2]) for track, slices in tracks.items()}

    def memory(self):
        """Samples [B] by process, in order."""
        samples = collections.defaultdict(list)
        for event in self.of_phase("C"):
            samples[event["pid"]].append(event["args"]["bytes"])
        return samples


class TraceFile(EndToEnd):
    def trace_of(self, scenario):
        self.result = json.loads(
            self.answer("simulate", scenario, "--format", "json", "--trace", f"{scenario.stem}.json.gz"))
        with gzip.open(self.folder / f"{scenario.stem}.json.gz", "rt", encoding="utf-8") as file:
            return Trace(file.read())

    def test_gpus_are_processes_and_streams_are_threads(self):
        trace = self.trace_of(PIPELINE)
        processes = trace.names("process_name")
        self.assertEqual(list(processes.values()),
                         [f"GPU {rank} (H100-SXM5-80GB, stage {rank}, tensor 0, data 0)" for rank in range(4)])
        threads = trace.names("thread_name")
        self.assertEqual(set(threads), set(trace.slices("segment", "communication")))
        for process, _ in processes:
            streams = [name for (pid, _), name in threads.items() if pid == process]
            self.assertEqual(set(streams), {"compute", "pipeline_send", "pipeline_recv", "data_comm"})
            self.assertEqual(len(streams), 4)

    def test_every_rank_is_drawn_where_none_stands_for_others(self):
        names = self.trace_of(DATA_PARALLEL).names("process_name")
        self.assertEqual([name.split(",")[-1] for name in names.values()], [" for 4 GPUs)"])
        self.answer("simulate", DATA_PARALLEL, "--set", "simulation.fold.data=false", "--trace", "all.json")
        all_ranks = Trace((self.folder / "all.json").read_text()).names("process_name")
        self.assertEqual(len(all_ranks), 4)

    def test_slices_of_a_stream_do_not_overlap(self):
        for scenario in (DATA_PARALLEL, PIPELINE, SCENARIOS / "gpt2-large_4xh100_tp4.yaml"):
            trace = self.trace_of(scenario)
            for categories in (("segment", "communication"), ("kernel",)):
                for slices in trace.slices(*categories).values():
                    for (_, end, _), (begin, _, later) in zip(slices, slices[1:]):
                        self.assertLessEqual(end, begin, later)

    def test_kernels_lie_in_their_segments_and_fill_them(self):
        trace = self.trace_of(DATA_PARALLEL)
        kernels = trace.slices("kernel")
        for track, segments in trace.slices("segment").items():
            busy = sum(end - begin for begin, end, _ in segments)
            self.assertAlmostEqual(sum(end - begin for begin, end, _ in kernels[track]), busy, delta=1e-6 * busy)

    def test_every_kernel_of_the_program_is_drawn(self):
        trace = self.trace_of(DATA_PARALLEL)
        timed = self.answer("show", "timed", DATA_PARALLEL)
        launches = dict(re.findall(r"(?m)^(\S+): [\d.]+ ms, (\d+) kernels", timed))
        expected = sum(int(launches[segment["name"]]) * segment["runs"] for segment in self.result["segments"])
        self.assertEqual([len(kernels) for kernels in trace.slices("kernel").values()], [expected])  # one GPU for all four

    def test_the_last_slice_ends_with_the_step(self):
        for scenario in (DATA_PARALLEL, PIPELINE):
            trace = self.trace_of(scenario)
            ends = [end for slices in trace.slices("segment", "communication").values() for _, end, _ in slices]
            self.assertAlmostEqual(max(ends), self.result["step_time_s"] * 1e9, delta=1)

    def test_an_arrow_leads_from_every_send_to_its_receive(self):
        trace = self.trace_of(PIPELINE)
        slices = trace.slices("communication")
        starts = {event["id"]: event for event in trace.of_phase("s")}
        ends = {event["id"]: event for event in trace.of_phase("f")}
        # Three boundaries, forward and backward, eight micro-batches.
        self.assertEqual((len(starts), set(starts)), (3 * 2 * 8, set(ends)))
        for arrow, start in starts.items():
            send = self.slice_around(slices, start)
            receive = self.slice_around(slices, ends[arrow])
            self.assertEqual(send["name"], f"send to stage {receive['pid'] - 1}")
            self.assertEqual(receive["name"], f"recv from stage {send['pid'] - 1}")
            for key in ("phase", "micro_batch", "bytes", "tag"):
                self.assertEqual(send["args"][key], receive["args"][key])

    def slice_around(self, slices, event):
        """The slice that holds an end of an arrow; it takes no time where the message was there before it."""
        time = nanoseconds(event["ts"])
        around = [slice for begin, end, slice in slices[event["pid"], event["tid"]]
                  if begin <= time < max(end, begin + 1)]
        self.assertEqual(len(around), 1, event)
        return around[0]

    def test_memory_starts_and_ends_with_what_is_static_and_peaks_as_reported(self):
        for scenario in (DATA_PARALLEL, PIPELINE):
            memory = self.trace_of(scenario).memory()
            for rank in self.result["memory"]["per_rank"]:
                samples = memory[rank["rank"] + 1]
                workspaces = samples[0] - rank["static_bytes"]
                self.assertTrue(0 <= workspaces <= 128 << 20, workspaces)  # of cuBLAS, held all step long
                self.assertEqual((max(samples), samples[-1]), (rank["peak_bytes"], samples[0]))


if __name__ == "__main__":
    unittest.main()
