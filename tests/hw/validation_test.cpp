#include "hw/validation.h"

#include "tests/hw/boxes.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto problem_at(const std::string& where) {
  return Contains(Field(&Problem::where, where));
}
auto problem_saying(const std::string& what) {
  return Contains(Field(&Problem::what, HasSubstr(what)));
}

TEST(Validation, RealBoxesHaveNoProblems) {
  for (const NodeSpec& node :
       {boxes::h100_mesh(), boxes::a100_mesh(), boxes::a100_switch(), boxes::v100_cube_mesh(),
        boxes::pcie_box(), single_gpu_node(boxes::gpu("P4", Architecture::pascal, "6.1", 0))}) {
    EXPECT_THAT(problems_of(node), IsEmpty()) << node.id;
  }
}

TEST(Validation, PairsNameTwoGpusOfTheNode) {
  NodeSpec node = boxes::h100_mesh();
  node.pairs.push_back({1, 4, 1});
  node.pairs.push_back({2, 2, 1});
  EXPECT_THAT(problems_of(node), problem_saying("pair 1-4 names a GPU that the node lacks"));
  EXPECT_THAT(problems_of(node), problem_saying("pair 2-2 joins a GPU to itself"));
}

TEST(Validation, APairIsListedOnceInEitherOrder) {
  NodeSpec node = boxes::v100_cube_mesh();
  node.pairs.back() = {1, 0, 1};
  EXPECT_THAT(problems_of(node), problem_saying("pair 0-1 is repeated"));
}

TEST(Validation, EfficienciesAreSharesOfTheLineRate) {
  NodeSpec node = boxes::a100_switch();
  node.nvlink_efficiency = 1.1;
  node.nic_efficiency = 0;
  EXPECT_THAT(problems_of(node), problem_at("nvlink_efficiency"));
  EXPECT_THAT(problems_of(node), problem_at("nic_efficiency"));
}

TEST(Validation, SeveralSocketsNeedARateBetweenThem) {
  NodeSpec node = boxes::pcie_box();
  node.socket_bandwidth = BytesPerSecond(0);
  EXPECT_THAT(problems_of(node), problem_at("socket_bandwidth"));
}

TEST(Validation, NicsThatDoNotDivideOverTheGpusAreRejected) {
  NodeSpec node = boxes::a100_switch();
  node.nic_count = 12;
  EXPECT_THAT(problems_of(node), problem_at("nic_count"));
  node.nic_count = 32;
  EXPECT_THAT(problems_of(node), IsEmpty());
}

TEST(Validation, SizesBeyondAllMemoryAreRejected) {
  ClusterSpec cluster = boxes::alone(boxes::a100_switch());
  cluster.node_count = 65'537;  // x 8 = 524,296 GPUs
  EXPECT_THAT(problems_of(cluster), problem_at("node_count"));
  cluster.node_count = 2;
  cluster.node.sockets = 1025;
  EXPECT_THAT(problems_of(cluster), problem_at("node.sockets"));
}

TEST(Validation, NvlinksNeedABandwidth) {
  GpuSpec gpu = boxes::gpu("A100", Architecture::ampere, "8.0", 12);
  gpu.nvlink_bandwidth = BytesPerSecond(0);
  EXPECT_THAT(problems_of(gpu), problem_at("nvlink_bandwidth"));
}

TEST(GpuSpec, PeakIsTheFigureOfThePrecision) {
  GpuSpec gpu = boxes::gpu("A100", Architecture::ampere, "8.0", 12);
  gpu.bf16 = 312_TFLOPS;
  EXPECT_EQ(gpu.peak(Precision::bf16), 312_TFLOPS);
  EXPECT_EQ(gpu.peak(Precision::fp32), 20_TFLOPS);
  EXPECT_EQ(gpu.peak(Precision::int64), FlopsPerSecond(0));
}

}  // namespace
}  // namespace tessera
