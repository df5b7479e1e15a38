#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/drawings/topology_svg.h"
#include "sim/report/text/topology_text.h"
#include "tests/hw/fabrics.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const ClusterSpec& cluster, bool every_link = false) {
  const Topology topology(cluster);
  return topology_text(topology, metrics_of(topology), every_link);
}

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TEST(TopologyText, ShowsTheFiguresOfACluster) {
  const std::string text = text_of(fabrics::clos());
  EXPECT_THAT(text, HasSubstr("bisection bandwidth   267 GB/s"));  // 8 nodes x 200 / 6
  EXPECT_THAT(text, HasSubstr("oversubscription      6.00"));
  EXPECT_THAT(text, HasSubstr("network per GPU       25.0 GB/s"));
  EXPECT_THAT(text, HasSubstr("diameter              8 links"));
}

TEST(TopologyText, MatrixSpeaksTheWordsOfNvidiaSmi) {
  const std::string mesh = text_of(boxes::alone(boxes::v100_cube_mesh()));
  EXPECT_THAT(mesh, HasSubstr("GPU0       X   NV1   NV1   NV2   NV2   NVB   NVB   NVB"));
  const std::string box = text_of(boxes::alone(boxes::pcie_box()));
  EXPECT_THAT(box, HasSubstr("GPU0       X   PIX   SYS   SYS"));
  EXPECT_THAT(text_of(boxes::alone(boxes::a100_switch())), HasSubstr("GPU0       X   NVS"));
}

TEST(TopologyText, AlikeLinksShareALineAndFaultsStandApart) {
  ClusterSpec cluster = fabrics::nodes(2);
  cluster.faults = {{"node1/nic2->fabric", 0.25}, {"node1/nic3->fabric"}};
  const std::string text = text_of(cluster);
  EXPECT_EQ(occurrences(text, "node*/nic*->fabric"), 2u);
  EXPECT_THAT(text, HasSubstr("1 missing"));
}

TEST(TopologyText, EveryLinkHasTheNameThatFaultsUse) {
  const std::string text = text_of(fabrics::graph(), true);
  EXPECT_THAT(text, HasSubstr("fabric/left->right#2 "));
  const Topology topology(fabrics::graph());
  for (const Link& link : topology.links()) EXPECT_THAT(text, HasSubstr(link.name + " "));
}

TEST(TopologySvg, DrawsEveryPlaceOfASmallClusterOnce) {
  const std::string svg = topology_svg(Topology(fabrics::graph()));
  EXPECT_EQ(svg.find("<svg"), svg.rfind("<svg"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_EQ(occurrences(svg, ">GPU0<"), 3u);
  EXPECT_EQ(occurrences(svg, ">left<"), 1u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("#cc3311")));
}

TEST(TopologySvg, DegradedLinksAreRed) {
  ClusterSpec cluster = fabrics::nodes(2);
  cluster.faults = {{"node1/nic2->fabric", 0.25}};
  EXPECT_EQ(occurrences(topology_svg(Topology(cluster)), "#cc3311"), 1u);
}

TEST(TopologySvg, NodesOnTheSameSwitchesAreDrawnOnce) {
  ClusterSpec cluster = fabrics::rails();
  cluster.node_count = 64;
  const std::string svg = topology_svg(Topology(cluster));
  EXPECT_THAT(svg, HasSubstr(">4 nodes: 0-3<"));  // 4 nodes hang on the same 8 leaves
  EXPECT_EQ(occurrences(svg, ">GPU0<"), 8u);      // of 16 groups, the first 8
  cluster.faults = {{"node3/nic2->fabric", 0.25}};
  const std::string faulty = topology_svg(Topology(cluster));
  EXPECT_THAT(faulty, HasSubstr(">3 nodes: 0-2<"));
  EXPECT_THAT(faulty, HasSubstr(">node 3<"));
}

TEST(TopologySvg, ThePointerSaysWhatALineIs) {
  EXPECT_THAT(topology_svg(Topology(fabrics::graph())),
              HasSubstr("<title>fabric/left-&gt;right, fabric, 10.0 GB/s</title>"));
}

TEST(TopologySvg, LargeClustersSayWhatIsLeftOut) {
  ClusterSpec cluster = fabrics::nodes(20);
  for (int node = 0; node < 20; ++node)
    cluster.faults.push_back({"node" + std::to_string(node) + "/nic0->fabric", 0.02 * (node + 1)});
  EXPECT_THAT(topology_svg(Topology(cluster)), HasSubstr("shown: the first 8 of 20 kinds"));
}

}  // namespace
}  // namespace tessera
