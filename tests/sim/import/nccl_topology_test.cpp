#include "tests/sim/import/import_fixture.h"

namespace tessera::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Imported import(const std::string& text, const ImportOptions& options = {}) {
  return import_nccl_topology(text, "file", options, find_gpu);
}

TEST(NcclTopology, AnHgxBoardWithSwitchesHasItsNvlinksSocketsAndNics) {
  const Imported imported = import(sample("nccl_topology/hgx_h100_8.xml"));
  const NodeSpec& node = imported.cluster.node;
  EXPECT_EQ(imported.gpu, "H100-SXM5-80GB");
  EXPECT_EQ(node.gpu_count, 8);
  EXPECT_EQ(node.interconnect, GpuInterconnect::nvswitch);
  EXPECT_EQ(node.sockets, 2);
  EXPECT_EQ(node.socket_bandwidth, 22_GBps);  // Sapphire Rapids
  EXPECT_EQ(node.gpus_per_pcie_switch, 1);
  EXPECT_EQ(node.nic_count, 8);
  EXPECT_EQ(node.nic_bandwidth, 50_GBps);
  EXPECT_EQ(node.gpu.pcie_bandwidth, 63_GBps);  // 32 GT/s x16: the catalog's
  EXPECT_THAT(imported.ignored, Contains(HasSubstr("1 NICs of 12.5 GB/s")));
}

TEST(NcclTopology, ACubeMeshKeepsItsBundles) {
  const Imported imported = import(sample("nccl_topology/dgx1_v100.xml"));
  const NodeSpec& node = imported.cluster.node;
  const NodeSpec shipped = load_node("DGX-1-V100", shipped_catalog());
  ASSERT_EQ(node.pairs.size(), shipped.pairs.size());
  for (std::size_t i = 0; i < node.pairs.size(); ++i) {
    EXPECT_EQ(node.pairs[i].first, shipped.pairs[i].first);
    EXPECT_EQ(node.pairs[i].second, shipped.pairs[i].second);
    EXPECT_EQ(node.pairs[i].links, shipped.pairs[i].links);
  }
  EXPECT_EQ(node.gpus_per_pcie_switch, 2);
  EXPECT_EQ(node.nic_count, 4);
  EXPECT_EQ(node.nic_latency, 0.5_us);
  EXPECT_EQ(node.socket_bandwidth, 6_GBps);  // Broadwell
}

TEST(NcclTopology, ASlowerPcieLinkThanTheCatalogsIsKept) {
  const Imported imported = import(sample("nccl_topology/gh200.xml"), {"GH200-96GB", {}});
  // 32 GT/s over one lane, 128 of 130 bits
  EXPECT_NEAR(imported.cluster.node.gpu.pcie_bandwidth.value(), 32e9 / 8 * 128 / 130, 1);
  EXPECT_EQ(written_and_read(imported).node.gpu.pcie_bandwidth,
            imported.cluster.node.gpu.pcie_bandwidth);
}

TEST(NcclTopology, WhatIsWrittenReadsBackEqual) {
  for (const char* file : {"nccl_topology/hgx_h100_8.xml", "nccl_topology/dgx1_v100.xml"}) {
    const Imported imported = import(sample(file));
    const ClusterSpec read = written_and_read(imported);
    EXPECT_EQ(cluster_yaml(read, imported.gpu, shipped_catalog()),
              cluster_yaml(imported.cluster, imported.gpu, shipped_catalog()));
  }
}

std::string gpus(const std::string& links_of_0, const std::string& links_of_1) {
  return "<system version='1'><cpu numaid='0'>\n<pci busid='a' class='0x030200'><gpu dev='0' "
         "sm='80'>" +
         links_of_0 + "</gpu></pci>\n<pci busid='b' class='0x030200'><gpu dev='1' sm='80'>" +
         links_of_1 + "</gpu></pci></cpu></system>";
}

TEST(NcclTopology, UnknownElementsAreNamed) {
  const Imported imported =
      import(gpus("<nvlink target='b' count='4' tclass='0x030200'/><odd/><odd/>",
                  "<nvlink target='A' count='4' tclass='0x030200'/>"));
  EXPECT_THAT(imported.ignored, Contains("2 x <odd>"));
  EXPECT_EQ(imported.cluster.node.pairs.size(), 1u);
}

TEST(NcclTopology, ContradictionsAreRefusedWithTheirLine) {
  const auto message = [](const std::string& text) { return refusal(import_nccl_topology, text); };
  EXPECT_THAT(message("<system>"), HasSubstr("file:1: is no XML"));
  EXPECT_THAT(message("<graphs/>"), HasSubstr("outermost element is <graphs>"));
  EXPECT_THAT(message("<system/>"), HasSubstr("holds no GPU"));
  EXPECT_THAT(message(gpus("<nvlink target='b' count='4' tclass='0x030200'/>", "")),
              HasSubstr("file:2: GPU 0 has 4 NVLinks to GPU 1, which has 0 back"));
  EXPECT_THAT(message(gpus("<nvlink target='c' count='4' tclass='0x030200'/>", "")),
              HasSubstr("\"c\" is no other GPU"));
  EXPECT_THAT(message("<system><cpu><gpu dev='0' sm='80'/><gpu dev='0' sm='80'/></cpu></system>"),
              HasSubstr("GPU 0 occurs twice"));
  EXPECT_THAT(message("<system><cpu><gpu dev='0' sm='12'/></cpu></system>"), HasSubstr("--gpu"));
  EXPECT_THAT(message("<system><cpu><gpu dev='-1' sm='80'/></cpu></system>"),
              HasSubstr("dev = \"-1\""));
  EXPECT_THAT(message(gpus("<nvlink target='b' count='40' tclass='0x030200'/>",
                           "<nvlink target='a' count='40' tclass='0x030200'/>")),
              HasSubstr("GPU 0 has 40 NVLinks in pairs, but A100-SXM4-80GB has 12"));
}

TEST(NcclTopology, NestingHasALimit) {
  std::string text = "<system>";
  for (int i = 0; i < 100; ++i) text += "<pci>";
  for (int i = 0; i < 100; ++i) text += "</pci>";
  EXPECT_THAT(refusal(import_nccl_topology, text + "</system>"), HasSubstr("nests deeper than 64"));
}

}  // namespace
}  // namespace tessera::test
