// Runs programs without time: messages are rendezvous where the host waits for them, hosts block
// where they are told to. What is left over at the end is a deadlock.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/models.h"
#include "workloads/program/program.h"

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
    if (op.kind == OpKind::recv && !waited_for(stage)) {
      const auto peer = static_cast<std::size_t>(op.peer_stage);
      if (!done_[peer][matching(peer, op)]) return false;
    } else if ((op.kind == OpKind::send || op.kind == OpKind::recv) && waited_for(stage)) {
      const auto peer = static_cast<std::size_t>(op.peer_stage);
      const std::size_t other = matching(peer, op);
      if (other == ops(peer).size() || !is_ready(peer, other)) return false;
      done_[peer][other] = true;
    }
    done_[stage][i] = true;
    return true;
  }

  /// Messages that the host waits for are of batch_isend_irecv; others leave when they can.
  bool waited_for(std::size_t stage) const {
    return std::any_of(ops(stage).begin(), ops(stage).end(), [](const ProgramOp& op) {
      return (op.kind == OpKind::send || op.kind == OpKind::recv) && op.host_sync;
    });
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
struct Activations {
  std::int64_t peak = 0;
  std::int64_t held = 0;  ///< between passes over layers
};

Activations activations(const Program& program, std::size_t stage) {
  std::int64_t in_use = 0;
  Activations most;
  for (const ProgramOp& op : program.stages[stage].ops) {
    if (op.kind != OpKind::kernels) continue;
    const Segment& segment = program.segment(op.segment);
    most.peak = std::max(most.peak, in_use + segment.peak_above_start.value());
    in_use += segment.net_memory.value();
    most.held = std::max(most.held, in_use);
  }
  return most;
}

Activations first_stage(PipelineSchedule schedule, int micro_batches) {
  ModelSpec model = test::gpt2_large();
  model.layers = 8;
  StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 1, 512);
  step.layout = {1, 4, 1};
  step.global_batch = micro_batches;
  step.schedule = schedule;
  if (schedule == PipelineSchedule::interleaved_1f1b) step.layout.virtual_stages = 2;
  return activations(build_program(model, step), 0);
}
std::int64_t first_stage_peak(PipelineSchedule schedule, int micro_batches) {
  return first_stage(schedule, micro_batches).peak;
}
std::int64_t first_stage_held(PipelineSchedule schedule, int micro_batches) {
  return first_stage(schedule, micro_batches).held;
}

TEST(PipelineMemory, OneFOneBDoesNotGrowWithTheMicroBatches) {
  const auto schedule = PipelineSchedule::one_f_one_b;
  EXPECT_EQ(first_stage_peak(schedule, 4), first_stage_peak(schedule, 16));
  EXPECT_LT(first_stage_peak(schedule, 2), first_stage_peak(schedule, 4));
}

// Two layers of 66 N + 9 A and the statistics of two norms per stage; the embedding saves its
// dropout's mask.
constexpr std::int64_t kN = 512 * 1280;
constexpr std::int64_t kA = 20 * 512 * 512;
constexpr std::int64_t kLayer = 66 * kN + 9 * kA + 2 * 8 * 512;

TEST(PipelineMemory, OfZeroBubbleGrowsWithTheMicroBatchesHeld) {
  // stage 0 of 4 holds 4 with H1 and 7 with H2, both as their backward passes begin
  EXPECT_EQ(
      first_stage_peak(PipelineSchedule::zb_h2, 12) - first_stage_peak(PipelineSchedule::zb_h1, 12),
      3 * (2 * kLayer + kN));
  EXPECT_EQ(first_stage_held(PipelineSchedule::zb_h1, 12),
            first_stage_held(PipelineSchedule::one_f_one_b, 12));
}

TEST(PipelineMemory, OfInterleavedFollowsItsChunks) {
  // 4 micro-batches of 2 layers against 2 * 4 + 3 chunks of one, of which 8 have the embedding
  // when the 12th forward pass ends
  EXPECT_EQ(first_stage_held(PipelineSchedule::one_f_one_b, 12), 8 * kLayer + 4 * kN);
  EXPECT_EQ(first_stage_held(PipelineSchedule::interleaved_1f1b, 12), 11 * kLayer + 8 * kN);
}

TEST(PipelineMemory, GpipeGrowsByTheSavedActivationsOfEachMicroBatch) {
  constexpr std::int64_t kSaved = 2 * kLayer + kN;
  const auto schedule = PipelineSchedule::gpipe;
  EXPECT_EQ(first_stage_peak(schedule, 9) - first_stage_peak(schedule, 8), kSaved);
}

TEST(PipelineOrder, NeverDeadlocks) {
  ModelSpec model = test::gpt2_large();
  model.layers = 8;
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b,
                              PipelineSchedule::zb_h1, PipelineSchedule::zb_h2}) {
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

TEST(PipelineOrder, OfModelChunksNeverDeadlocks) {
  ModelSpec model = test::gpt2_large();
  model.layers = 24;
  for (const bool overlap : {false, true}) {
    for (const StepMode mode : {StepMode::training, StepMode::inference}) {
      for (const int stages : {2, 4}) {
        for (const int groups : {1, 2, 3}) {
          StepOptions step = test::single_gpu(test::megatron_local(), mode, 1, 128);
          step.layout = {1, stages, 1};
          step.layout.virtual_stages = 3;
          step.global_batch = groups * stages;
          step.schedule = PipelineSchedule::interleaved_1f1b;
          step.framework.overlap_p2p = overlap;
          EXPECT_EQ(UntimedExecution(build_program(model, step)).run(), 0u)
              << stages << " stages, " << groups << " groups";
        }
      }
    }
  }
  for (const int stages : {2, 4, 8}) {
    StepOptions step = test::single_gpu(test::megatron_local(), StepMode::training, 1, 128);
    step.layout = {1, stages, 1};
    step.global_batch = 2 * stages + 2;
    step.schedule = PipelineSchedule::dualpipe;
    EXPECT_EQ(UntimedExecution(build_program(model, step)).run(), 0u) << stages << " stages";
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
