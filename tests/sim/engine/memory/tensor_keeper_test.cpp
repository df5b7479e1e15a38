#include "sim/engine/memory/tensor_keeper.h"

#include <cstdlib>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "sim/process/forked_call.h"
#include "sim/remat/portable_math.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr std::array kPolicies{PressurePolicy::planner, PressurePolicy::dtr,
                               PressurePolicy::capuchin};

/// An operator of one kernel on tensors of its step.
struct TestOp {
  bool forward = true;
  bool repeatable = true;
  Seconds time = 1_ms;
  std::vector<int> reads;
  std::vector<int> overwrites;  ///< of these
  std::vector<Bytes> makes;     ///< tensors, numbered in order
};

struct TestStep {
  TimedProgram timed;
  Bytes largest;  ///< working set of an operator
  Bytes peak;     ///< where nothing leaves
};

/// Sizes of the tensors of `ops`, and the op that reads or makes each last.
struct TestTensors {
  explicit TestTensors(const std::vector<TestOp>& ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const int tensor : ops[i].reads) last[static_cast<std::size_t>(tensor)] = i;
      for (const Bytes bytes : ops[i].makes) {
        sizes.push_back(bytes);
        last.push_back(i);
      }
    }
  }

  ProgramBlock block() const {
    ProgramBlock block{.name = "step"};
    for (std::size_t t = 0; t < sizes.size(); ++t)
      block.storages.push_back(
          {"t" + std::to_string(t), TensorRole::saved_activation, StorageScope::local, sizes[t]});
    return block;
  }

  std::vector<Bytes> sizes;
  std::vector<std::size_t> last;
};

/// What op `i` allocates, touches and frees; tensors from `next` on are its own. Returns its
/// working set.
Bytes fill_segment(const TestOp& op, std::size_t i, const TestTensors& tensors, int& next,
                   Segment& segment) {
  segment.block = 0;
  segment.repeatable = op.forward && op.repeatable;
  std::set<int> touched(op.reads.begin(), op.reads.end());
  for (const Bytes bytes : op.makes) {
    touched.insert(next);
    segment.writes.emplace_back(next);
    segment.memory.push_back({MemoryEventKind::allocate, 0, StorageId(next++), bytes});
    segment.peak_above_start += bytes;
  }
  Bytes working, freed;
  for (const int tensor : op.overwrites) segment.writes.emplace_back(tensor);
  for (const int tensor : touched) {
    const auto at = static_cast<std::size_t>(tensor);
    segment.touches.emplace_back(tensor);
    working += tensors.sizes[at];
    if (tensors.last[at] != i) continue;
    segment.memory.push_back({MemoryEventKind::free, 0, StorageId(tensor), tensors.sizes[at]});
    freed += tensors.sizes[at];
  }
  segment.net_memory = segment.peak_above_start - freed;
  return working;
}

/// The step that runs `ops` one behind the other; a tensor goes behind its last reader.
TestStep step_of(const std::vector<TestOp>& ops, double link_slower) {
  ProgramBuilder builder;
  for (const TestOp& op : ops) {
    builder.kernels(0, op.time);
    builder.last(0).micro_batch = 0;
    builder.last(0).phase = op.forward ? Phase::forward : Phase::backward;
  }
  ClusterSpec cluster = switched_node(1);
  cluster.node.gpu.pcie_bandwidth = cluster.node.gpu.pcie_bandwidth / link_slower;
  TestStep step{.timed = builder.on(cluster), .largest = {}, .peak = {}};
  const TestTensors tensors(ops);
  step.timed.program.blocks.push_back(tensors.block());
  int next = 0;
  Bytes level;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Segment& segment = step.timed.program.segments[i];
    step.largest = std::max(step.largest, fill_segment(ops[i], i, tensors, next, segment));
    step.peak = std::max(step.peak, level + segment.peak_above_start);
    level += segment.net_memory;
  }
  step.timed.memory_limit.links = {
      {.bytes_per_ns = 32 / link_slower, .latency = 10'000, .full_duplex = true}};
  return step;
}

/// `layers` that each read the tensor of the one before, and backward passes in reverse order.
std::vector<TestOp> chain(int layers, Seconds kernel) {
  std::vector<TestOp> ops;
  for (int i = 0; i < layers; ++i) {
    TestOp op{.time = kernel, .makes = {64_MiB}};
    if (i > 0) op.reads = {i - 1};
    ops.push_back(op);
  }
  for (int i = layers - 1; i >= 0; --i) {
    TestOp op{.forward = false, .time = kernel, .reads = {i}};
    if (i > 0) op.reads.push_back(i - 1);
    ops.push_back(op);
  }
  return ops;
}

Timeline run(TestStep step, Bytes limit, PressurePolicy policy, bool swap = true) {
  step.timed.memory_limit.bytes = limit;
  step.timed.memory_limit.policy = policy;
  step.timed.memory_limit.swap = swap;
  return simulate_forked(step.timed);
}

TEST(TensorKeeper, NothingHappensWhereThereIsRoom) {
  const TestStep step = step_of(chain(4, 1_ms), 1);
  for (const PressurePolicy policy : kPolicies) {
    const Timeline timeline = run(step, 256_MiB, policy);
    EXPECT_EQ(timeline.step_time, 8_ms);
    EXPECT_TRUE(timeline.pressure_copies.empty());
    EXPECT_TRUE(timeline.pressure_reruns.empty());
  }
}

TEST(TensorKeeper, AChainIsMadeAgainFromWhatIsKept) {
  // 4 of 8 tensors fit; the backward pass of layer i reads those of i and i - 1. The rule makes
  // nothing again here, because another forward op has read every tensor.
  const TestStep step = step_of(chain(8, 1_ms), 1000);
  for (const PressurePolicy policy : {PressurePolicy::planner, PressurePolicy::dtr}) {
    const Timeline timeline = run(step, 256_MiB, policy);
    EXPECT_LE(timeline.peak_memory.at(0), 256_MiB);
    EXPECT_TRUE(timeline.pressure_copies.empty());
    EXPECT_GE(timeline.pressure_reruns.size(), 4);
    EXPECT_NEAR(timeline.step_time.value(),
                0.016 + 0.001 * static_cast<double>(timeline.pressure_reruns.size()), 1e-9);
    EXPECT_EQ(timeline.memory.back().used, Bytes(0));
  }
  EXPECT_TRUE(run(step, 256_MiB, PressurePolicy::rule).pressure_reruns.empty());
}

TEST(TensorKeeper, ThePlanCopiesWhereKernelsAreDear) {
  const TestStep step = step_of(chain(8, 100_ms), 1);
  const Timeline timeline = run(step, 256_MiB, PressurePolicy::planner);
  EXPECT_LE(timeline.peak_memory.at(0), 256_MiB);
  EXPECT_TRUE(timeline.pressure_reruns.empty());
  EXPECT_FALSE(timeline.pressure_copies.empty());
  EXPECT_LT(timeline.step_time.value(), 1.62);  // 16 kernels; four copies of 2 ms each way
}

TEST(TensorKeeper, WhatIsOverwrittenIsNotMadeAgain) {
  // The third operator overwrites what the first made: neither can run again.
  std::vector<TestOp> ops = chain(6, 1_ms);
  ops[2].reads.push_back(0);
  ops[2].overwrites = {0};
  const TestStep step = step_of(ops, 1);
  for (const PressurePolicy policy : kPolicies) {
    const Timeline timeline = run(step, 192_MiB, policy);
    EXPECT_LE(timeline.peak_memory.at(0), 192_MiB);
    for (const PressureRerun& rerun : timeline.pressure_reruns) {
      EXPECT_NE(rerun.op, 0);
      EXPECT_NE(rerun.op, 1);  // it read the old content
    }
  }
}

/// What ran on content other than that of the step without a limit; empty: nothing. An op that runs
/// again reads what it read and makes what it made: so nobody may have overwritten that since.
std::string stale_reads(const std::vector<TestOp>& ops, const Timeline& timeline) {
  std::vector<std::set<int>> of_op;  // what it reads or makes
  int next = 0;
  for (const TestOp& op : ops) {
    of_op.emplace_back(op.reads.begin(), op.reads.end());
    for (std::size_t i = 0; i < op.makes.size(); ++i) of_op.back().insert(next++);
  }
  Seconds kernels;
  for (const TestOp& op : ops) kernels += op.time;
  for (const PressureRerun& rerun : timeline.pressure_reruns) {
    const auto again = static_cast<std::size_t>(rerun.op);
    kernels += rerun.end - rerun.start;
    if (!ops[again].forward || !ops[again].repeatable)
      return "op " + std::to_string(again) + " cannot run again";
    for (std::size_t i = again; i < ops.size() && timeline.ops[i].start < rerun.start; ++i)
      for (const int tensor : ops[i].overwrites)
        if (of_op[again].contains(tensor))
          return "op " + std::to_string(again) + " ran again on what was overwritten";
  }
  return timeline.step_time.value() < kernels.value() * (1 - 1e-12) ? "less than all ran" : "";
}

/// Any operators: chains, several results, results of backward, what cannot run again.
std::vector<TestOp> random_ops(remat::Random& random) {
  const int forward = 2 + random.below(12);
  const int backward = 2 + random.below(12);
  std::vector<TestOp> ops;
  int tensors = 0;
  for (int i = 0; i < forward + backward; ++i) {
    TestOp op{.forward = i < forward, .repeatable = random.below(8) != 0};
    op.time = Seconds(1e-4 * (1 + random.below(40)));
    std::set<int> reads;
    for (int k = std::min(tensors, random.below(4)); k > 0; --k)
      reads.insert(random.below(2) == 0 ? std::max(0, tensors - 1 - random.below(3))
                                        : random.below(tensors));
    op.reads.assign(reads.begin(), reads.end());
    if (!reads.empty() && random.below(12) == 0) op.overwrites = {op.reads.front()};
    for (int k = i < forward ? 1 + random.below(2) : random.below(2); k > 0; --k)
      op.makes.push_back(Bytes(std::int64_t{1} << (20 + random.below(7))));
    tensors += static_cast<int>(op.makes.size());
    ops.push_back(op);
  }
  return ops;
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

struct RandomCase {
  std::vector<TestOp> ops;
  TestStep step;
  Bytes limit;
  PressurePolicy policy;
};

RandomCase random_case(remat::Random& random) {
  std::vector<TestOp> ops = random_ops(random);
  TestStep step = step_of(ops, std::array{1.0, 10.0, 100.0}[random.below(3)]);
  const auto span = static_cast<double>((step.peak - step.largest).value());
  const Bytes limit =
      step.largest + Bytes(static_cast<std::int64_t>(0.9 * random.uniform() * span));
  const PressurePolicy policy = kPolicies[static_cast<std::size_t>(random.below(3))];
  return {std::move(ops), std::move(step), limit, policy};
}

/// Limits between the largest working set and the peak, so that memory runs short at any moment.
/// TESSERA_PRESSURE_GRAPHS: how many (10,000: ninja pressure_graphs), of which the first
/// TESSERA_PRESSURE_FIRST are left out.
TEST(TensorKeeper, AnyGraphUnderAnyLimitStaysWithinAndEnds) {
  remat::Random random(7);
  const int first = number_from("TESSERA_PRESSURE_FIRST", 0);
  const int end = number_from("TESSERA_PRESSURE_GRAPHS", 300);
  std::size_t reruns = 0;
  std::size_t copies = 0;
  for (int graph = 0; graph < end; ++graph) {
    const RandomCase random_step = random_case(random);
    if (graph < first) continue;
    SCOPED_TRACE("graph " + std::to_string(graph) + " policy " +
                 std::to_string(static_cast<int>(random_step.policy)));
    Timeline timeline;
    try {
      timeline = run(random_step.step, random_step.limit, random_step.policy);
    } catch (const ForkedCallError& error) {
      ADD_FAILURE() << error.what();  // a deadlock or a shortage
      continue;
    }
    EXPECT_LE(timeline.peak_memory.at(0), random_step.limit);
    EXPECT_EQ(timeline.memory.back().used, Bytes(0));
    ASSERT_EQ(timeline.ops.size(), random_step.ops.size());
    EXPECT_EQ(stale_reads(random_step.ops, timeline), "");
    reruns += timeline.pressure_reruns.size();
    copies += timeline.pressure_copies.size();
  }
  EXPECT_GT(reruns, static_cast<std::size_t>(end - first) / 4);
  EXPECT_GT(copies, static_cast<std::size_t>(end - first) / 4);
}

}  // namespace
}  // namespace tessera::test
