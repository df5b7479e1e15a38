// What eager PyTorch does besides the kernels that a model's code names; tests/pytorch holds layers
// against PyTorch itself.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

int count(const std::vector<GraphOp>& ops, const std::string& prefix) {
  int number = 0;
  for (const GraphOp& op : ops)
    number += op.kind == GraphOpKind::kernel && op.name.starts_with(prefix) ? 1 : 0;
  return number;
}
const GraphOp& op_called(const std::vector<GraphOp>& ops, const std::string& name) {
  for (const GraphOp& op : ops)
    if (op.name == name) return op;
  ADD_FAILURE() << "no " << name;
  return ops.front();
}

ModelSpec grouped_llama() {
  ModelSpec model = test::llama2_7b();
  model.layers = 2;
  model.kv_heads = 8;
  return model;
}

TEST(EagerPyTorch, SlicesOfRepeatedKeysMakeSixteenKernelsInBackward) {
  // x[:, :, None, :, :]: four slices of keys and four of values, zeros and a copy for each.
  const StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 2, 64);
  const Block layer = build_model_graph(grouped_llama(), step).blocks[1];
  for (const char* name : {"attention.k_repeat.slice", "attention.v_repeat.slice"})
    for (const char* kernel : {".zero", ".copy"})
      EXPECT_EQ(count(layer.backward, std::string(name) + kernel), 4) << name << kernel;
  EXPECT_EQ(count(build_model_graph(test::llama2_7b(), step).blocks[1].backward,
                  "attention.k_repeat.slice"),
            0);
}

TEST(EagerPyTorch, ShiftedLabelsCopyTheLogits) {
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 2, 64);
  const auto shifts = [&](const std::vector<GraphOp>& ops) {
    return count(ops, "loss.shift") + count(ops, "loss.words") + count(ops, "loss.labels.shift");
  };
  Block head = build_model_graph(grouped_llama(), step).blocks[2];
  EXPECT_EQ(shifts(head.forward), 2);
  EXPECT_EQ(shifts(head.backward), 4);
  // 2 sequences of 63 positions, 32000 words in fp32, read and written.
  EXPECT_EQ(op_called(head.forward, "loss.shift.copy").kernel.bytes().value(),
            2 * 2 * 63 * 32000 * 4);
  step.framework.shifts_labels = false;
  head = build_model_graph(grouped_llama(), step).blocks[2];
  EXPECT_EQ(shifts(head.forward) + shifts(head.backward), 0);
}

/// Most that is live at once over forward and backward of the block.
std::int64_t peak(const Block& block) {
  std::int64_t live = 0, most = 0;
  for (const auto* ops : {&block.forward, &block.backward}) {
    for (const GraphOp& op : *ops) {
      live += op.allocated.value();
      most = std::max(most, live);
      live -= op.freed.value();
    }
  }
  return most;
}

TEST(EagerPyTorch, GradientsOfATiedTableMeetInPlace) {
  // The head's gradient of the table, the embedding's, and their sum: two tables where it is added
  // in place, three else. One sequence of 8 tokens, so that nothing else counts.
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 1, 8);
  ModelSpec model = grouped_llama();
  model.tied_embeddings = true;
  const std::int64_t table = 4LL * model.vocab * model.hidden;
  const auto made = [&](bool in_place) {
    step.framework.gradients_join_in_place = in_place;
    const Block head = build_model_graph(model, step).blocks[0];
    std::int64_t bytes = 0;
    for (const GraphOp& op : head.backward) bytes += op.allocated.value();
    return bytes / table;
  };
  EXPECT_EQ(made(false), 2);  // the embedding's and the sum; the head's came from behind
  EXPECT_EQ(made(true), 1);
}

TEST(EagerPyTorch, ReentrantCheckpointsHoldTheirResultAndItsGradient) {
  // Beyond what backward of the layer needs at its peak: [b, s, h] of the result. The gradient that
  // came in is held too, but was counted by the block behind.
  StepOptions step = test::single_gpu(test::hf_eager(), StepMode::training, 2, 64);
  step.recompute = Recompute::full;
  const auto of = [&](bool reentrant) {
    step.framework.reentrant_checkpoints = reentrant;
    return peak(build_model_graph(grouped_llama(), step).blocks[1]);
  };
  const std::int64_t hidden = 2LL * 64 * 4096 * 4;
  EXPECT_GE(of(true) - of(false), hidden);
  EXPECT_LE(of(true) - of(false), 2 * hidden);
}

}  // namespace
}  // namespace tessera
