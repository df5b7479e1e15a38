#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr Seconds kForward = 1_ms;
constexpr Seconds kBackward = 2_ms;

/// One stage of 1F1B: as many forwards ahead as stages follow, then one forward, one backward.
class OneForwardOneBackwardStage {
 public:
  OneForwardOneBackwardStage(ProgramBuilder& builder, int stage, int stages)
      : builder_(builder), stage_(stage), stages_(stages) {}

  void build(int micro_batches) {
    const int warm_up = std::min(stages_ - 1 - stage_, micro_batches);
    for (int i = 0; i < warm_up; ++i) forward(i);
    for (int i = warm_up; i < micro_batches; ++i) {
      forward(i);
      backward(i - warm_up);
    }
    for (int i = micro_batches - warm_up; i < micro_batches; ++i) backward(i);
  }

 private:
  void forward(int micro_batch) { pass(stage_ - 1, stage_ + 1, 2 * micro_batch, kForward); }
  void backward(int micro_batch) { pass(stage_ + 1, stage_ - 1, 2 * micro_batch + 1, kBackward); }

  void pass(int from, int to, int tag, Seconds duration) {
    std::int32_t received = -1;
    if (exists(from)) received = builder_.recv(stage_, from, tag, Bytes(0));
    const auto computed = builder_.kernels(stage_, duration, {received, -1});
    if (exists(to)) builder_.send(stage_, to, tag, Bytes(0), {computed, -1});
  }
  bool exists(int stage) const { return stage >= 0 && stage < stages_; }

  ProgramBuilder& builder_;
  int stage_;
  int stages_;
};

class OneForwardOneBackward : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(OneForwardOneBackward, HasTheBubbleOfItsFormulaWhenStagesAreEqualAndMessagesFree) {
  const auto [stages, micro_batches] = GetParam();
  ProgramBuilder builder({.tensor = 1, .pipeline = stages, .data = 1});
  for (int stage = 0; stage < stages; ++stage) {
    OneForwardOneBackwardStage(builder, stage, stages).build(micro_batches);
  }
  const Timeline timeline = simulate_forked(builder.on(switched_node(stages, 100_GBps, 0_s)));
  const double busy = (micro_batches * (kForward + kBackward)).value();
  const double bubble = 1 - busy / timeline.step_time.value();
  EXPECT_NEAR(bubble, static_cast<double>(stages - 1) / (micro_batches + stages - 1), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(StagesAndMicroBatches, OneForwardOneBackward,
                         testing::Values(std::tuple(1, 4), std::tuple(2, 1), std::tuple(2, 8),
                                         std::tuple(4, 4), std::tuple(4, 32), std::tuple(8, 16)));

}  // namespace
}  // namespace tessera::test
