"""Everything that is shipped can be used: every model, cluster, GPU and form of the kernel model."""

import json
import re
import unittest

from tessera_command import DATA_PARALLEL, SCENARIOS, EndToEnd, settings

HUGGING_FACE = SCENARIOS / "gpt2-large_inference_h100.yaml"
OK, DOES_NOT_FIT = 0, 4
IMAGE_MODELS = {file.stem for file in (SCENARIOS.parent / "models").glob("*.yaml") if "family: vision" in file.read_text()}
# Fields of family llama that no module tree but Megatron's has, or that only fused attention has.
MEGATRON_ALONE = re.compile(r"^(experts_per_token|window|attention_pattern|expert_pattern|norm|norm_placement|block_order|rope_dim|"
                            r"qk_norm_wide|logit_softcap):", re.MULTILINE)
FUSED_ATTENTION_ALONE = re.compile(r"^(attention_sinks|attention_softcap|window_sinks|index_heads):", re.MULTILINE)
IMAGE_SCENARIO = """
model: resnet-50
cluster: hgx-h100-4
training: {mode: inference, framework: hf-eager, global_batch: 1}
"""

HARDWARE = SCENARIOS.parent / "hw"


def field_of(file, name):
    return re.search(rf"^{name}: (\S+)", file.read_text(), re.MULTILINE)[1]


def gpus_of(cluster):
    file = HARDWARE / "clusters" / f"{cluster}.yaml"
    node = HARDWARE / "nodes" / f"{field_of(file, 'node')}.yaml"
    return int(field_of(file, "node_count")) * int(field_of(node, "gpu_count"))


def framework_of(model):
    text = (SCENARIOS.parent / f"models/{model}.yaml").read_text()
    if FUSED_ATTENTION_ALONE.search(text):
        return ("training.precision=bf16", "training.framework=megatron", "training.framework.attention=transformer_engine")
    return ("training.framework=megatron",) if MEGATRON_ALONE.search(text) else ("training.framework=hf-eager",)


class Catalog(EndToEnd):
    def setUp(self):
        super().setUp()
        self.plant("image.yaml", IMAGE_SCENARIO)
        self.image_scenario = self.folder / "image.yaml"

    def step_time(self, scenario, *assignments):
        """Also of a step that does not fit."""
        result = self.run_tessera("simulate", scenario, "--format", "json", *settings(*assignments))
        self.assertIn(result.returncode, (OK, DOES_NOT_FIT), f"{assignments}: {result.stderr}")
        return json.loads(result.stdout)["step_time_s"]

    def test_every_model_trains_slower_than_it_infers_and_fused_faster_than_eager(self):
        for model in self.answer("list", "models").split():
            with self.subTest(model):
                step = (f"model={model}", *framework_of(model), "training.global_batch=1")
                scenario = self.image_scenario if model in IMAGE_MODELS else HUGGING_FACE
                if scenario is HUGGING_FACE:
                    step += ("training.sequence_length=512",)
                inference = self.step_time(scenario, *step)
                training = self.step_time(scenario, *step, "training.mode=training")
                fused = self.step_time(scenario, *step, "training.mode=training", "training.kernels=fused")
                self.assertGreater(training, 2 * inference)
                self.assertLess(fused, training)
                self.assertGreater(fused, inference)

    def test_every_cluster_runs_four_replicas_or_as_many_as_it_has_gpus(self):
        for cluster in self.answer("list", "clusters").split():
            with self.subTest(cluster):
                replicas = min(4, gpus_of(cluster))
                self.assertGreater(self.step_time(DATA_PARALLEL, f"cluster={cluster}", f"parallelism.data={replicas}"), 0)

    def test_every_gpu_runs_alone_and_in_a_server_of_four(self):
        gpus = self.answer("list", "gpus").split()
        rows = [f"{gpu},{row}" for gpu in gpus for row in ("1,single,gpt2,training,512,1,", "4,dp4,gpt2,training,512,4,",
                                                           "4,tp4,gpt2,training,512,4,")]
        self.plant("models.csv", "\n".join(["gpu,n_gpus,parallelism,model,mode,seq_len,batch,step_ms", *rows]) + "\n")
        scores = json.loads(self.answer("validate", "--models", "models.csv", "--format", "json"))["rows"]
        self.assertEqual([score["skipped"] for score in scores], [None] * len(rows))
        for score in scores:
            self.assertGreater(score["simulated_ms"], 0)

    def test_no_form_of_the_kernel_model_is_faster_than_the_roofline(self):
        roofline = self.step_time(DATA_PARALLEL, "predictor.form=roofline")
        for form in ("neusight", "tessera"):
            self.assertGreater(self.step_time(DATA_PARALLEL, f"predictor.form={form}"), roofline)


if __name__ == "__main__":
    unittest.main()
