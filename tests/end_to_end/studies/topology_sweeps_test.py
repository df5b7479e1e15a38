"""The sweeps over networks: their kept tables are current and say what results/topology claims; effects that were measured come out of the model."""

import csv
import importlib.machinery
import importlib.util
import os
import statistics
import sys
import tempfile
import unittest
from pathlib import Path

from tessera_command import PROGRAM, ROOT, EndToEnd

RESULTS = ROOT / "results/topology"
MEASUREMENTS = Path(os.environ.get("TESSERA_MEASUREMENTS", ROOT.parent / "shared/measurements"))
STALE = 0.02  # how far a kept number may be off
RAILS = "{kind: rail_optimized, nodes_per_leaf: 16, spines: 1}"
BLOCKING = "{kind: clos, nodes_per_leaf: 2, spines: 1, leaf_oversubscription: 8}"


def tool(name):
    """A script of tools/ as a module."""
    sys.path.insert(0, str(ROOT / "tools"))
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def rows_of(file):
    with open(file, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def kept(name, **fields):
    """The kept steps in seconds of the points with these values; `__` in a name stands for a dot of the path below cluster."""
    wanted = {"cluster." + key.replace("__", "."): value for key, value in fields.items()}
    return [float(row["step_time_s"]) for row in rows_of(RESULTS / f"{name}.csv") if all(row[key] == value for key, value in wanted.items())]


class KeptTables(EndToEnd):
    def check(self, name, *choice):
        result = self.run_tessera("sweep", ROOT / f"configs/sweeps/{name}.yaml", "--out", "out", *choice)
        self.assertEqual(result.returncode, 0, result.stderr)
        stored = rows_of(RESULTS / f"{name}.csv")
        axes = [key for key in stored[0] if key.startswith("cluster.")]
        steps = {tuple(row[key] for key in axes): float(row["step_time_s"]) for row in stored}
        for row in rows_of(self.folder / "out/results.csv"):
            now, then = float(row["step_time_s"]), steps[tuple(row[key] for key in axes)]
            self.assertLess(abs(now / then - 1), STALE, f"{name}, point {row['point']}: {now:.4g} s, kept {then:.4g} s; run tools/topology_tables")

    def test_the_data_parallel_step_on_64_gpus(self):
        self.check("fabrics-64-gpus", "--sample", "8", "--seed", "1")

    def test_spines_and_hashes(self):
        self.check("spines-and-hashes", "--sample", "8", "--seed", "1")

    def test_experts_on_1024_gpus(self):
        self.check("topologies-1024-gpus", "--limit", "8")

    def test_every_topology_of_1024_gpus_is_kept(self):
        self.assertGreaterEqual(len(rows_of(RESULTS / "topologies-1024-gpus.csv")), 200)


class Lessons(unittest.TestCase):
    """What tools/topology_tables writes above each table."""

    def test_the_rate_out_of_a_node_decides_whatever_sets_it(self):
        rails = "{kind: rail_optimized, nodes_per_leaf: 8, spines: 1}"
        step = lambda count, rate: kept("fabrics-64-gpus", fabric=rails, node__nic_count=str(count), node__nic_bandwidth=f"{rate} Gb/s")[0]
        self.assertAlmostEqual(step(2, 400), step(4, 200), delta=0.001)
        self.assertAlmostEqual(step(2, 400), step(8, 100), delta=0.001)
        quarter = kept("fabrics-64-gpus", fabric="{kind: clos, nodes_per_leaf: 2, spines: 1, leaf_oversubscription: 4}", node__nic_count="8", node__nic_bandwidth="400 Gb/s")[0]
        self.assertAlmostEqual(quarter, step(8, 200), delta=0.001)
        self.assertGreater(step(1, 800), 0.9 * step(1, 400), "one PCIe link carries it")

    def test_a_domain_that_holds_all_experts_hardly_notices_the_network(self):
        step = lambda fabric, domain: kept("topologies-1024-gpus", fabric=fabric, node__gpu_count=domain, node__nic_count=domain, node__nic_bandwidth="400 Gb/s")[0]
        self.assertLess(step(BLOCKING, "64") / step(RAILS, "64"), 1.03)
        self.assertGreater(step(BLOCKING, "8") / step(RAILS, "8"), 3.5)

    def test_rails_never_collide_and_many_thin_spines_cost_as_much_as_oversubscription(self):
        steps = lambda kind, spines, share: kept("spines-and-hashes", fabric__kind=kind, fabric__spines=spines, fabric__leaf_oversubscription=share)
        self.assertEqual(len(set(steps("rail_optimized", "32", "2") + steps("rail_optimized", "1", "1"))), 1)
        self.assertGreater(min(steps("clos", "32", "1")), 1.03 * steps("clos", "1", "1")[0])
        self.assertGreater(statistics.mean(steps("clos", "32", "1")), statistics.mean(steps("clos", "8", "2")))


class Core(unittest.TestCase):
    @unittest.skipUnless(Path(PROGRAM).exists(), "needs the program")
    def test_bandwidth_halves_with_every_doubling_of_nodes_below_one_core(self):
        """Each node puts 2 x 1 GiB through the core in a ring, half of that in a tree: time grows with the nodes, bus bandwidth falls with them."""
        measured = tool("topology_measured")
        small, large = (measured.all_reduce(measured.core_cluster(nodes)) for nodes in (16, 32))
        self.assertAlmostEqual(small / large, 2, delta=0.05)


@unittest.skipUnless((MEASUREMENTS / "runs_2026/nanotron_ok.csv").exists() and PROGRAM.with_name("tessera-lab").exists(),
                     "no measurements or no laboratory; set TESSERA_MEASUREMENTS")
class Measured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = tool("topology_measured")

    def test_one_core_read_at_one_size_says_what_the_slow_fabric_gave_at_others(self):
        rows = rows_of(MEASUREMENTS / "runs_2026/nanotron_ok.csv")
        medians = self.tool.measured_fabrics(rows)
        for gpus in (32, 64, 128, 256, 512):
            simulated = self.tool.all_reduce(self.tool.core_cluster(gpus // 8))
            self.assertLess(abs(simulated / medians["1", gpus] - 1), 0.4, gpus)
        # On the fast fabric nothing halves: neither measured nor promised.
        self.assertGreater(medians["0", 256] / medians["0", 32], 0.8)

    def test_steps_of_a_slow_fabric_follow_the_fabric(self):
        rows = [row for row in rows_of(MEASUREMENTS / "runs_2026/nanotron_ok.csv") if row["n_gpus"] == "512" and row["model"] == "llama-1.34B"]
        jobs = self.tool.steps_on_both(rows)[True, 512]
        self.assertGreaterEqual(len(jobs), 3)
        off = lambda i: statistics.geometric_mean(job[i] / job[0] for job in jobs)
        self.assertLess(off(1), 0.2, "the network as promised explains less than a fifth")
        self.assertGreater(off(2), 0.4)
        self.assertLess(off(2), 2.5)

    def test_bridged_pairs_are_seven_times_slower_than_switches(self):
        rows = rows_of(MEASUREMENTS / "collectives.csv")
        chosen = [row for row in rows if row["collective"] == "all_reduce" and row["n_gpus"] == "4" and row["n_nodes"] == "1" and int(row["bytes"]) >= 1 << 26
                  and ("pairwise NVLink" in row["system"] or row["system"].startswith("DGX A100"))]
        with tempfile.TemporaryDirectory() as folder:
            predicted = self.tool.predicted_collectives(self.tool.written(Path(folder) / "rows.csv", chosen, list(chosen[0])))
        lines = {line[0]: [float(x) for x in line[2:]] for line in self.tool.place_lines(predicted)}
        switch, pairs = lines["4 A100 on NVSwitches"], lines["4 A100 cards, bridged in pairs"]
        self.assertAlmostEqual(switch[0] / pairs[0], 7, delta=0.5)  # 167 / 24 GB/s
        self.assertLess(abs((switch[1] / pairs[1]) / (switch[0] / pairs[0]) - 1), 0.35)


if __name__ == "__main__":
    unittest.main()
