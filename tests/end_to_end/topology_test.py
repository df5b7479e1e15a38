"""tessera topology and tessera import through the program."""

import unittest
from pathlib import Path

from tessera_command import DATA_PARALLEL, PIPELINE, EndToEnd

CORPUS = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
OK, USAGE, BAD_INPUT = 0, 2, 3
FABRICS = ("rail", "clos-4to1", "dragonfly", "torus", "torus-3d")


class Folding(EndToEnd):
    JOB = ("model=gpt3-6.7b", "cluster.extends=dgx-superpod-h100", "cluster.node_count=64", "training.framework=megatron",
           "training.precision=bf16", "training.global_batch=64", "training.micro_batch=1", "parallelism.tensor=8",
           "parallelism.pipeline=8", "parallelism.data=8")

    def folding(self, *assignments):
        return self.simulate(PIPELINE, *self.JOB, *assignments)["folding"]

    def test_a_hash_over_several_spines_tells_replicas_apart_and_one_spine_does_not(self):
        hashed = self.folding()
        self.assertEqual(hashed["simulated_ranks"], 512)
        for refusal in hashed["refused"]:
            # Nodes are alike inside, so what differs are the ways between them.
            self.assertRegex(refusal["reason"], "GPU 0 and GPU [18]: .* in (data|pipeline) groups meet different traffic")
            self.assertIn("cluster.fabric.spines: 1", refusal["reason"])
        adaptive = self.folding("cluster.fabric.spines=1")
        self.assertEqual((adaptive["simulated_ranks"], adaptive["refused"]), (8, []))


class Topology(EndToEnd):
    def figure(self, cluster, name):
        for line in self.answer("topology", "show", cluster).splitlines():
            if line.startswith(name):
                return line[len(name):].split()
        self.fail(f"{cluster} shows no {name}")

    def test_every_cluster_and_node_can_be_shown_and_drawn(self):
        for cluster in self.answer("list", "clusters").split() + self.answer("list", "nodes").split():
            with self.subTest(cluster):
                picture = Path(self.folder) / f"{cluster}.svg"
                self.assertIn("links, one direction", self.answer("topology", "show", cluster, "--svg", str(picture)))
                self.assertIn("</svg>", picture.read_text())

    def test_every_cluster_without_faults_passes_the_check(self):
        clusters = [name for name in self.answer("list", "clusters").split() if name != "hgx-a100-4-uneven-graph"]
        self.assertEqual(self.answer("topology", "check", *clusters).count(": ok"), len(clusters))

    def test_the_same_64_gpus_have_another_bottleneck_on_every_fabric(self):
        """Bisection: 32 NICs of 46 GB/s; a quarter of it; 2 x 2 pairs of groups with 4 links of 46; 4 cables of 184."""
        bisections = {name: self.figure(f"dgx-h100-x8-{name}", "bisection bandwidth")[:2] for name in FABRICS[:4]}
        self.assertEqual(bisections, {"rail": ["1.47", "TB/s"], "clos-4to1": ["368", "GB/s"],
                                      "dragonfly": ["736", "GB/s"], "torus": ["736", "GB/s"]})
        self.assertEqual(self.figure("dgx-h100-x8-clos-4to1", "oversubscription")[0], "4.00")

    def test_a_check_of_faults_names_the_links(self):
        result = self.run_tessera("topology", "check", "hgx-a100-4-uneven-graph")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("node1/nic2->fabric: runs at 5.75 GB/s of 23 GB/s", result.stderr)

    def test_a_cluster_that_is_cut_in_two_is_refused(self):
        self.plant("cut.yaml", "extends: hgx-a100-4-uneven-graph\nfaults: [{link: 'fabric/near->far*'}]\n")
        result = self.run_tessera("topology", "check", "cut.yaml")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertIn("4 NICs cannot be reached", result.stderr)

    def test_what_is_imported_can_be_simulated(self):
        files = (("nccl-topology", "nccl_topology/hgx_h100_8.xml", ()),
                 ("nvidia-smi", "smi_matrix/a100_pcie_bridges.txt", ("--gpu", "A100-PCIe-80GB")),
                 ("simgrid", "simgrid_platform/two_clusters.xml", ("--gpu", "H100-SXM5-80GB")))
        for kind, file, options in files:
            with self.subTest(kind):
                imported = self.run_tessera("import", kind, str(CORPUS / file), *options, "-o", "imported.yaml")
                self.assertEqual(imported.returncode, OK, imported.stderr)
                result = self.run_tessera("simulate", DATA_PARALLEL, "--set", "cluster=./imported.yaml")
                self.assertIn("step time", result.stdout, result.stderr)

    def test_an_import_says_what_it_ignored(self):
        result = self.run_tessera("import", "nccl-topology", str(CORPUS / "nccl_topology/hgx_h100_8.xml"))
        self.assertEqual(result.returncode, OK)
        self.assertIn("ignored: 1 NICs of 12.5 GB/s", result.stderr)
        self.assertIn("# ignored: 1 NICs of 12.5 GB/s", result.stdout)

    def test_what_cannot_be_imported_is_refused_with_its_place(self):
        self.plant("broken.xml", "<system>\n<cpu>\n")
        result = self.run_tessera("import", "nccl-topology", "broken.xml")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertRegex(result.stderr, r"broken\.xml:\d+: is no XML")
        self.assertEqual(self.run_tessera("import").returncode, USAGE)


if __name__ == "__main__":
    unittest.main()
