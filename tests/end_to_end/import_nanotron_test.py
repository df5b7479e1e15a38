"""Measured jobs of nanotron, written as the files that start them, become the scenarios that their rows are; and what other programs' files answer."""

import csv
import os
import unittest
from pathlib import Path

from tessera_command import ROOT, EndToEnd

ROWS = Path(os.environ.get("TESSERA_MEASUREMENTS", ROOT.parent / "shared/measurements")) / "runs_2026/nanotron_ok.csv"
NANOTRON = (ROOT / "tests/fuzz/corpus/import_nanotron/small.yaml").read_text()
AXOLOTL = (ROOT / "tests/fuzz/corpus/import_trainer/axolotl.yaml").read_text()
MPT = (ROOT / "tests/fuzz/corpus/import_foundry/mpt.yaml").read_text()


def job_file(row):
    """A row as nanotron's file."""
    flag = lambda column: str(row[column] == "1").lower()
    return f"""general: {{project: measured, run: {row["id"]}, ignore_sanity_checks: true}}
model:
  ddp_bucket_cap_mb: {row["ddp_bucket_MB"]}
  dtype: bfloat16
  make_vocab_size_divisible_by: 1
  model_config: {{is_llama_config: true, hidden_act: silu, hidden_size: {row["hidden"]}, intermediate_size: {row["ffn"]},
    num_attention_heads: {row["heads"]}, num_key_value_heads: {row["kv_heads"]}, num_hidden_layers: {row["layers"]},
    vocab_size: {row["vocab"]}, tie_word_embeddings: {flag("tied_embeddings")}}}
optimizer:
  accumulate_grad_in_fp32: true
  clip_grad: 1.0
  zero_stage: {row["zero_stage"]}
  optimizer_factory: {{name: adamW, torch_adam_is_fused: true}}
parallelism: {{dp: {row["dp"]}, tp: {row["tp"]}, pp: {row["pp"]}, pp_engine: {row["pp_schedule"] or "1f1b"},
  tp_mode: {row["tp_mode"].upper()}, tp_linear_async_communication: {flag("tp_async")}}}
tokens: {{sequence_length: {row["seq_len"]}, micro_batch_size: {row["micro_batch"]},
  batch_accumulation_per_replica: {row["micro_batches"]}}}
"""


def leaves(text):
    """The scalars of a resolved scenario by dotted path, without names and the cluster."""
    fields, path = {}, []
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        if not colon or line.lstrip().startswith("- "):
            continue
        path = path[:(len(line) - len(line.lstrip())) // 2] + [key]
        if value.strip():
            fields[".".join(path)] = value.strip()
    return {path: value for path, value in fields.items() if not path.startswith("cluster.") and path not in {"name", "model.name"}}


def different_jobs(rows):
    """The first row of every kind of layout of every model, of those after nanotron's repair of its exchange."""
    kinds = {}
    for row in rows:
        kind = row["model"], row["zero_stage"], row["pp"] == "1", row["tp"] == "1", int(row["layers"]) % int(row["pp"]) == 0
        if row["pp_fix"] == "1":
            kinds.setdefault(kind, row)
    return list(kinds.values())


class ImportNanotron(EndToEnd):
    @unittest.skipUnless(ROWS.is_file(), f"no {ROWS}: set TESSERA_MEASUREMENTS")
    def test_measured_jobs_come_back_as_the_scenarios_of_their_rows(self):
        with ROWS.open() as file:
            rows = different_jobs(csv.DictReader(file))
        self.assertGreater(len(rows), 12)
        for row in rows:
            with self.subTest(row["id"]):
                measured = self.folder / "row.csv"
                with measured.open("w", newline="") as file:
                    writer = csv.DictWriter(file, row.keys())
                    writer.writeheader()
                    writer.writerow(row)
                expected = leaves(self.answer("validate", measured, "--no-corrections", "--scenarios", "yaml"))
                result = self.run_tessera("import", "nanotron", self.plant("job.yaml", job_file(row)), "-o", "imported.yaml")
                self.assertEqual(result.returncode, 0, result.stderr)
                found = leaves(self.answer("show", "scenario", self.folder / "imported.yaml"))
                self.assertEqual({path: (value, expected.get(path)) for path, value in found.items()
                                  if expected.get(path) != value}, {})
                self.assertEqual(set(expected) - set(found), set())

    def test_stages_need_not_divide_the_layers(self):
        """They are filled by cost: the head counts too."""
        job = NANOTRON.replace("num_hidden_layers: 12", "num_hidden_layers: 13")
        result = self.run_tessera("import", "nanotron", self.plant("odd.yaml", job), "-o", "odd_job.yaml")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.answer("check", self.folder / "odd_job.yaml")

    def test_fit_reads_the_files_of_all_of_them(self):
        for name, text, options in (("n.yaml", NANOTRON, ("dgx-h100", "--nodes", "2")), ("m.yaml", MPT, ("dgx-h100",)),
                                    ("a.yaml", AXOLOTL.replace("load_in_4bit: true\n", "").replace("qlora", "lora"),
                                     ("dgx-h100", "--model", "llama-3-8b"))):
            result = self.run_tessera("fit", self.plant(name, text), *options, "--format", "json")
            self.assertIn(result.returncode, (0, 4), result.stderr)
            self.assertIn('"tessera.fit/1"', result.stdout)

    def test_a_script_and_its_file_are_read_together(self):
        self.plant("small.yaml", NANOTRON)
        script = self.plant("job.sh", "torchrun --nproc_per_node=8 run_train.py --config-file small.yaml\n")
        self.assert_fails(3, "takes 16 GPUs, and the job has 8", "import", "nanotron", script)
        self.assert_fails(3, "optimizer.zero_stages = 0 is not known", "import", "nanotron",
                          self.plant("typo.yaml", NANOTRON.replace("zero_stage", "zero_stages")))


if __name__ == "__main__":
    unittest.main()
