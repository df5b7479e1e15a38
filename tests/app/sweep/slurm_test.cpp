#include "app/sweep/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/process/command.h"
#include "tests/app/sweep/sweep_files.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Slurm, ArraysNameRangesOfShards) {
  EXPECT_EQ(array_text({1, 2, 3, 7}), "1-3,7");
  EXPECT_EQ(array_text({4}), "4");
  EXPECT_EQ(array_text({1, 3, 4}), "1,3-4");
}

TEST(Slurm, PathsOfTheUserStayOneWordInTheScript) {
  const ScratchFolder folder;
  const std::string odd = (folder.path() / "it's $(touch oops); here").string();
  const std::string script =
      slurm_script({.program = "/bin/echo", .sweep = odd, .folder = folder.path(), .tasks = 2});
  const auto file = folder.write("script", script);
  const CommandResult result =
      run_command({"env", "SLURM_ARRAY_TASK_ID=2", "/bin/sh", file.string()});
  EXPECT_EQ(result.output, "sweep " + odd + " --out . --resume --jobs 1 --shard 2/2\n");
  EXPECT_THAT(unfinished_shards({.folder = folder.path(), .tasks = 2}), ElementsAre(1));
}

TEST(Command, ReturnsBothStreamsAndTheExitCode) {
  const CommandResult result = run_command({"/bin/sh", "-c", "echo out; echo err >&2; exit 5"});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(run_command({"no-such-program-at-all"}).exit_code, 127);
  EXPECT_EQ(run_command({"/bin/sh", "-c", "kill -9 $$"}).exit_code, 137);
}

}  // namespace
}  // namespace tessera
