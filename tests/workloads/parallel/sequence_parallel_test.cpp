// Megatron's sequence parallelism: what is sent, what is computed. Korthikanti et al., 2022, and
// Megatron core/tensor_parallel/layers.py (the input is gathered again for the weight gradient).
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/sim/scenario/refusal.h"
#include "tests/workloads/models.h"
#include "workloads/families/families.h"
#include "workloads/model_graph.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

constexpr int kTensor = 4;
constexpr std::int64_t kBatch = 2, kSequence = 256;

StepOptions split_step(bool sequence_parallel) {
  StepOptions step = test::single_gpu(test::megatron(), StepMode::training, kBatch, kSequence);
  step.layout.tensor = kTensor;
  step.layout.sequence_parallel = sequence_parallel;
  return test::in(Precision::bf16, step);
}

ModelSpec gpt() {
  ModelSpec model = test::gpt2_large();
  model.vocab = 128 * kTensor * 10;
  return model;
}

/// Number of collectives of every kind in `ops`; all of them move `bytes`.
std::map<OpKind, int> collectives(const std::vector<GraphOp>& ops, Bytes bytes) {
  std::map<OpKind, int> count;
  for (const GraphOp& op : ops) {
    if (op.kind != GraphOpKind::collective) continue;
    EXPECT_EQ(op.bytes, bytes) << op.name;
    EXPECT_EQ(op.group, GroupKind::tensor);
    ++count[op.collective];
  }
  return count;
}

TEST(SequenceParallel, GathersAheadOfColumnsAndScattersBehindRows) {
  const ModelGraph graph = build_model_graph(gpt(), split_step(true));
  const Block& layer = graph.blocks[1];
  const Bytes whole(2 * kSequence * kBatch * gpt().hidden);
  using Count = std::map<OpKind, int>;
  EXPECT_EQ(collectives(layer.forward, whole),
            (Count{{OpKind::all_gather, 2}, {OpKind::reduce_scatter, 2}}));
  // Backward: the gradients of both row-split outputs and both column-split inputs are gathered.
  EXPECT_EQ(collectives(layer.backward, whole),
            (Count{{OpKind::all_gather, 4}, {OpKind::reduce_scatter, 2}}));
  EXPECT_EQ(graph.hidden_bytes, Bytes(whole.value() / kTensor));
}

/// What backward of the product `name` of a layer does, in its order: "dgrad dgrad.all_reduce ...".
std::string backward_of(const std::string& name, const StepOptions& step) {
  std::string order;
  const Block layer = build_model_graph(gpt(), step).blocks[1];
  for (const GraphOp& op : layer.backward) {
    const bool runs = op.kind == GraphOpKind::kernel || op.kind == GraphOpKind::collective;
    const bool part = op.name.starts_with(name + ".dgrad") || op.name.starts_with(name + ".wgrad");
    if (runs && part) order += op.name.substr(name.size() + 1) + " ";
  }
  return order;
}

TEST(TensorParallel, SumsDataGradientsBesideTheWeightGradientOrBehindIt) {
  StepOptions step = split_step(false);
  for (const std::string name : {"attention.qkv", "mlp.up"}) {
    step.framework.overlap_tensor_gradients = true;
    EXPECT_EQ(backward_of(name, step), "dgrad dgrad.all_reduce wgrad ");
    step.framework.overlap_tensor_gradients = false;
    EXPECT_EQ(backward_of(name, step), "dgrad wgrad dgrad.all_reduce ");
  }
}

TEST(SequenceParallel, SendsAsMuchAsTensorParallelismAndOneGatherMore) {
  // An all-reduce is a reduce-scatter and an all-gather: 4 all-reduces against 4 pairs, besides the
  // second gather of two inputs.
  const auto volume = [](bool sequence_parallel) {
    double sum = 0;
    const Block layer = build_model_graph(gpt(), split_step(sequence_parallel)).blocks[1];
    for (const auto* ops : {&layer.forward, &layer.backward}) {
      for (const GraphOp& op : *ops) {
        if (op.kind != GraphOpKind::collective) continue;
        const double times = op.collective == OpKind::all_reduce ? 2 : 1;
        sum += times * static_cast<double>(op.bytes.value()) * (kTensor - 1) / kTensor;
      }
    }
    return sum;
  };
  EXPECT_NEAR(volume(true) / volume(false), 10.0 / 8.0, 1e-12);
}

TEST(SequenceParallel, ComputesTheSameProductsAndLessOfTheRest) {
  const Block whole = build_model_graph(gpt(), split_step(false)).blocks[1];
  const Block parts = build_model_graph(gpt(), split_step(true)).blocks[1];
  EXPECT_EQ(total(parts.forward).gemm_flops, total(whole.forward).gemm_flops);
  EXPECT_EQ(total(parts.backward).gemm_flops, total(whole.backward).gemm_flops);
  EXPECT_EQ(total(parts.forward).kernels, total(whole.forward).kernels);
  EXPECT_EQ(parts.parameters, whole.parameters);
  const auto norm_bytes = [](const Block& layer) {
    Bytes sum;
    for (const GraphOp& op : layer.forward) {
      if (op.kernel.kind == KernelKind::layer_norm) sum += op.kernel.bytes();
    }
    return static_cast<double>(sum.value());
  };
  EXPECT_NEAR(norm_bytes(whole) / norm_bytes(parts), kTensor, 0.05);  // but for the weights
}

TEST(SequenceParallel, NothingChangesWithoutTensorParallelism) {
  StepOptions step = split_step(false);
  step.layout.tensor = 1;
  const ModelGraph without = build_model_graph(gpt(), step);
  step.layout.sequence_parallel = true;
  const ModelGraph with = build_model_graph(gpt(), step);
  EXPECT_EQ(to_text(with), to_text(without));
}

TEST(SequenceParallel, SumsGradientsOfNormsOverTheTensorGroup) {
  const ModelSpec model = gpt();
  const Program program = build_program(model, split_step(true));
  // two norms of weights and biases and two biases behind split rows per layer, and the last norm
  const std::int64_t shared = model.layers * 6 * model.hidden + 2 * model.hidden;
  std::vector<Bytes> reduced;
  for (const ProgramOp& op : program.stages[0].ops) {
    if (op.kind != OpKind::all_reduce || op.phase != Phase::gradient_reduction) continue;
    EXPECT_EQ(op.group, GroupKind::tensor);
    reduced.push_back(op.bytes);
  }
  EXPECT_EQ(reduced, std::vector<Bytes>{Bytes(4 * shared)});  // fp32 gradients
}

TEST(TensorParallel, NormsOfHeadsAreSummedOverTheTensorGroupWhateverTheSequence) {
  ModelSpec model = gpt();
  model.qk_norm = true;
  const auto kernels = [](const Block& layer) {
    return std::ranges::count_if(layer.forward, [](const GraphOp& op) {
      return op.kind == GraphOpKind::kernel && op.kernel.kind == KernelKind::layer_norm;
    });
  };
  for (const bool parts : {false, true}) {
    const Block layer = build_model_graph(model, split_step(parts)).blocks[1];
    const Block plain = build_model_graph(gpt(), split_step(parts)).blocks[1];
    EXPECT_EQ(kernels(layer), kernels(plain) + 2);
    // weight and bias of each of the two norms, one per rank's heads together
    EXPECT_EQ(layer.partial_parameters, plain.partial_parameters + 2 * 2 * model.head_dim);
    EXPECT_EQ(layer.parameters, plain.parameters + 2 * 2 * model.head_dim);
  }
}

StepOptions in_chunks() {
  StepOptions step = split_step(true);
  step.framework.overlap_tensor_products = true;
  return step;
}

/// What happens to the layer named `name`, kernels with their rows: "all_gather 384 wait 128".
std::string story_of(const std::string& name, const std::vector<GraphOp>& ops) {
  std::string story;
  bool inside = false;
  for (const GraphOp& op : ops) {
    const bool here = op.name == name || op.name.starts_with(name + ".");
    if (op.kind == GraphOpKind::wait && inside) story += "wait ";
    if (op.kind == GraphOpKind::wait || op.kind == GraphOpKind::view) continue;
    inside = here;
    if (!here) continue;
    if (op.kind == GraphOpKind::kernel && op.kernel.kind == KernelKind::gemm)
      story += std::to_string(op.kernel.m) + " ";
    if (op.kind == GraphOpKind::collective)
      story += op.collective == OpKind::all_gather ? "gather " : "scatter ";
  }
  return story;
}

TEST(SequenceParallel, InChunksProductsRunBesideWhatTheirRowsTravelBy) {
  const Block layer = build_model_graph(gpt(), in_chunks()).blocks[1];
  // 512 tokens on four ranks: a product waits for the last quarter of its rows only, or sends the
  // first one while it makes the others.
  EXPECT_EQ(story_of("mlp.up", layer.forward), "gather 384 wait 128 ");
  EXPECT_EQ(story_of("mlp.down", layer.forward), "128 scatter 384 scatter wait ");
  // data gradient [tokens, .], weight gradient [., .] of all tokens
  const std::string down = std::to_string(gpt().hidden);
  EXPECT_EQ(story_of("mlp.down", layer.backward), "gather 384 wait 128 " + down + " ");
}

TEST(SequenceParallel, InChunksAsMuchIsSentAndComputed) {
  const auto sums = [](const StepOptions& step) {
    std::map<OpKind, std::int64_t> sent;
    const Block layer = build_model_graph(gpt(), step).blocks[1];
    for (const auto* ops : {&layer.forward, &layer.backward}) {
      for (const GraphOp& op : *ops) {
        if (op.kind == GraphOpKind::collective) sent[op.collective] += op.bytes.value();
      }
    }
    const Flops flops = total(layer.forward).gemm_flops + total(layer.backward).gemm_flops;
    return std::tuple(sent, flops, layer.parameters);
  };
  EXPECT_EQ(sums(in_chunks()), sums(split_step(true)));
}

TEST(SequenceParallel, InChunksNeedsPartsOfASequence) {
  StepOptions step = in_chunks();
  step.layout.sequence_parallel = false;
  EXPECT_NE(test::refusal(gpt(), step), "");
}

TEST(SequenceParallel, NeedsASequenceThatTensorRanksCanShare) {
  StepOptions step = split_step(true);
  step.sequence_length = 250;
  EXPECT_NE(test::refusal(gpt(), step), "");
}

}  // namespace
}  // namespace tessera
