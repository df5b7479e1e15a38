// Layers in fp8 as Transformer Engine and a compiler run them: what is multiplied in it, cast and
// kept.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/narrow_layer.h"
#include "workloads/families/families.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

using test::half_step;
using test::in;
using test::kLayer;
using test::narrow;
using test::saved_per_element;

TEST(Fp8, MultipliesLayersInFp8AndTheRestInBf16) {
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::fp8);
  const ModelGraph graph = build_model_graph(narrow(test::gpt2_large()), step);
  for (const GraphOp& op : graph.blocks[kLayer].forward) {
    if (op.kernel.kind == KernelKind::gemm) {
      EXPECT_EQ(op.kernel.precision, Precision::fp8);
    }
    if (op.kernel.kind == KernelKind::attention) {
      EXPECT_EQ(op.kernel.precision, Precision::bf16);
    }
  }
  for (const GraphOp& op : graph.blocks[2].forward) {
    if (op.kernel.kind == KernelKind::gemm) {
      EXPECT_EQ(op.kernel.precision, Precision::bf16);
    }
  }
  // instead of x in bf16, each of the four products keeps x by columns in fp8: 3h and ffn of them
  const double bf16 = saved_per_element(narrow(test::gpt2_large()), in(Precision::bf16, step));
  const double fp8 = saved_per_element(narrow(test::gpt2_large()), step);
  EXPECT_LT(fp8, bf16);
}

/// Transformer Engine casts weights with the first micro-batch and keeps both orders.
TEST(Fp8, CopiesOfWeightsAreMadeOncePerStepHoweverManyMicroBatchesWait) {
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::fp8);
  step.framework.transformer_engine = true;
  step.layout.pipeline = 2;
  step.schedule = PipelineSchedule::gpipe;
  step.micro_batch = 1;
  const ModelSpec model = narrow(test::gpt2_large());
  // q, k, v, output and the two of the feed-forward, in both orders of one byte
  const std::int64_t weights = model.hidden * (4 * model.heads * model.head_dim + 2 * model.ffn);
  const Bytes copies(2 * weights * model.layers / 2);
  for (const int micro_batches : {1, 4}) {
    step.global_batch = micro_batches;
    const Program program = build_program(model, step);
    const RankProgram& stage = program.stages[0];
    EXPECT_GE(stage.static_parts[MemoryCategory::buffers], copies);
    EXPECT_LT(stage.static_parts[MemoryCategory::buffers].value(), 11 * copies.value() / 10);
    std::int64_t casts = 0;
    for (const ProgramOp& op : stage.ops) {
      if (op.kind != OpKind::kernels) continue;
      for (const KernelLaunch& launch : program.segment(op.segment).kernels)
        casts += launch.name.ends_with(".weight.fp8") ? 1 : 0;
    }
    EXPECT_EQ(casts, 4 * model.layers / 2) << micro_batches;
    for (const LiveMemory& entry : profile_memory(program, 0, {}).live)
      EXPECT_EQ(entry.name.find(".weight.fp8"), std::string::npos) << entry.name;
  }
}

TEST(Fp8, ScaledByItsOwnLargestValueAMatrixIsReadOnceMoreAndKeptAsItWas) {
  // Each of the 7 matrices of a Llama layer and its x: largest value and cast in forward, cast
  // again in backward; the gradient of its output: largest value and one cast for both orders.
  StepOptions step = half_step(test::fsdp(), AttentionKernels::flash2, Precision::fp8);
  step.framework.fp8_scaling = Fp8Scaling::current;
  const ModelSpec llama = narrow(test::llama2_7b());
  const ModelGraph graph = build_model_graph(llama, step);
  const auto named = [](const std::vector<GraphOp>& ops, const char* end) {
    return std::ranges::count_if(ops, [&](const GraphOp& op) {
      return op.kind == GraphOpKind::kernel && op.name.ends_with(end);
    });
  };
  const Block& layer = graph.blocks[kLayer];
  EXPECT_EQ(named(layer.forward, ".largest"), 2 * 7);
  EXPECT_EQ(named(layer.forward, ".fp8"), 2 * 7);
  EXPECT_EQ(named(layer.backward, ".output_grad.largest"), 7);
  EXPECT_EQ(named(layer.backward, ".output_grad.fp8"), 7);
  EXPECT_EQ(named(layer.backward, "_transposed"), 2 * 7);
  for (const GraphOp& op : graph.blocks[2].forward) {  // the head
    if (op.kernel.kind == KernelKind::gemm) {
      EXPECT_EQ(op.kernel.precision, Precision::bf16);
    }
  }
  // what backward needs is what a step in bf16 keeps, but for scalars
  EXPECT_NEAR(saved_per_element(llama, step), saved_per_element(llama, in(Precision::bf16, step)),
              0.01);
}

/// Transformer Engine: forward keeps the copy by columns, whatever finds the scale.
TEST(Fp8, OfTransformerEngineOneCastWritesBothOrdersUnderEveryScaling) {
  const ModelSpec llama = narrow(test::llama2_7b());
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::fp8);
  step.framework.transformer_engine = true;
  const auto named = [&](Fp8Scaling scaling, const char* end) {
    step.framework.fp8_scaling = scaling;
    const Block layer = build_model_graph(llama, step).blocks[kLayer];
    const auto count = [&](const std::vector<GraphOp>& ops) {
      return std::ranges::count_if(ops, [&](const GraphOp& op) {
        return op.kind == GraphOpKind::kernel && op.name.ends_with(end);
      });
    };
    return std::pair(count(layer.forward), count(layer.backward));
  };
  // q k v, output, gate and up, down: four matrices, their inputs, and the gradients of their
  // outputs
  for (const Fp8Scaling scaling : {Fp8Scaling::delayed, Fp8Scaling::current, Fp8Scaling::mxfp8})
    EXPECT_EQ(named(scaling, ".fp8"), std::pair(2L * 4, 4L)) << int(scaling);
  EXPECT_EQ(named(Fp8Scaling::current, ".largest"), std::pair(2L * 4, 4L));
  EXPECT_EQ(named(Fp8Scaling::mxfp8, ".largest"), std::pair(0L, 0L));
  EXPECT_EQ(named(Fp8Scaling::current, "_transposed"), std::pair(0L, 0L));
}

std::int64_t bytes_of(const std::vector<GraphOp>& ops, const std::string& end) {
  std::int64_t bytes = 0;
  for (const GraphOp& op : ops)
    if (op.kind == GraphOpKind::kernel && op.name.ends_with(end))
      bytes += op.kernel.bytes().value();
  return bytes;
}

/// Tiles of 128 with a scale of 4 bytes: a cast per matrix, as of earlier steps' scales, writes
/// both orders and their scales; products read what they read.
TEST(Fp8, ScalesOfTilesAreWrittenByTheCastAndKept) {
  ModelSpec llama = narrow(test::llama2_7b());
  llama.hidden = 256;
  llama.heads = llama.kv_heads = 4;
  llama.ffn = 1024;
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::fp8);
  step.framework.transformer_engine = true;
  const auto layer = [&](Fp8Scaling scaling) {
    step.framework.fp8_scaling = scaling;
    return build_model_graph(llama, step).blocks[kLayer];
  };
  const Block tiles = layer(Fp8Scaling::blockwise), whole = layer(Fp8Scaling::delayed);
  EXPECT_EQ(tiles.forward.size(), whole.forward.size());
  EXPECT_EQ(tiles.backward.size(), whole.backward.size());
  EXPECT_EQ(bytes_of(tiles.forward, ".scales"), 0) << "cuBLAS takes them in the cast's order";
  // q k v, output, gate and up, down: their inputs, rows of 128 in either order; their weights,
  // squares of 128.
  const std::int64_t h = llama.hidden, f = llama.ffn;
  const std::int64_t inputs = step.micro_batch * step.sequence_length * (3 * h + f);
  const std::int64_t weights = h * 3 * h + h * h + h * 2 * f + f * h;
  const std::int64_t of_inputs = 4 * inputs / 128, of_weights = 4 * weights / (128 * 128);
  EXPECT_EQ(bytes_of(tiles.forward, ".fp8") - bytes_of(whole.forward, ".fp8"),
            2 * of_inputs + 2 * of_weights);
  EXPECT_EQ(tiles.saved - whole.saved, Bytes(of_inputs)) << "the copies by columns";
  EXPECT_EQ(tiles.buffers - whole.buffers, Bytes(2 * of_weights));
}

/// Blocks of 32 with a scale of one byte, in either order, of inputs and of weights.
TEST(Fp8, ScalesOfBlocksAreWrittenByTheCastAndKept) {
  const ModelSpec llama = narrow(test::llama2_7b());
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::fp8);
  step.framework.transformer_engine = true;
  const auto layer = [&](Fp8Scaling scaling) {
    step.framework.fp8_scaling = scaling;
    return build_model_graph(llama, step).blocks[kLayer];
  };
  const Block blocks = layer(Fp8Scaling::mxfp8), whole = layer(Fp8Scaling::delayed);
  const std::int64_t h = llama.hidden, f = llama.ffn;
  const std::int64_t inputs = step.micro_batch * step.sequence_length * (3 * h + f) / 32;
  const std::int64_t weights = (h * 3 * h + h * h + h * 2 * f + f * h) / 32;
  EXPECT_EQ(bytes_of(blocks.forward, ".fp8") - bytes_of(whole.forward, ".fp8"),
            2 * inputs + 2 * weights);
  EXPECT_EQ(blocks.saved - whole.saved, Bytes(inputs)) << "the copies by columns";
  EXPECT_EQ(blocks.buffers - whole.buffers, Bytes(2 * weights));
}

/// Where products read a matrix in either order a cast writes one copy: of 16 bits read, one byte
/// written in place of two; and a weight has one copy for all micro-batches.
TEST(Fp8, OneCopyIsBothOrdersWhereProductsTakeEither) {
  const ModelSpec llama = narrow(test::llama2_7b());
  StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, Precision::fp8);
  step.framework.transformer_engine = true;
  step.framework.fp8_scaling = Fp8Scaling::delayed;
  const Block turned = build_model_graph(llama, step).blocks[kLayer];
  step.framework.fp8_transposes = false;
  const Block either = build_model_graph(llama, step).blocks[kLayer];
  for (const auto ops : {&Block::forward, &Block::backward})
    EXPECT_EQ(bytes_of(turned.*ops, ".fp8") * 3, bytes_of(either.*ops, ".fp8") * 4);
  EXPECT_EQ(turned.buffers - either.buffers, Bytes(either.cast_parameters));
  EXPECT_EQ(turned.saved, either.saved);  // the copy that products of columns read, either way
}

/// A byte for every 32 numbers, read and written, for both matrices of each of three products of
/// four layers; of NVFP4 for every 16; none where a matrix has one scale.
TEST(Fp8, ScalesOfBlocksAreRearrangedAheadOfEveryProduct) {
  const ModelSpec llama = narrow(test::llama2_7b());
  const auto layer = [&](Precision precision, Fp8Scaling scaling) {
    StepOptions step = half_step(test::megatron(), AttentionKernels::flash2, precision);
    step.framework.transformer_engine = true;
    step.framework.fp8_scaling = scaling;
    return build_model_graph(llama, step).blocks[kLayer];
  };
  const Block blocks = layer(Precision::fp8, Fp8Scaling::mxfp8);
  std::int64_t forward = 0, backward = 0, numbers = 0;
  for (const GraphOp& op : blocks.forward) {
    forward += op.name.ends_with(".scales");
    if (op.kernel.kind == KernelKind::gemm && op.kernel.precision == Precision::fp8)
      numbers += op.kernel.m * op.kernel.k + op.kernel.k * op.kernel.n;
  }
  for (const GraphOp& op : blocks.backward) backward += op.name.ends_with(".scales");
  EXPECT_EQ(forward, 2 * 4);
  EXPECT_EQ(backward, 2 * 2 * 4);
  EXPECT_EQ(bytes_of(blocks.forward, ".scales"), 2 * numbers / 32);
  const Block halves = layer(Precision::fp4, Fp8Scaling::current);
  EXPECT_EQ(bytes_of(halves.forward, ".scales"), 2 * numbers / 16);
  EXPECT_EQ(bytes_of(layer(Precision::fp8, Fp8Scaling::current).forward, ".scales"), 0);
}

TEST(Fp8, CompiledTheLargestValueJoinsItsProducerAndTheCastWaitsForIt) {
  StepOptions step = half_step(test::fsdp(), AttentionKernels::flash2, Precision::fp8);
  step.framework.fp8_scaling = Fp8Scaling::current;
  step.kernels = KernelMode::fused;
  const ModelGraph graph = build_model_graph(narrow(test::llama2_7b()), step);
  for (const GraphOp& op : graph.blocks[kLayer].forward) {
    const bool casts = std::ranges::any_of(op.writes, [&](const Access& access) {
      return graph.blocks[kLayer].storage(access.storage).name.ends_with(".fp8");
    });
    const bool reduces = std::ranges::any_of(op.writes, [&](const Access& access) {
      return graph.blocks[kLayer].storage(access.storage).name.ends_with(".largest");
    });
    EXPECT_FALSE(casts && reduces) << op.name;
  }
}

}  // namespace
}  // namespace tessera
