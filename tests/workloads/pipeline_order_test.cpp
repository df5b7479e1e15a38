// Runs programs without time: messages are rendezvous, hosts block where they are told to. What is
// left over at the end is a deadlock.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/program.h"

namespace tessera {
namespace {

class UntimedExecution {
 public:
  explicit UntimedExecution(const Program& program) : program_(program) {
    for (const RankProgram& stage : program.stages) {
      done_.emplace_back(stage.ops.size(), false);
      submitted_.push_back(0);
    }
  }

  /// Ops that never ran.
  std::size_t run() {
    while (advance()) {
    }
    std::size_t left = 0;
    for (const auto& stage : done_) left += std::count(stage.begin(), stage.end(), false);
    return left;
  }

 private:
  const std::vector<ProgramOp>& ops(std::size_t stage) const { return program_.stages[stage].ops; }

  bool advance() {
    bool progress = false;
    for (std::size_t stage = 0; stage < done_.size(); ++stage) {
      progress = submit(stage) || progress;
      for (std::size_t i = 0; i < submitted_[stage]; ++i) progress = finish(stage, i) || progress;
    }
    return progress;
  }

  bool submit(std::size_t stage) {
    const std::size_t next = submitted_[stage];
    if (next == ops(stage).size()) return false;
    if (next > 0 && ops(stage)[next - 1].host_sync && !done_[stage][next - 1]) return false;
    ++submitted_[stage];
    return true;
  }

  /// Submitted, first of its stream, and everything it waits for has ended.
  bool is_ready(std::size_t stage, std::size_t i) const {
    if (done_[stage][i] || i >= submitted_[stage]) return false;
    const ProgramOp& op = ops(stage)[i];
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      if (!done_[stage][earlier] && ops(stage)[earlier].stream == op.stream) return false;
    }
    return std::all_of(op.waits.begin(), op.waits.end(), [&](std::int32_t wait) {
      return wait < 0 || done_[stage][static_cast<std::size_t>(wait)];
    });
  }

  bool finish(std::size_t stage, std::size_t i) {
    if (!is_ready(stage, i)) return false;
    const ProgramOp& op = ops(stage)[i];
    if (op.kind == OpKind::send || op.kind == OpKind::recv) {
      const auto peer = static_cast<std::size_t>(op.peer_stage);
      const std::size_t other = matching(peer, op);
      if (other == ops(peer).size() || !is_ready(peer, other)) return false;
      done_[peer][other] = true;
    }
    done_[stage][i] = true;
    return true;
  }

  std::size_t matching(std::size_t peer, const ProgramOp& op) const {
    const OpKind wanted = op.kind == OpKind::send ? OpKind::recv : OpKind::send;
    std::size_t i = 0;
    while (i < ops(peer).size() && !(ops(peer)[i].kind == wanted && ops(peer)[i].tag == op.tag)) {
      ++i;
    }
    return i;
  }

  const Program& program_;
  std::vector<std::vector<bool>> done_;
  std::vector<std::size_t> submitted_;
};

/// Highest memory of a stage above what it holds all the time.
std::int64_t peak_activations(const Program& program, std::size_t stage) {
  std::int64_t in_use = 0;
  std::int64_t peak = 0;
  for (const ProgramOp& op : program.stages[stage].ops) {
    if (op.kind != OpKind::kernels) continue;
    const Segment& segment = program.segment(op.segment);
    peak = std::max(peak, in_use + segment.peak_above_start.value());
    in_use += segment.net_memory.value();
  }
  return peak;
}

std::int64_t first_stage_peak(PipelineSchedule schedule, int micro_batches) {
  ModelSpec model = test::gpt2_large();
  model.layers = 8;
  StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 1, 512);
  step.layout = {1, 4, 1};
  step.global_batch = micro_batches;
  step.schedule = schedule;
  return peak_activations(build_program(model, step), 0);
}

TEST(PipelineMemory, OneFOneBDoesNotGrowWithTheMicroBatches) {
  const auto schedule = PipelineSchedule::one_f_one_b;
  EXPECT_EQ(first_stage_peak(schedule, 4), first_stage_peak(schedule, 16));
  EXPECT_LT(first_stage_peak(schedule, 2), first_stage_peak(schedule, 4));
}

TEST(PipelineMemory, GpipeGrowsByTheSavedActivationsOfEachMicroBatch) {
  // two layers of 66 N + 9 A and the statistics of two norms; the embedding saves its dropout's
  // mask
  constexpr std::int64_t kN = 512 * 1280;
  constexpr std::int64_t kA = 20 * 512 * 512;
  constexpr std::int64_t kSaved = 2 * (66 * kN + 9 * kA + 2 * 8 * 512) + kN;
  const auto schedule = PipelineSchedule::gpipe;
  EXPECT_EQ(first_stage_peak(schedule, 9) - first_stage_peak(schedule, 8), kSaved);
}

TEST(PipelineOrder, NeverDeadlocks) {
  ModelSpec model = test::gpt2_large();
  model.layers = 8;
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    for (const int stages : {2, 4, 8}) {
      for (const int micro_batches : {1, 2, 5, 12}) {
        StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 1, 128);
        step.layout = {2, stages, 1};
        step.global_batch = micro_batches;
        step.schedule = schedule;
        const Program program = build_program(model, step);
        EXPECT_EQ(UntimedExecution(program).run(), 0u)
            << stages << " stages, " << micro_batches << " micro-batches";
      }
    }
  }
}

TEST(PipelineOrder, InferenceOverStagesNeverDeadlocks) {
  ModelSpec model = test::gpt2_large();
  StepOptions step = test::single_gpu(test::megatron_local(), StepMode::inference, 1, 128);
  step.layout = {1, 4, 1};
  step.global_batch = 3;
  const Program program = build_program(model, step);
  EXPECT_EQ(UntimedExecution(program).run(), 0u);
}

}  // namespace
}  // namespace tessera
