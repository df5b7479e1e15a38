"""Jobs of other programs become scenarios that load, and what they leave out is said."""

import json
import unittest

from tessera_command import EndToEnd

MEGATRON = r"""#!/bin/bash
# Trains a model of 20B parameters.
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"4"}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DATA_PATH=$1
TP=4
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES   # of the job
)
GPT_MODEL_ARGS=(
    --num-layers 44 --hidden-size 6144 --num-attention-heads 48
    --seq-length 2048 --max-position-embeddings 2048
)
TRAINING_ARGS="--micro-batch-size 1 \
    --global-batch-size $((WORLD_SIZE * 8)) --lr 6.0e-5 --bf16 --clip-grad 1.0"
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size=4 --sequence-parallel)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py "${GPT_MODEL_ARGS[@]}" $TRAINING_ARGS ${MODEL_PARALLEL_ARGS[@]} \
    --data-path "$DATA_PATH" --use-distributed-optimizer --recompute-activations
"""

LLAMA = """--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
--group-query-attention --num-query-groups 8 --normalization RMSNorm --position-embedding-type rope --swiglu
--disable-bias-linear --untie-embeddings-and-output-weights --vocab-size 128256 --attention-dropout 0
--hidden-dropout 0 --seq-length 8192 --micro-batch-size 1 --global-batch-size 128 --fp8-format hybrid
--context-parallel-size 2 --tensor-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4
--pipeline-model-parallel-size 4
"""

DEEPSPEED = {
    "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto",
    "bf16": {"enabled": True}, "gradient_clipping": 1.0, "steps_per_print": 100,
    "zero_optimization": {"stage": 3, "overlap_comm": True, "reduce_bucket_size": 5e8,
                          "offload_optimizer": {"device": "cpu", "pin_memory": True}}}

ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_sharding_strategy: HYBRID_SHARD
  fsdp_offload_params: false
  fsdp_activation_checkpointing: true
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""

LLAMA_CONFIG = {"model_type": "llama", "num_hidden_layers": 22, "hidden_size": 2048, "num_attention_heads": 32,
                "num_key_value_heads": 4, "intermediate_size": 5632, "vocab_size": 32000, "hidden_act": "silu",
                "rope_theta": 10000.0, "torch_dtype": "bfloat16"}


class ImportJob(EndToEnd):
    def imported(self, kind, text, *options, expect_warnings=False):
        """Path and text of the scenario that is made of a file; it has to load."""
        name = "config.json" if kind == "huggingface" else f"{kind}.txt"
        result = self.run_tessera("import", kind, self.plant(name, text), "-o", f"{kind}.yaml", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, ("(?s)^warning: approximate: .*" if expect_warnings else "^") + r"info: \d+ assumed, \d+ ignored")
        path = self.folder / f"{kind}.yaml"
        self.answer("check", path)
        return path, path.read_text()

    def assert_holds(self, text, *lines):
        for line in lines:
            self.assertRegex(text, rf"(?m)^ *{line}$")

    def refused(self, text, *options):
        """Message of an import of megatron that ends with exit code 3 and writes nothing."""
        result = self.run_tessera("import", "megatron", self.plant("job.sh", text), "-o", "refused.yaml", *options)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertFalse((self.folder / "refused.yaml").exists())
        return result.stderr

    def test_alibi_of_megatron_is_family_bloom(self):
        positions = "--seq-length 2048 --position-embedding-type alibi"
        text = MEGATRON.replace("--seq-length 2048 --max-position-embeddings 2048", positions)
        self.assertIn("--embed-layernorm is missing", self.refused(text))
        _, imported = self.imported("megatron", text.replace("alibi", "alibi --embed-layernorm"))
        self.assert_holds(imported, "family: bloom", "max_positions: 0")
        self.assertIn("job.sh:17: --embed-layernorm is not simulated", self.refused(MEGATRON.replace("--bf16", "--bf16 --embed-layernorm")))

    def test_what_is_not_simulated_is_refused_or_said_in_the_result(self):
        text = MEGATRON.replace("--bf16", "--bf16 --mtp-num-layers 1 --window-size 128,0 --a-new-one 3")
        error = self.refused(text)
        for argument in ("--mtp-num-layers", "--window-size", "--a-new-one"):
            self.assertRegex(error, rf"job.sh:17: {argument} is not ")
        path, imported = self.imported("megatron", text, "--lenient", expect_warnings=True)
        self.assertIn("# approximate: --mtp-num-layers = 1 is not simulated", imported)
        table = self.answer("simulate", path)
        self.assertIn("\napproximate: --mtp-num-layers = 1 is not simulated: layers that predict further", table)
        self.assertEqual(len(self.simulate(path)["approximations"]), 3)
        resolved = self.folder / "resolved.yaml"
        self.answer("simulate", path, "--resolved", resolved)
        self.assertEqual(self.simulate(resolved)["approximations"], self.simulate(path)["approximations"])

    def test_a_named_cluster_gets_as_many_nodes_as_the_caller_or_the_script_says(self):
        self.assertIn("has 8; lower a size, or take a larger cluster: cluster.node_count = 4 (--nodes)",
                      self.refused(MEGATRON, "--cluster", "dgx-a100", "--gpus", "32"))
        imported = self.imported("megatron", MEGATRON, "--cluster", "dgx-a100")[1]
        self.assertIn("# assumed: 4 nodes of dgx-a100, for the job's 32 GPUs", imported)
        self.assert_holds(imported, "node_count: 4")
        path, imported = self.imported("megatron", MEGATRON, "--cluster", "dgx-a100", "--nodes", "4")
        self.assert_holds(imported, 'extends: "dgx-a100"', "node_count: 4")
        self.assertIn("on 32 x A100-SXM4-80GB", self.answer("simulate", path))
        self.assertIn("--nodes: has no --cluster beside it", self.refused(MEGATRON, "--nodes", "4"))

    def test_every_import_says_how_large_the_model_is(self):
        result = self.run_tessera("import", "megatron", self.plant("job.sh", MEGATRON))
        self.assertRegex(result.stderr, r"info: model job: 20\.\d\d billion parameters \(20\d{9}\)")
        self.assertRegex(result.stdout, r"\n# model job: 20\.\d\d billion parameters")
        result = self.run_tessera("import", "deepspeed", self.plant("ds.json", json.dumps(DEEPSPEED)), "--model", "gpt2-xl", "--gpus", "8", "--lenient")
        self.assertIn("1.56 billion parameters", result.stderr)

    def test_a_job_that_does_not_say_its_gpus_takes_those_of_the_named_cluster(self):
        config = {"bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}
        options = ("--model", "gpt2-large", "--sequence-length", "1024", "--cluster", "dgx-h100")
        self.plant("ds.json", json.dumps(config))
        importing = lambda *more: self.run_tessera("import", "deepspeed", "ds.json", *options, *more).stdout
        self.assert_holds(importing("--nodes", "2"), "# assumed: all 16 GPUs of the cluster: --gpus gives fewer", "data: 16", "global_batch: 32")
        self.assert_holds(importing("--gpus", "4"), "data: 4")

    def test_a_job_that_is_no_scenario_is_refused(self):
        self.assertIn("job.sh, as a scenario: ", self.refused(MEGATRON.replace("--num-layers 44", "--num-layers 43")))

    def test_arguments_of_the_script_and_branches(self):
        text = MEGATRON.replace("DATA_PATH=$1", 'if [ "$1" == small ]; then L=12; else L=44; fi').replace("--num-layers 44", "--num-layers $L")
        self.assertIn("L depends on $1 (job.sh:6): add --args", self.refused(text.replace('"$1" ==', '"$1" !=')))
        self.assert_holds(self.imported("megatron", text, "--args", "small x")[1], "layers: 12")
        self.assert_holds(self.imported("megatron", text, "--args", "large", "--define", "TP=8")[1], "layers: 44", "tensor: 8")

    def test_overlap_of_megatron(self):
        schedule = "--num-layers-per-virtual-pipeline-stage 1 --overlap-param-gather --align-param-gather"
        _, text = self.imported("megatron", MEGATRON.replace("--sequence-parallel", "--sequence-parallel " + schedule))
        self.assert_holds(text, "overlap_parameters: true", "align_parameters: true", "virtual_stages: 11")

    def test_a_launch_script_of_megatron(self):
        _, text = self.imported("megatron", MEGATRON)
        self.assert_holds(text, "layers: 44", "hidden: 6144", "heads: 48", "max_positions: 2048", "precision: \"bf16\"",
                          "tensor: 4", "pipeline: 4", "data: 2", "sequence_parallel: true", "recompute: selective",
                          "global_batch: 256", "micro_batch: 1", "sharding: optimizer")
        self.assertIn("# ignored: --lr = 6.0e-5\n", text)
        self.assertIn("# ignored: --data-path = $1\n", text)
        self.assertIn("# assumed: vocabulary of 50257 tokens", text)
        self.assertIn("# assumed: cluster of 4 nodes of dgx-h100-x8-rail", text)

    def test_arguments_of_megatron_alone(self):
        _, text = self.imported("megatron", LLAMA.replace("\n", " "), "--gpus", "64")
        self.assert_holds(text, "family: llama", "kv_heads: 8", "vocab: 128256", "tied_embeddings: false",
                          "precision: \"fp8\"", "context: 2", "virtual_stages: 2", "data: 2", "activation: swiglu")

    def test_experts_and_several_instances_of_megatrons_optimizer(self):
        experts = ("--num-layers 2 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --bf16 "
                   "--micro-batch-size 1 --global-batch-size 8 --vocab-size 50304 --tensor-model-parallel-size 2 --sequence-parallel "
                   "--num-experts 8 --expert-model-parallel-size 4 --expert-tensor-parallel-size 1 --use-distributed-optimizer "
                   "--moe-grouped-gemm --moe-token-dispatcher-type alltoall ")
        _, text = self.imported("megatron", experts + "--num-distributed-optimizer-instances 2", "--gpus", "8")
        self.assert_holds(text, "experts: 8", "expert: 4", "expert_tensor: 1", "data: 4", "shard_group: 2")
        self.assertNotIn("ignored", text)
        _, text = self.imported("megatron", LLAMA.replace("\n", " ") + " --expert-tensor-parallel-size 4", "--gpus", "64")
        self.assertNotIn("expert_tensor:", text)  # a model without experts

    def test_variables_come_from_outside_too(self):
        script = MEGATRON.replace("TP=4\n", "")
        self.assert_fails(3, "--tensor-model-parallel-size is ${TP}; the file does not set it; add --define",
                          "import", "megatron", self.plant("job.sh", script))
        self.assert_holds(self.imported("megatron", script, "--define", "TP=8")[1], "tensor: 8", "data: 1")

    def test_what_is_wrong_with_a_script_is_said_with_its_line(self):
        script = self.plant("job.sh", "pretrain --num-layers 4\n  --hidden-size many --seq-length 0.5\n"
                            .replace("4\n", "4 \\\n"))
        result = self.run_tessera("import", "megatron", script)
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, r"job.sh:2: --hidden-size is many; use a number")
        self.assertRegex(result.stderr, r"job.sh:2: --seq-length is 0.5; use a whole number")
        self.assertIn("--num-attention-heads is missing", result.stderr)
        self.assert_fails(3, "job.sh:2: a text in quotes does not end", "import", "megatron",
                          self.plant("job.sh", "A=1\nB='unfinished --num-layers 4\n"))

    def test_deepspeed(self):
        config = dict(DEEPSPEED, zero_optimization={"stage": 3, "overlap_comm": True, "reduce_bucket_size": 5e8,
                                                    "stage3_prefetch_bucket_size": 1e7})
        _, text = self.imported("deepspeed", json.dumps(config, indent="\t"), "--model", "gpt2-xl", "--gpus", "8")
        self.assert_holds(text, "global_batch: 64", "micro_batch: 4", "data: 8", 'precision: "bf16"',
                          "sharding: parameters", "overlap_gradients: true", "bucket: 1000000000 B",
                          "clip_gradients: true", "optimizer_states: fp32", "master_weights: true")
        self.assertIn("# assumed: weights are gathered layer by layer, one ahead, whatever stage3_prefetch_bucket_size", text)
        self.assertIn("# ignored: steps_per_print = 100\n", text)

    def test_deepspeeds_optimizer_on_the_cpu_is_simulated(self):
        path, text = self.imported("deepspeed", json.dumps(DEEPSPEED), "--model", "gpt2-xl", "--gpus", "8")
        self.assert_holds(text, "offload_optimizer: true")
        slow = self.simulate(path)
        other = json.loads(json.dumps(DEEPSPEED))
        del other["zero_optimization"]["offload_optimizer"]
        on_gpu, _ = self.imported("deepspeed", json.dumps(other), "--model", "gpt2-xl", "--gpus", "8")
        fast = self.simulate(on_gpu)
        self.assertGreater(slow["step_time_s"], fast["step_time_s"])
        self.assertLess(slow["memory"]["peak_bytes"], fast["memory"]["peak_bytes"])
        part = json.dumps(DEEPSPEED).replace('"pin_memory"', '"ratio": 0.3, "pin_memory"')
        self.assert_fails(3, "zero_optimization.offload_optimizer.ratio = 0.3 updates a part", "import", "deepspeed",
                          self.plant("part.json", part), "--model", "gpt2-xl")

    def test_weights_on_the_cpu_leave_the_gpu_to_activations(self):
        """ZeRO-3 of a model of 3.1 GB in 16 bits on one GPU: weights, gradients and states are elsewhere."""
        config = json.loads(json.dumps(DEEPSPEED))
        path, _ = self.imported("deepspeed", json.dumps(config), "--model", "gpt2-xl", "--gpus", "1")
        held = self.simulate(path)
        config["zero_optimization"]["offload_param"] = {"device": "cpu", "pin_memory": True}
        path, text = self.imported("deepspeed", json.dumps(config), "--model", "gpt2-xl", "--gpus", "1")
        self.assert_holds(text, "offload_optimizer: true", "offload_parameters: true")
        fetched = self.simulate(path)
        self.assertLess(fetched["memory"]["per_rank"][0]["static_bytes"], 0.1e9)
        self.assertGreater(held["memory"]["per_rank"][0]["static_bytes"], 3.1e9)

    def test_what_deepspeed_says_and_no_scenario_is_refused_with_its_line(self):
        """Offloading to drives by its line and value; --lenient says it in the scenario and in its result."""
        config = json.loads(json.dumps(DEEPSPEED).replace('"cpu"', '"nvme"'))
        file = self.plant("ds.json", json.dumps(config, indent=1))
        line = 1 + json.dumps(config, indent=1).split("\n").index('   "device": "nvme",')
        self.assert_fails(3, f"ds.json:{line}:", "import", "deepspeed", file, "--model", "gpt2")
        self.assert_fails(3, "zero_optimization.offload_optimizer.device = nvme keeps optimizer states on drives", "import",
                          "deepspeed", file, "--model", "gpt2")
        path, text = self.imported("deepspeed", json.dumps(config), "--model", "gpt2", "--gpus", "8", "--lenient",
                                   expect_warnings=True)
        self.assertIn("# approximate: zero_optimization.offload_optimizer.device = nvme keeps optimizer states", text)
        self.assertIn("offload_optimizer", self.simulate(path)["approximations"][0])
        _, text = self.imported("deepspeed", json.dumps({"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Lamb"}}),
                                "--model", "gpt2", "--gpus", "8", expect_warnings=True)
        self.assertIn("optimizer: lamb", text)
        for section, message in (
                ({"zero_optimization": {"stage": 3, "zero_quantized_weights": True}}, "zero_quantized_weights = true"),
                ({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}, "zero_hpz_partition_size = 8"),
                ({"tensor_parallel": {"autotp_size": 4}}, "tensor_parallel.autotp_size is 4"),
                ({"sequence_parallel_size": 2}, "sequence_parallel_size is 2"),
                ({"pipeline": {"stages": 4}}, "pipeline.stages = 4"),
                ({"optimizer": {"type": "OneBitLamb"}}, "optimizer.type = OneBitLamb"),
                ({"activation_checkpointing": {"cpu_checkpointing": True}}, "activation_checkpointing.cpu_checkpointing = true"),
                ({"wild": {"new": 7}}, "wild.new = 7 is not known")):
            file = self.plant("ds.json", json.dumps(dict({"train_micro_batch_size_per_gpu": 1}, **section)))
            self.assert_fails(3, message, "import", "deepspeed", file, "--model", "gpt2")

    def test_auto_is_what_the_trainer_would_put_there(self):
        config = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto", "loss_scale": 0},
                  "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
                  "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}
        _, text = self.imported("deepspeed", json.dumps(config), "--model", "gpt2", "--gpus", "4")
        self.assert_holds(text, 'precision: "bf16"', "micro_batch: 8", "global_batch: 32", "clip_gradients: true",
                          f"bucket: {2 * 768 * 768} B", "fused_optimizer: true", "overlap_gradients: false")
        for assumed in ("precision bf16: bf16.enabled is auto", "gradients are clipped to norm 1.0",
                        "8 sequences per GPU", "buckets of 589824 elements"):
            self.assertIn("# assumed: " + assumed, text)

    def test_sizes_of_deepspeed_have_to_agree(self):
        config = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
        file = self.plant("ds.json", json.dumps(config))
        self.assert_fails(3, "train_batch_size is 64, not 4 per GPU * 2 micro-batches * 4 replicas", "import", "deepspeed", file,
                          "--model", "gpt2", "--gpus", "4")
        config["bf16"] = {"enabled": True}
        self.assert_holds(self.imported("deepspeed", json.dumps(config), "--model", "gpt2")[1], "data: 8")

    def test_deepspeed_needs_a_model(self):
        file = self.plant("ds.json", json.dumps(DEEPSPEED))
        self.assert_fails(3, "does not describe the model; add --model", "import", "deepspeed", file)
        file = self.plant("ds.json", json.dumps({"zero_optimization": {"stage": 7}}))
        self.assert_fails(3, "ds.json:1:", "import", "deepspeed", file, "--model", "gpt2")

    def test_accelerate(self):
        _, text = self.imported("accelerate", ACCELERATE, "--model", "llama-3-8b", "--sequence-length", "4096")
        self.assert_holds(text, "sharding: parameters", "shard_group: 8", "data: 16", "recompute: full",
                          "sequence_length: 4096", "cluster: \"dgx-h100-x2\"", "framework: \"fsdp\"")
        self.assertIn("# ignored: compute_environment = LOCAL_MACHINE\n", text)

    def test_fsdp_2_with_its_parallel_sizes(self):
        text = ("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 16\nfsdp_config:\n  fsdp_version: 2\n"
                "  fsdp_reshard_after_forward: false\nparallelism_config:\n  parallelism_config_dp_replicate_size: 2\n"
                "  parallelism_config_dp_shard_size: 8\n")
        _, imported = self.imported("accelerate", text, "--model", "gpt2")
        self.assert_holds(imported, "sharding: gradients", "gather_units: true", "shard_group: 8", "data: 16")
        self.assert_fails(3, "num_processes is 16, but parallelism_config takes 32", "import", "accelerate",
                          self.plant("a.yaml", text.replace("replicate_size: 2", "replicate_size: 4")), "--model", "gpt2")
        split = text.replace("dp_replicate_size: 2", "tp_size: 2")
        self.assert_holds(self.imported("accelerate", split, "--model", "llama-3-8b")[1], "tensor: 2", "data: 8")
        self.assert_fails(3, "parallelism.tensor: 2: models of fsdp are not split", "import", "accelerate",
                          self.plant("a.yaml", split), "--model", "gpt2")
        for key, value in (("fsdp_auto_wrap_policy", "NO_WRAP"), ("fsdp_wild", "7")):
            self.assert_fails(3, f"fsdp_config.{key} = {value}", "import", "accelerate",
                              self.plant("a.yaml", text.replace("  fsdp_version", f"  {key}: {value}\n  fsdp_version")),
                              "--model", "gpt2")

    def test_accelerate_opens_deepspeeds_file_beside_it(self):
        config = {"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}
        text = ("distributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 8\ndeepspeed_config:\n"
                "  deepspeed_config_file: inner.json\n")
        file = self.plant("a.yaml", text)
        self.assert_fails(3, "a.yaml:5:", "import", "accelerate", file, "--model", "gpt2")
        self.plant("inner.json", json.dumps(dict(config, fp16={"enabled": "auto"})))
        _, imported = self.imported("accelerate", text, "--model", "gpt2")
        self.assert_holds(imported, "sharding: parameters", "micro_batch: 2", "data: 8", 'precision: "fp16"')
        self.plant("inner.json", json.dumps(dict(config, wild=7)))
        self.assert_fails(3, "inner.json:1:", "import", "accelerate", file, "--model", "gpt2")

    def test_accelerate_with_megatron(self):
        _, text = self.imported("accelerate", "distributed_type: MEGATRON_LM\nmixed_precision: bf16\nnum_processes: 16\n"
                                "megatron_lm_config:\n  megatron_lm_tp_degree: 4\n  megatron_lm_pp_degree: 2\n"
                                "  megatron_lm_num_micro_batches: 4\n  megatron_lm_sequence_parallelism: true\n"
                                "  megatron_lm_use_distributed_optimizer: true\n  megatron_lm_gradient_clipping: 1.0\n",
                                "--model", "gpt3-2.7b", "--micro-batch", "2")
        self.assert_holds(text, "tensor: 4", "pipeline: 2", "data: 2", "global_batch: 16", "sequence_parallel: true",
                          "sharding: optimizer", "clip_gradients: true", 'framework: "megatron"')

    def test_autocast_keeps_fp32_weights(self):
        _, text = self.imported("accelerate", "distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 8\n",
                                "--model", "gpt2")
        self.assert_holds(text, "parameters: fp32", "optimizer_states: fp32", "master_weights: false")
        self.assert_fails(3, "distributed_type is XLA, which is not simulated", "import", "accelerate",
                          self.plant("a.yaml", "distributed_type: XLA\n"), "--model", "gpt2")

    def test_a_config_of_hugging_face_is_simulated(self):
        path, text = self.imported("huggingface", json.dumps(LLAMA_CONFIG), "--gpus", "8", "--framework", "fsdp")
        self.assert_holds(text, "layers: 22", "kv_heads: 4", "data: 8")
        self.assertIn("# ignored: rope_theta\n", text)
        self.assertIn("# ignored: torch_dtype\n", text)
        self.assertGreater(self.simulate(path)["step_time_s"], 0)

    def test_a_window_shorter_than_the_sequence_is_simulated_where_modules_have_it(self):
        config = json.dumps(dict(LLAMA_CONFIG, model_type="mistral", sliding_window=1024))
        _, text = self.imported("huggingface", config, "--sequence-length", "1024")
        self.assert_holds(text, 'extends: "hf-eager"', "attention: flash2")  # the window holds all
        _, text = self.imported("huggingface", config, "--sequence-length", "2048")
        self.assert_holds(text, "window: 1024", 'framework: "megatron"')
        scenario = ("model: config.json\ncluster: dgx-h100\n"
                    "training: {sequence_length: 2048, global_batch: 1, framework: fsdp, precision: bf16}\n")
        self.assert_fails(3, "model.window: is not simulated with the modules of fsdp", "check",
                          self.plant("direct.yaml", scenario))
        self.answer("check", self.plant("direct.yaml", scenario.replace("2048", "1024")))

    def test_a_diffusion_transformer_has_latents_in_place_of_sequences(self):
        config = json.dumps({"_class_name": "DiTTransformer2DModel", "norm_type": "ada_norm_zero", "num_layers": 12,
                             "num_attention_heads": 6, "attention_head_dim": 64, "sample_size": 32})
        path, text = self.imported("huggingface", config, "--gpus", "8", expect_warnings=True)
        self.assert_holds(text, "architecture: dit_s_2", "image_size: 32")
        self.assertNotIn("sequence_length", text)
        self.assertIn("embedded once", self.simulate(path)["approximations"][0])
        self.assert_fails(3, "model.image_size gives the images", "import", "huggingface", self.plant("config.json", config),
                          "--sequence-length", "256")

    def test_results_say_that_a_vision_tower_is_not_simulated(self):
        config = {"model_type": "llava", "text_config": LLAMA_CONFIG, "vision_config": {"hidden_size": 1024}}
        path, text = self.imported("huggingface", json.dumps(config), "--framework", "fsdp", "--sequence-length", "128",
                                   expect_warnings=True)
        self.assertIn("# approximate: vision tower not simulated", text)
        self.assertIn("vision tower not simulated", self.simulate(path)["approximations"][0])
        scenario = ("model: config.json\ncluster: dgx-h100\n"
                    "training: {sequence_length: 128, global_batch: 1, framework: fsdp, precision: bf16}\n")
        result = self.simulate(self.plant("direct.yaml", scenario))
        self.assertIn("vision tower not simulated", result["approximations"][0])

    def test_what_a_config_says_and_no_family_is_refused_with_its_line(self):
        config = json.dumps(dict(LLAMA_CONFIG, quantization_config={"load_in_4bit": True}), indent=1)
        line = 1 + config.split("\n").index(' "quantization_config": {')
        self.assert_fails(3, f"config.json:{line}: quantization_config", "import", "huggingface",
                          self.plant("config.json", config))

    def test_no_value_breaks_out_of_its_comment(self):
        script = "pretrain " + LLAMA.replace("\n", " ") + " --save 'x\nname: stolen'\n"
        _, text = self.imported("megatron", script, "--gpus", "32")
        self.assertIn("# ignored: --save = x name: stolen\n", text)


if __name__ == "__main__":
    unittest.main()
