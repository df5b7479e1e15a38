#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/fields/convert.h"
#include "sim/config/load.h"
#include "tests/sim/config/config_fixture.h"
#include "tests/workloads/models.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

class Frameworks : public ConfigTest {
 protected:
  FrameworkProfile shipped(const std::string& id) { return load_framework(id, catalog_); }
  /// gpt2 on a cluster, with more lines for the section training.
  std::string scenario(const std::string& cluster, const std::string& training) {
    return file("scenario.yaml", "model: gpt2\ncluster: " + cluster +
                                     "\ntraining:\n  sequence_length: 128\n  global_batch: 2\n" +
                                     training)
        .string();
  }
};

void expect_equal_in_parallel(const FrameworkProfile& a, const FrameworkProfile& b) {
  EXPECT_EQ(a.per_tensor_updates, b.per_tensor_updates);
  EXPECT_EQ(a.split_by_cost, b.split_by_cost);
  EXPECT_EQ(a.fills_past_share, b.fills_past_share);
  EXPECT_EQ(a.message_headers, b.message_headers);
  EXPECT_EQ(a.sends_mask, b.sends_mask);
  EXPECT_EQ(a.vocabulary_multiple, b.vocabulary_multiple);
  EXPECT_EQ(a.selective, b.selective);
  EXPECT_EQ(a.tensor_plan, b.tensor_plan);
  EXPECT_EQ(a.splits_stages, b.splits_stages);
  EXPECT_EQ(a.splits_sequences, b.splits_sequences);
}

void expect_equal_in_memory(const FrameworkProfile& a, const FrameworkProfile& b) {
  EXPECT_EQ(a.complex_rope, b.complex_rope);
  EXPECT_EQ(a.compiled_loss, b.compiled_loss);
  EXPECT_EQ(a.keeps_sent, b.keeps_sent);
  EXPECT_EQ(a.keeps_outputs, b.keeps_outputs);
  EXPECT_EQ(a.copies_gathered, b.copies_gathered);
  EXPECT_EQ(a.keeps_logits, b.keeps_logits);
  EXPECT_EQ(a.gradients_join_in_place, b.gradients_join_in_place);
  EXPECT_EQ(a.reentrant_checkpoints, b.reentrant_checkpoints);
  EXPECT_EQ(a.shifts_labels, b.shifts_labels);
  EXPECT_EQ(a.data_parallel.whole_sums, b.data_parallel.whole_sums);
  EXPECT_EQ(a.bf16, b.bf16);
  EXPECT_EQ(a.fp16, b.fp16);
  EXPECT_EQ(a.data_parallel.bucket, b.data_parallel.bucket);
  EXPECT_EQ(a.data_parallel.bucket_per_replica, b.data_parallel.bucket_per_replica);
  EXPECT_EQ(a.host_per_call, b.host_per_call);
  EXPECT_EQ(a.host_per_communication, b.host_per_communication);
}

void expect_equal(const FrameworkProfile& a, const FrameworkProfile& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.modules, b.modules);
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.attention_copies, b.attention_copies);
  EXPECT_EQ(a.fused_norm, b.fused_norm);
  EXPECT_EQ(a.fused_rope, b.fused_rope);
  EXPECT_EQ(a.fused_gate, b.fused_gate);
  EXPECT_EQ(a.bias_epilogue, b.bias_epilogue);
  EXPECT_EQ(a.fp32_logits, b.fp32_logits);
  EXPECT_EQ(a.loss_in_place, b.loss_in_place);
  EXPECT_EQ(a.transformer_engine, b.transformer_engine);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(a.products_accumulate, b.products_accumulate);
  EXPECT_EQ(a.gradients_set_to_none, b.gradients_set_to_none);
  EXPECT_EQ(a.always_average, b.always_average);
  EXPECT_EQ(a.fused_optimizer, b.fused_optimizer);
  EXPECT_EQ(a.overlap_tensor_gradients, b.overlap_tensor_gradients);
  EXPECT_EQ(a.cuda_device_max_connections, b.cuda_device_max_connections);
  EXPECT_EQ(a.packed_attention, b.packed_attention);
  EXPECT_EQ(a.own_rows_first, b.own_rows_first);
  EXPECT_EQ(a.scatter_embedding, b.scatter_embedding);
  EXPECT_EQ(a.python_functions, b.python_functions);
  EXPECT_EQ(a.average_in_sum, b.average_in_sum);
  expect_equal_in_parallel(a, b);
  expect_equal_in_memory(a, b);
}

TEST_F(Frameworks, OfTheTestsAreTheShippedOnes) {
  expect_equal(test::hf_eager(), shipped("hf-eager"));
  expect_equal(test::megatron_local(), shipped("megatron-local"));
  FrameworkProfile megatron = test::megatron();  // as on a GPU before Blackwell, without FSDP
  EXPECT_EQ(megatron.cuda_device_max_connections, 1);
  megatron.cuda_device_max_connections = 0;
  expect_equal(megatron, shipped("megatron"));
  expect_equal(test::fsdp(), shipped("fsdp"));
  expect_equal(test::nanotron(), shipped("nanotron"));
  expect_equal(test::torchtitan(), shipped("torchtitan"));
}

TEST_F(Frameworks, MegatronOf2021OverlapsLess) {
  const FrameworkProfile profile = shipped("megatron-deepspeed");
  EXPECT_FALSE(profile.overlap_tensor_gradients);
  EXPECT_GT(profile.cuda_device_max_connections, 1);
}

TEST_F(Frameworks, ABucketThatAScenarioChoosesDoesNotGrowWithTheReplicas) {
  const auto growth = [this](const std::string& data_parallel) {
    return load(scenario("hgx-h100-4",
                         "  framework: megatron\n  precision: bf16\n  data_parallel: {" +
                             data_parallel + "}\n"))
        .step.data_parallel.bucket_per_replica;
  };
  EXPECT_EQ(growth("overlap_gradients: true"), Bytes(4'000'000));
  EXPECT_EQ(growth("bucket: 40 MB"), Bytes(0));
  EXPECT_EQ(growth("bucket: 40 MB, bucket_per_replica: 1 MB"), Bytes(1'000'000));
  EXPECT_EQ(growth("bucket_per_replica: 0 B"), Bytes(0));
}

TEST_F(Frameworks, EveryShippedOneRunsEveryPrecision) {
  for (const std::string& id : catalog_.ids(CatalogKind::frameworks)) {
    if (id == "nanotron") continue;  // Llama with FlashAttention, in 16 bit alone
    for (const std::string precision : {"fp32", "tf32", "bf16", "fp16"}) {
      const auto path = scenario("hgx-h100-4", "  framework: " + id + "\n");
      EXPECT_NO_THROW(load(path, {"training.precision=" + precision})) << id << " " << precision;
    }
  }
}

TEST_F(Frameworks, AreFoundWithUnderscoresToo) {
  EXPECT_EQ(load(scenario("hgx-h100-4", "  framework: megatron_local\n")).step.framework.name,
            "megatron-local");
}

TEST_F(Frameworks, CanBeCopiedAndEdited) {
  file("mine.yaml", "extends: megatron\nname: mine\nfused_gate: false\nhost_per_call: 9us\n");
  const Scenario scenario_of_mine =
      load(scenario("hgx-h100-4", "  framework: ./mine.yaml\n  precision: bf16\n"));
  const FrameworkProfile& mine = scenario_of_mine.step.framework;
  EXPECT_EQ(mine.name, "mine");
  EXPECT_FALSE(mine.fused_gate);
  EXPECT_TRUE(mine.fused_norm);
  EXPECT_EQ(mine.host_per_call, 9_us);
}

TEST_F(Frameworks, GiveTheFormatsAndTheKernelsThatAScenarioLeavesOut) {
  const Scenario fused =
      load(scenario("hgx-h100-4", "  framework: torch-compile\n  precision: bf16\n"));
  EXPECT_EQ(fused.step.kernels, KernelMode::fused);
  EXPECT_EQ(fused.step.formats, test::fsdp().bf16);
  const Scenario eager =
      load(scenario("hgx-h100-4",
                    "  framework: torch-compile\n  kernels: eager\n  precision: bf16\n"
                    "  mixed_precision: {reduce: bf16}\n"));
  EXPECT_EQ(eager.step.kernels, KernelMode::eager);
  EXPECT_EQ(eager.step.formats.reduce, Precision::bf16);
  EXPECT_EQ(eager.step.formats.gradients, Precision::fp32);
}

TEST_F(Frameworks, FormatsThatTheStepDoesNotHaveAreRefused) {
  const auto path = scenario("hgx-h100-4",
                             "  precision: bf16\n"
                             "  mixed_precision: {gradients: fp16}\n");
  EXPECT_THAT(message_of([&] { load(path); }),
              HasSubstr("training.mixed_precision.gradients = fp16 in a step with activations in "
                        "bf16; use fp32 or bf16"));
}

TEST_F(Frameworks, AttentionIsWhatTheGpuRuns) {
  const auto attention = [&](const std::string& cluster, const std::string& framework,
                             const std::string& precision) {
    const auto path = scenario(cluster, "  framework: " + framework + "\n");
    return load(path, {"training.precision=" + precision}).step.framework.attention;
  };
  EXPECT_EQ(attention("hgx-h100-4", "megatron", "bf16"), AttentionKernels::cudnn);
  EXPECT_EQ(attention("hgx-a100-4", "megatron", "bf16"), AttentionKernels::flash2);
  EXPECT_EQ(attention("dgx-1-v100", "megatron", "fp16"), AttentionKernels::fused_softmax);
  EXPECT_EQ(attention("dgx-1-v100", "fsdp", "fp16"), AttentionKernels::unfused);
  EXPECT_EQ(attention("hgx-h100-4", "fsdp", "bf16"), AttentionKernels::flash2);
  EXPECT_EQ(attention("hgx-h100-4", "megatron", "fp32"), AttentionKernels::unfused);
  EXPECT_EQ(attention("hgx-a100-4", "megatron-local", "bf16"), AttentionKernels::fused_softmax);
}

TEST_F(Frameworks, FlashAttention3NeedsHopper) {
  const auto path = scenario(
      "hgx-a100-4", "  precision: bf16\n  framework: {extends: fsdp, attention: flash3}\n");
  EXPECT_THAT(message_of([&] { load(path); }),
              HasSubstr("training.framework.attention = flash3: A100-SXM4-40GB does not run it"));
}

TEST_F(Frameworks, AResolvedScenarioKeepsItsProfile) {
  const Scenario first = load(scenario("hgx-h100-4",
                                       "  framework: megatron\n  precision: fp8\n"
                                       "  recompute: selective\n"));
  const Scenario second = load(file("resolved.yaml", resolved_yaml(first)));
  EXPECT_EQ(to_message(first).SerializeAsString(), to_message(second).SerializeAsString());
  EXPECT_EQ(second.step.recompute, Recompute::selective);
  EXPECT_EQ(second.step.precision, Precision::fp8);
}

}  // namespace
}  // namespace tessera
