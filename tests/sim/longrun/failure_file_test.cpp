#include "sim/longrun/failure_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

/// A file that goes away with the test.
class PlantedFile {
 public:
  PlantedFile(const std::string& name, const std::string& text)
      : path_(folder_.write(name, text)) {}
  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchFolder folder_;
  std::filesystem::path path_;
};

/// What reading `text` complains of.
std::string complaint(const std::string& text) {
  const PlantedFile file("longrun_bad_failures.yaml", text);
  try {
    read_failures(file.path(), 8);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(FailureFile, EventsOverNodeDaysAreTheRate) {
  const PlantedFile file("longrun_failures.yaml",
                         "gpus_per_node: 8\nnode_days: 1000\n"
                         "failures:\n"
                         "  - {name: a, component: gpu, events: 4, repair: 24h, detection: 10min}\n"
                         "  - {component: switch, per_1000_node_days: 3, takes_nodes: 16}\n"
                         "  - {component: nic, mtbf: 48h, shape: 0.7, restart: 1min}\n");
  const FailureModel model = read_failures(file.path(), 4);
  ASSERT_EQ(model.classes.size(), 3U);
  // 4 events in 1000 node-days of 8 GPUs: nodes of 4 have half of them.
  EXPECT_DOUBLE_EQ(model.classes[0].per_node_day, 0.002);
  EXPECT_EQ(model.classes[0].repair, Seconds(86'400));
  EXPECT_EQ(model.classes[0].detection, Seconds(600));
  // Switches do not come with GPUs.
  EXPECT_DOUBLE_EQ(model.classes[1].per_node_day, 0.003);
  EXPECT_EQ(model.classes[1].name, "switch");
  EXPECT_EQ(model.classes[1].takes_nodes, 16);
  // Once in two days, of 8 GPUs.
  EXPECT_DOUBLE_EQ(model.classes[2].per_node_day, 0.25);
  EXPECT_EQ(model.classes[2].restart, Seconds(60));
}

TEST(FailureFile, EveryProblemIsNamedWithItsPlace) {
  EXPECT_NE(complaint("failures: []\n").find("has no list of failures"), std::string::npos);
  EXPECT_NE(complaint("failures: [{component: gpus, mtbf: 3h}]\n").find("\"gpus\" is no component"),
            std::string::npos);
  const std::string two = complaint(
      "failures:\n"
      "  - {component: gpu, events: 3, repiar: 3h}\n"
      "  - {component: gpu, mtbf: 3h, per_1000_node_days: 2}\n");
  EXPECT_NE(two.find("bad_failures.yaml:2:5: counts events"), std::string::npos) << two;
  EXPECT_NE(two.find("did you mean repair?"), std::string::npos) << two;
  EXPECT_NE(two.find("has 2 rates"), std::string::npos) << two;
  EXPECT_NE(complaint("failures: [{component: gpu, mtbf: 3h, slowdown: 2}]\n")
                .find("slows the job for no time"),
            std::string::npos);
  EXPECT_NE(complaint("failures: [{component: gpu, mtbf: 3h}, {component: gpu, mtbf: 4h}]\n")
                .find("gpu is the name of another failure"),
            std::string::npos);
  EXPECT_NE(complaint("failures: [{component: gpu, mtbf: 3h, planned: true, found_after: 1h}]\n")
                .find("is found late, and slow, planned"),
            std::string::npos);
  EXPECT_NE(complaint("failures: [{component: gpu, mtbf: 3h, set: x}]\n")
                .find("set is no list of settings"),
            std::string::npos);
  EXPECT_NE(complaint("failures: [{component: gpu, mtbf: 3 V}]\n").find("mtbf = "),
            std::string::npos);
}

TEST(FaultTrace, KeepsTheNodesThatThereAreInOrder) {
  const PlantedFile file("longrun_trace.csv",
                         "node,component,start_day,end_day\n"
                         "1,NIC,2,2.5\n"
                         "7,GPU,1,3\n"
                         "0,GPU,0.5,1\n");
  const auto faults = read_fault_trace(file.path(), 4);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].node, 0);
  EXPECT_EQ(faults[0].begin, Micros(43'200'000'000));
  EXPECT_EQ(faults[1].cause, "NIC");
  EXPECT_EQ(faults[1].end - faults[1].begin, Micros(43'200'000'000));
}

TEST(FaultTrace, RefusesWhatIsNoRecord) {
  const PlantedFile backwards("longrun_backwards.csv", "node,start_day,end_day\n1,2,1\n");
  EXPECT_THROW(read_fault_trace(backwards.path(), 4), InputError);
  const PlantedFile other("longrun_other.csv", "node,begin\n1,2\n");
  EXPECT_THROW(read_fault_trace(other.path(), 4), InputError);
}

}  // namespace
}  // namespace tessera
