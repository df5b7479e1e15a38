#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/engine.h"
#include "sim/engine/errors/deadlock_error.h"
#include "sim/process/forked_call.h"
#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The lines of the DeadlockError, or "ended" if the step ends. In a process of its own.
std::string outcome(const TimedProgram& program) {
  return run_forked([&] {
    try {
      simulate(program);
      return std::string("ended");
    } catch (const DeadlockError& error) {
      std::string lines;
      for (const std::string& line : error.blocked()) lines += line + "\n";
      return lines;
    }
  });
}

TEST(Deadlock, NamesTheStreamThatWaitsForAMessageWithoutSender) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.kernels(0, 1_ms);
  builder.kernels(1, 1_ms);
  builder.recv(1, 0, 5, 1_MiB);
  EXPECT_EQ(outcome(builder.build()),
            "gpu 1 stream pipeline_recv op 1 waits for message 5 from stage 0\n");
}

TEST(Deadlock, NamesTheMessageThatNobodyReceives) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.send(0, 1, 3, 1_MiB);
  EXPECT_EQ(outcome(builder.build()), "message 3 from gpu 0 to gpu 1 was never received\n");
}

TEST(Deadlock, NamesTheGpusThatDoNotJoinACollective) {
  ProgramBuilder builder({.tensor = 2, .pipeline = 2, .data = 1});
  for (int stage : {0, 1}) builder.all_reduce(stage, GroupKind::world, 1_MiB, StreamKind::compute);
  builder.all_reduce(0, GroupKind::world, 1_MiB, StreamKind::compute);
  EXPECT_EQ(outcome(builder.build()),
            "gpu 0 stream compute op 1 waits for gpu 2, gpu 3 in collective 1 (all_reduce) of "
            "their world group\n"
            "gpu 1 stream compute op 1 waits for gpu 2, gpu 3 in collective 1 (all_reduce) of "
            "their world group\n");
}

TEST(Deadlock, NamesTheOpsOfACircleOfWaits) {
  ProgramBuilder builder;
  builder.kernels(0, 1_ms, {1, -1});
  builder.all_reduce(0, GroupKind::tensor, 1_MiB, StreamKind::tensor_comm, {0, -1});
  EXPECT_EQ(outcome(builder.build()),
            "gpu 0 stream compute op 0 waits for op 1\n"
            "gpu 0 stream tensor_comm op 1 waits for op 0\n");
}

TEST(Deadlock, NamesTheOpThatTheHostWaitsFor) {
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.recv(0, 1, 0, 1_MiB);
  builder.last(0).host_sync = true;
  builder.kernels(0, 1_ms);
  EXPECT_EQ(outcome(builder.build()),
            "gpu 0 stream compute op 1 waits for its host, which waits for op 0\n"
            "gpu 0 stream pipeline_recv op 0 waits for message 0 from stage 1\n");
}

TEST(Deadlock, SimGridDoesNotPrintItsOwnReport) {
  // It would list blocked actors on stderr; libraries leave the output to the program.
  ProgramBuilder builder({.tensor = 1, .pipeline = 2, .data = 1});
  builder.recv(0, 1, 0, 1_MiB);
  builder.last(0).host_sync = true;
  const TimedProgram program = builder.build();
  testing::internal::CaptureStderr();
  EXPECT_NE(outcome(program), "ended");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("Deadlock detected")));
}

TEST(Deadlock, TheErrorsTextListsEveryLine) {
  EXPECT_STREQ(DeadlockError({"a waits", "b waits"}).what(),
               "the step cannot end:\n  a waits\n  b waits");
}

}  // namespace
}  // namespace tessera::test
