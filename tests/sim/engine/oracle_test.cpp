#include <map>
#include <random>

#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "sim/trace/timeline_index.h"
#include "tests/sim/engine/forked_simulation.h"
#include "tests/sim/engine/oracle/actor_per_stream.h"
#include "tests/sim/engine/random_program.h"

namespace tessera::test {
namespace {

constexpr int kPrograms = 120;

std::vector<int> ranks_of(const TimedProgram& program) {
  std::vector<int> ranks(static_cast<std::size_t>(program.program.layout.world_size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  return ranks;
}

TEST(RandomPrograms, EqualTheActorPerStreamEngineToANanosecond) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const TimedProgram program = random_program(seed);
    const Timeline expected = simulate_forked(program, simulate_with_actor_per_stream);
    const Timeline actual = simulate_forked(program);
    ASSERT_EQ(actual.ops.size(), expected.ops.size());
    for (std::size_t i = 0; i < actual.ops.size(); ++i) {
      const OpRecord& op = actual.ops[i];
      SCOPED_TRACE("seed " + std::to_string(seed) + " record " + std::to_string(i) + " op " +
                   std::to_string(op.op));
      ASSERT_NEAR(op.start.value(), expected.ops[i].start.value(), 1e-9);
      ASSERT_NEAR(op.transfer_start.value(), expected.ops[i].transfer_start.value(), 1e-9);
      ASSERT_NEAR(op.end.value(), expected.ops[i].end.value(), 1e-9);
    }
  }
}

TEST(RandomPrograms, GiveTheSameBytesWhenRunAgain) {
  for (std::uint64_t seed = 0; seed < kPrograms; seed += 10) {
    const TimedProgram program = random_program(seed);
    EXPECT_EQ(packed(simulate_forked(program)), packed(simulate_forked(program))) << seed;
  }
}

TEST(RandomPrograms, DoNotDependOnTheOrderInWhichActorsAreCreated) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const TimedProgram program = random_program(seed);
    std::vector<int> ranks = ranks_of(program);
    std::mt19937_64 random(seed);
    for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random() % i]);
    const Timeline permuted = simulate_forked(
        program, [&](const TimedProgram& timed) { return Simulation(timed).run(ranks); });
    EXPECT_EQ(packed(permuted), packed(simulate_forked(program))) << seed;
  }
}

TEST(RandomPrograms, NeverRunTwoOpsOfAStreamAtOnce) {
  for (std::uint64_t seed = 0; seed < kPrograms; seed += 4) {
    const TimedProgram program = random_program(seed);
    const Timeline timeline = simulate_forked(program);
    const TimelineIndex index(program, timeline);
    for (const auto& [rank, stands_for] : index.simulated()) {
      std::map<StreamKind, Seconds> last_end;
      for (const OpRecord& record : index.records_of(rank)) {
        const ProgramOp& op = index.program_of(rank).ops[static_cast<std::size_t>(record.op)];
        Seconds& end = last_end[op.stream];
        EXPECT_GE(record.start, end) << "seed " << seed << " op " << record.op;
        EXPECT_GE(record.end, record.transfer_start);
        end = record.end;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
