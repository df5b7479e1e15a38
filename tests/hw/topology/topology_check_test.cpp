#include "hw/topology/topology_check.h"

#include "tests/hw/fabrics.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Problem> doubts(const ClusterSpec& cluster) {
  return doubts_about(Topology(cluster));
}

auto doubt(const std::string& where, const std::string& what) {
  return Contains(
      testing::AllOf(Field(&Problem::where, where), Field(&Problem::what, HasSubstr(what))));
}

TEST(TopologyCheck, WholeClustersRaiseNoDoubt) {
  EXPECT_THAT(doubts(boxes::alone(boxes::h100_mesh())), IsEmpty());
  EXPECT_THAT(doubts(boxes::alone(boxes::v100_cube_mesh())), IsEmpty());
  EXPECT_THAT(doubts(fabrics::rails()), IsEmpty());
  EXPECT_THAT(doubts(fabrics::graph()), IsEmpty());
}

TEST(TopologyCheck, ACableThatIsSlowerInOneDirectionIsFound) {
  ClusterSpec cluster = fabrics::rails();
  cluster.faults = {{"node2/nic3->fabric", 0.5, true}};
  EXPECT_THAT(doubts(cluster), doubt("node2/nic3->fabric", "12.5 GB/s there, but 25 GB/s back"));
}

TEST(TopologyCheck, AMissingDirectionIsFound) {
  ClusterSpec cluster = fabrics::torus("2x4", 8);
  cluster.faults = {{"fabric/router0.0->router0.1", 0, true}};
  EXPECT_THAT(doubts(cluster), doubt("fabric/router0.1->router0.0", "has no way back"));
}

TEST(TopologyCheck, ManyDoubtsOfAKindAreCounted) {
  ClusterSpec cluster = fabrics::rails();
  cluster.faults = {{"node*/nic*->fabric", 0.5}};
  // 8 nodes x 8 NICs x 2 directions, the first 8 by name
  EXPECT_THAT(doubts(cluster), doubt("", "120 more degraded or missing links"));
}

TEST(TopologyCheck, NvlinksUnlikeTheGpusAreFound) {
  ClusterSpec cluster = boxes::alone(boxes::h100_mesh());
  cluster.node.nvlink_bandwidth_per_link = 20_GBps;
  EXPECT_THAT(doubts(cluster), doubt("node.nvlink_bandwidth_per_link", "20 GB/s, but an NVLink"));
  cluster.node.pairs.pop_back();
  EXPECT_THAT(doubts(cluster), doubt("node.pairs", "GPU 3 uses 12 of its 18 NVLinks"));
}

TEST(TopologyCheck, NicsThatThePcieLinkCannotFeedAreFound) {
  ClusterSpec cluster = boxes::alone(boxes::a100_switch());
  cluster.node.nic_bandwidth = 50_GBps;  // behind 32 GB/s of PCIe
  EXPECT_THAT(doubts(cluster), doubt("node.nic_bandwidth", "50 GB/s"));
}

TEST(TopologyCheck, DifferencesFromTheCatalogNameBothValues) {
  const NodeSpec catalog = boxes::a100_switch();
  EXPECT_THAT(differences_from_catalog(catalog, catalog), IsEmpty());
  NodeSpec node = catalog;
  node.nic_bandwidth = 12.5_GBps;
  EXPECT_THAT(differences_from_catalog(node, catalog),
              doubt("node.nic_bandwidth", "12.5 GB/s, but 25 GB/s in the catalog's DGX-A100"));
  GpuSpec gpu = catalog.gpu;
  gpu.pcie_bandwidth = 16_GBps;
  EXPECT_THAT(differences_from_catalog(gpu, catalog.gpu), doubt("gpu.pcie_bandwidth", "16 GB/s"));
}

}  // namespace
}  // namespace tessera
