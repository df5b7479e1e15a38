// What a layer keeps, moves and computes in 16 bit, against closed forms: Korthikanti et al.,
// "Reducing Activation Recomputation in Large Transformer Models", 2022 (34 + 5 as/h bytes per
// element of sbh), and the bytes per parameter of Megatron's optimizers.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/narrow_layer.h"
#include "workloads/families/families.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/model_graph.h"
#include "workloads/optimizers/optimizer_step.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using test::half_step;
using test::in;
using test::kElements;
using test::kLayer;
using test::narrow;
using test::saved_per_element;
using test::single_gpu;

/// Norm statistics (8 bytes per row of 320) and log-sum-exp are counted in sight, bias gradients
/// and the like are not.
constexpr double kRounding = 0.06;

Flops gemm_flops(const std::vector<GraphOp>& ops) {
  return total(ops).gemm_flops;
}

TEST(SavedInHalfPrecision, IsKorthikantisFormula) {
  const ModelSpec gpt = narrow(test::gpt2_large());
  const auto softmax = AttentionKernels::fused_softmax;
  StepOptions step = half_step(test::megatron_local(), softmax);
  constexpr double kNormStatistics = 2 * 8.0 / 320;
  EXPECT_NEAR(saved_per_element(gpt, step), 34 + 5 * 4 + kNormStatistics, kRounding);
  step.recompute = Recompute::selective;
  EXPECT_NEAR(saved_per_element(gpt, step), 34 + kNormStatistics, kRounding);
  step.recompute = Recompute::full;
  EXPECT_NEAR(saved_per_element(gpt, step), 2, kRounding);
}

TEST(FusedSoftmax, LeavesWhatItsBlocksDoNotDivideToPyTorch) {
  // Blocks of four warps, a row of one matrix each: 4 x 5 matrices fill them, 1 x 5 do not. PyTorch
  // works in fp32 then: two casts, a mask and a softmax instead of one kernel.
  ModelSpec gpt = narrow(test::gpt2_large());
  gpt.max_positions = 8192;
  StepOptions step = half_step(test::megatron_local(), AttentionKernels::fused_softmax);
  const auto forward_kernels = [&] {
    return total(build_model_graph(gpt, step).blocks[kLayer].forward).kernels;
  };
  const auto fused = forward_kernels();
  step.micro_batch = step.global_batch = 1;
  EXPECT_EQ(forward_kernels(), fused + 3);
  step.micro_batch = step.global_batch = 8;
  EXPECT_EQ(forward_kernels(), fused);
  step.sequence_length = 8192;  // the kernel ends at 4096 keys
  EXPECT_EQ(forward_kernels(), fused + 3);
}

TEST(SavedInHalfPrecision, TensorParallelRanksShareAllButNormsAndMasks) {
  ModelSpec gpt = narrow(test::gpt2_large());
  gpt.heads = gpt.kv_heads = 4;
  gpt.head_dim = 80;
  StepOptions step = half_step(test::megatron_local(), AttentionKernels::fused_softmax);
  step.layout.tensor = 4;
  const double as_over_h = 4 * 256 / 320.0;
  EXPECT_NEAR(saved_per_element(gpt, step), 10 + 24 / 4.0 + 5 * as_over_h / 4 + 2 * 8.0 / 320,
              kRounding);
}

TEST(SavedInHalfPrecision, SequenceParallelRanksShareEverything) {
  ModelSpec gpt = narrow(test::gpt2_large());
  gpt.heads = gpt.kv_heads = 4;
  gpt.head_dim = 80;
  const double as_over_h = 4 * 256 / 320.0;
  for (const int t : {2, 4}) {
    StepOptions step = half_step(test::megatron_local(), AttentionKernels::fused_softmax);
    step.layout.tensor = t;
    step.layout.sequence_parallel = true;
    const double statistics = 2 * 8.0 / 320 / t;
    EXPECT_NEAR(saved_per_element(gpt, step), (34 + 5 * as_over_h) / t + statistics, kRounding / t);
    step.recompute = Recompute::selective;
    EXPECT_NEAR(saved_per_element(gpt, step), 34.0 / t + statistics, kRounding / t);
    step.recompute = Recompute::full;
    EXPECT_NEAR(saved_per_element(gpt, step), 2.0 / t, kRounding / t);
  }
}

TEST(SavedInHalfPrecision, FlashAttentionKeepsTheOutputTwiceWhereItIsCopied) {
  const ModelSpec gpt = narrow(test::gpt2_large());
  const double statistics = 2 * 8.0 / 320 + 4 * 5 / 320.0;  // norms, log-sum-exp
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::bf16);
  EXPECT_NEAR(saved_per_element(gpt, step), 36 + statistics, kRounding);
  step.framework.attention_copies = false;
  step.framework.attention = AttentionKernels::cudnn;
  EXPECT_NEAR(saved_per_element(gpt, step), 34 + statistics, kRounding);
}

TEST(SavedInHalfPrecision, LlamaKeepsTwelveAndFourCopiesOfHiddenAndEightOfFfn) {
  ModelSpec llama = narrow(test::llama2_7b());
  llama.kv_heads = 5;
  FrameworkProfile profile = test::fsdp();
  profile.fused_norm = profile.fused_rope = true;
  StepOptions step = half_step(profile, AttentionKernels::flash2, Precision::bf16);
  step.formats.parameters = Precision::bf16;  // else the cast weights wait for backward too
  step.formats.gradients = Precision::bf16;
  const double expected = 12 + 4 + 8 * 4 + 4 * 5 / 320.0 + 2 * 4 / 320.0;
  EXPECT_NEAR(saved_per_element(llama, step), expected, kRounding);
}

TEST(SelectiveOperators, KeepAttentionAndEverySecondProduct) {
  ModelSpec llama = narrow(test::llama2_7b());
  FrameworkProfile profile = test::fsdp();
  profile.selective = SelectiveRecompute::operators;
  StepOptions step = half_step(profile, AttentionKernels::flash2, Precision::bf16);
  step.formats.parameters = Precision::bf16;  // else the cast weights wait for backward too
  step.formats.gradients = Precision::bf16;
  const Block plain = build_model_graph(llama, step).blocks[kLayer];
  step.recompute = Recompute::selective;
  const Block layer = build_model_graph(llama, step).blocks[kLayer];
  // Of q, k, v, output, gate, up and down: q, v, gate and down; the input; attention with its
  // log-sum-exp. Two bytes each, ffn = 4 hidden.
  EXPECT_NEAR(static_cast<double>(layer.saved.value()) / kElements,
              2 * (1 + 1 + 1 + 1 + 4 + 1) + 4 * 5 / 320.0, kRounding);
  // k, output and up run again: 1 + 1 + 4 products of 2 * tokens * hidden^2.
  const Flops again = gemm_flops(layer.backward) - gemm_flops(plain.backward);
  EXPECT_DOUBLE_EQ(again.value(), (1 + 1 + 4) * 2 * kElements * 320);
  EXPECT_EQ(total(layer.forward).kernels, total(plain.forward).kernels);
  for (const GraphOp& op : layer.backward) {
    if (op.kind != GraphOpKind::kernel || op.kernel.kind != KernelKind::attention) continue;
    EXPECT_EQ(op.kernel.attention.direction, AttentionDirection::backward);
  }
}

TEST(Recomputation, RunsForwardOnceMore) {
  const ModelSpec gpt = narrow(test::gpt2_large());
  for (const auto attention : {AttentionKernels::fused_softmax, AttentionKernels::flash2}) {
    StepOptions step = half_step(test::megatron(), attention, Precision::bf16);
    const Block plain = build_model_graph(gpt, step).blocks[kLayer];
    step.recompute = Recompute::full;
    const Block again = build_model_graph(gpt, step).blocks[kLayer];
    EXPECT_EQ(total(again.forward).kernels, total(plain.forward).kernels);
    EXPECT_EQ(total(again.backward).kernels,
              total(plain.forward).kernels + total(plain.backward).kernels);
    EXPECT_EQ(gemm_flops(again.backward), gemm_flops(plain.forward) + gemm_flops(plain.backward));
    EXPECT_EQ(total(again.backward).bytes,
              total(plain.forward).bytes + total(plain.backward).bytes);
    EXPECT_EQ(again.parameters, plain.parameters);
    EXPECT_EQ(again.buffers, plain.buffers);
  }
}

TEST(Recomputation, DoesNotCountAsTheModelsWork) {
  StepOptions step = half_step(test::megatron_local(), AttentionKernels::fused_softmax);
  const Program plain = build_program(narrow(test::gpt2_large()), step);
  step.recompute = Recompute::full;
  const Program again = build_program(narrow(test::gpt2_large()), step);
  EXPECT_EQ(plain.model_flops, plain.hardware_flops);
  EXPECT_EQ(again.model_flops, plain.model_flops);
  // layers alone: 3 passes become 4, of 24 bsh^2 + 4 bs^2h each
  const double layer = 24.0 * 4 * 256 * 320 * 320 + 4.0 * 4 * 256 * 256 * 320;
  EXPECT_NEAR((again.hardware_flops - again.model_flops).value(), 36 * layer, 1e-9 * 36 * layer);
}

/// Weights in fp32 are cast to bf16 by autocast, which happens once more where a layer runs again:
/// gradients of weights come through the second copy.
TEST(Recomputation, OfWeightsThatAreCastMakesEveryGradient) {
  const auto made = [](const ModelSpec& model, SelectiveRecompute selective, Recompute recompute) {
    FrameworkProfile profile = test::torchtitan();
    profile.selective = selective;
    StepOptions step = in(Precision::bf16, single_gpu(profile, StepMode::training, 2, 64));
    step.recompute = recompute;
    const Block layer = build_model_graph(model, step).blocks[kLayer];
    std::vector<std::string> gradients;
    for (const GraphOp& op : layer.backward)
      if (op.accumulates_gradient) gradients.push_back(op.name);
    std::ranges::sort(gradients);
    return std::pair(gradients, build_program(model, step).model_flops);
  };
  for (const ModelSpec& model : {test::llama2_7b(), test::mpt_7b(), test::opt_1_3b()}) {
    const ModelSpec small = narrow(model);
    const auto plain = made(small, SelectiveRecompute::core_attention, Recompute::none);
    EXPECT_GT(plain.first.size(), 5U);
    EXPECT_EQ(made(small, SelectiveRecompute::core_attention, Recompute::full), plain)
        << model.name;
    EXPECT_EQ(made(small, SelectiveRecompute::core_attention, Recompute::selective), plain);
    EXPECT_EQ(made(small, SelectiveRecompute::operators, Recompute::selective), plain);
  }
}

/// Autocast keeps its copies until the forward pass ends; backward gives them back layer by layer.
TEST(Recomputation, CopiesOfWeightsStayUntilBackward) {
  const auto saved = [](Recompute recompute, Precision parameters) {
    FrameworkProfile profile = test::torchtitan();
    StepOptions step = in(Precision::bf16, single_gpu(profile, StepMode::training, 2, 64));
    step.formats.parameters = parameters;
    step.recompute = recompute;
    return build_model_graph(narrow(test::llama2_7b()), step).blocks[kLayer];
  };
  const Block cast = saved(Recompute::full, Precision::fp32);
  const Block plain = saved(Recompute::full, Precision::bf16);
  EXPECT_EQ(cast.saved - plain.saved, Bytes(2 * cast.parameters));
}

TEST(HalfPrecision, ProductsAddToTheGradientBuffersThemselves) {
  const ModelSpec gpt = narrow(test::gpt2_large());
  const auto accumulations = [&](const StepOptions& step) {
    const Block layer = build_model_graph(gpt, step).blocks[kLayer];
    return std::ranges::count_if(layer.backward,
                                 [](const GraphOp& op) { return op.accumulates_gradient; });
  };
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::bf16);
  EXPECT_EQ(accumulations(step), 8);  // four biases, two norms of two vectors each
  step.framework.products_accumulate = false;
  EXPECT_EQ(accumulations(step), 12);  // and four weights
}

TEST(HalfPrecision, AWeightGradientThatAccumulatesMovesEightMoreBytesPerParameter) {
  const ModelSpec gpt = narrow(test::gpt2_large());
  const auto wgrad = [&](bool accumulates) {
    StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::bf16);
    step.framework.products_accumulate = accumulates;
    const Block layer = build_model_graph(gpt, step).blocks[kLayer];
    const auto op = std::ranges::find(layer.backward, "mlp.up.wgrad", &GraphOp::name);
    return op->kernel.bytes().value();
  };
  const std::int64_t weight = 320 * 1280;
  EXPECT_EQ(wgrad(true) - wgrad(false), (4 + 4 - 2) * weight);
}

constexpr std::int64_t kParameters = 1'000'000;

/// Traffic of the whole optimizer step per parameter.
double optimizer_bytes(const StepOptions& step) {
  const OptimizerStep result = optimizer_step(step, kParameters);
  std::int64_t bytes = 0;
  for (const auto* ops : {&result.before_forward, &result.average, &result.after_reduce,
                          &result.unscale, &result.norm, &result.update}) {
    for (const GraphOp& op : *ops) bytes += op.kernel.bytes().value();
  }
  return static_cast<double>(bytes) / kParameters;
}

TEST(OptimizerInHalfPrecision, MovesWhatMegatronMoves) {
  const auto fp32 = single_gpu(test::megatron_local(), StepMode::training, 1, 64);
  EXPECT_EQ(optimizer_bytes(fp32), 4 + 8 + 4 + 8 + 28);
  // zero 2, average 4, to fp32 6, unscale 8, norm 4, clip 8, Adam 28, back to fp16 6
  EXPECT_EQ(optimizer_bytes(in(Precision::fp16, fp32)), 2 + 4 + 6 + 8 + 4 + 8 + 28 + 6);
  EXPECT_EQ(optimizer_bytes(in(Precision::bf16, fp32)), 4 + 8 + 4 + 8 + 28 + 6);
}

TEST(OptimizerInHalfPrecision, KeepsWhatMegatronKeeps) {
  const auto fp32 = single_gpu(test::megatron_local(), StepMode::training, 1, 64);
  EXPECT_EQ(bytes_per_parameter(fp32), 16);
  EXPECT_EQ(bytes_per_parameter(in(Precision::fp16, fp32)), 16);
  EXPECT_EQ(bytes_per_parameter(in(Precision::bf16, fp32)), 18);
  const auto sharded = single_gpu(test::fsdp(), StepMode::training, 1, 64);
  EXPECT_EQ(bytes_per_parameter(in(Precision::bf16, sharded)), 16);
  const auto pure = single_gpu(test::hf_eager(), StepMode::training, 1, 64);
  EXPECT_EQ(bytes_per_parameter(in(Precision::bf16, pure)), 8);
}

TEST(OptimizerInHalfPrecision, KeepsDeepSpeedsCopiesOfGradients) {
  auto step = single_gpu(test::megatron_local(), StepMode::training, 1, 64);
  step.framework.deepspeed_zero = true;
  step.data_parallel.sharding = Sharding::optimizer;
  EXPECT_EQ(bytes_per_parameter(in(Precision::bf16, step)), 18 + 2);
  const auto half = in(Precision::fp16, step);
  EXPECT_EQ(bytes_per_parameter(half), 16);
  const OptimizerStep result = optimizer_step(half, kParameters);
  std::vector<std::int64_t> made;
  Bytes in_use;
  for (const auto* ops : {&result.unscale, &result.norm, &result.update}) {
    for (const GraphOp& op : *ops) {
      if (op.allocated.value() > 0) made.push_back(op.allocated.value());
      in_use += op.allocated - op.freed;
    }
  }
  // partition, flat copy, fp32
  EXPECT_THAT(made, testing::ElementsAre(2 * kParameters, 2 * kParameters, 4 * kParameters));
  EXPECT_EQ(result.average.back().allocated, Bytes(1'000'000'000));  // a bucket of 5e8 elements
  EXPECT_EQ(in_use, Bytes(0));
}

TEST(TensorParallelLlama, AgreesWithTheWholeModelInParametersAndArithmetic) {
  ModelSpec llama = narrow(test::llama2_7b());
  llama.layers = 2;
  llama.heads = 8;
  llama.kv_heads = 4;
  llama.head_dim = 40;
  llama.vocab = 512;  // divides by 128 * 4: nothing is padded
  StepOptions one = half_step(test::megatron(), AttentionKernels::flash2, Precision::bf16);
  StepOptions four = one;
  four.layout.tensor = 4;
  const Program whole = build_program(llama, one);
  const Program split = build_program(llama, four);
  EXPECT_NEAR(split.model_flops.value(), whole.model_flops.value(),
              1e-9 * whole.model_flops.value());
  EXPECT_EQ(whole.stages[0].parameters, parameter_count(llama));
}

}  // namespace
}  // namespace tessera
