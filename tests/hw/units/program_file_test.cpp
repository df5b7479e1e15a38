#include "hw/units/program_file.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(ProgramFile, IsTheFileThatRuns) {
  EXPECT_EQ(program_file(), fs::read_symlink("/proc/self/exe"));
}

TEST(DataFolder, LiesBesideTheFolderOfThePrograms) {
  EXPECT_EQ(data_folder_of("/opt/tessera/bin/tessera"), "/opt/tessera/share/tessera");
  EXPECT_EQ(data_folder_of("/opt/tessera/libexec/tessera"), "/opt/tessera/share/tessera");
}

TEST(DataFolder, OfABuildIsTheCheckoutThatALinkNames) {
  const ScratchFolder folder;
  const fs::path& build = folder.path();
  fs::create_directories(build / "share");
  fs::create_directories(build / "checkout");
  fs::create_symlink("../checkout", build / "share" / "tessera");
  EXPECT_EQ(data_folder_of(build / "bin/tessera"), build / "checkout");
}

TEST(ModuleOf, LiesBesideTheFolderOfThePrograms) {
  EXPECT_EQ(module_of("/usr/bin/tessera", "x.so"), "/usr/lib/tessera/x.so");
  EXPECT_EQ(module_of("/x/libexec/tessera", "x.so"), "/x/lib/tessera/x.so");
}

TEST(ProgramBeside, IsTheOneToStartAlsoWhereALauncherStandsBeforeTheProgram) {
  EXPECT_EQ(program_beside("/usr/bin/tessera", "tessera-lab"), "/usr/bin/tessera-lab");
  EXPECT_EQ(program_beside("/x/libexec/tessera", "tessera"), "/x/bin/tessera");
}

}  // namespace
}  // namespace tessera
