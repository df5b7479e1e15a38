#include "tests/app/import/import_fixture.h"

namespace tessera::test {
namespace {

using testing::HasSubstr;

Imported import(const std::string& text, const std::string& gpu,
                BytesPerSecond nic = BytesPerSecond(0)) {
  return import_smi_matrix(text, "file", {gpu, nic}, find_gpu);
}

TEST(SmiMatrix, AllNvlinksToEveryPeerMeanASwitch) {
  const NodeSpec node = import(sample("smi_matrix/hgx_h100_8.txt"), "H100-SXM5-80GB").cluster.node;
  EXPECT_EQ(node.gpu_count, 8);
  EXPECT_EQ(node.interconnect, GpuInterconnect::nvswitch);
  EXPECT_EQ(node.sockets, 2);
  EXPECT_EQ(node.nic_count, 8);
  EXPECT_EQ(node.nic_bandwidth, 50_GBps);
  EXPECT_EQ(node.gpus_per_pcie_switch, 1);  // each GPU shares a switch with a NIC of its own
}

TEST(SmiMatrix, BridgedPairsStayPairs) {
  const NodeSpec node =
      import(sample("smi_matrix/a100_pcie_bridges.txt"), "A100-PCIe-80GB").cluster.node;
  ASSERT_EQ(node.interconnect, GpuInterconnect::direct);
  ASSERT_EQ(node.pairs.size(), 2u);
  EXPECT_EQ(node.pairs[1].first, 2);
  EXPECT_EQ(node.pairs[1].links, 12);
  EXPECT_EQ(node.sockets, 2);
}

TEST(SmiMatrix, PixGroupsGpusBelowSwitches) {
  const NodeSpec node = import(sample("smi_matrix/l4_8.txt"), "L4").cluster.node;
  EXPECT_EQ(node.interconnect, GpuInterconnect::none);
  EXPECT_EQ(node.gpus_per_pcie_switch, 2);
  EXPECT_EQ(node.sockets, 2);
}

/// As the catalog's servers of such cards; an L4 has peer-to-peer.
TEST(SmiMatrix, GeForceCardsCopyThroughTheHost) {
  const Imported cards = import(sample("smi_matrix/l4_8.txt"), "RTX-4090");
  EXPECT_EQ(cards.cluster.node.staged_bandwidth,
            load_node("RTX-4090-PCIe-8", shipped_catalog()).staged_bandwidth);
  EXPECT_THAT(cards.assumed, Contains(HasSubstr("no peer-to-peer")));
  const Imported others = import(sample("smi_matrix/l4_8.txt"), "L4");
  EXPECT_EQ(others.cluster.node.staged_bandwidth, 0_GBps);
}

TEST(SmiMatrix, TheBandwidthOfNicsCanBeGiven) {
  const Imported imported = import(sample("smi_matrix/hgx_h100_8.txt"), "H100-SXM5-80GB", 25_GBps);
  EXPECT_EQ(imported.cluster.node.nic_bandwidth, 25_GBps);
}

TEST(SmiMatrix, FourLinksToEachOfThreePeersAreADirectMesh) {
  const std::string text =
      " GPU0 GPU1 GPU2 GPU3 CPU Affinity\nGPU0 X NV4 NV4 NV4 0-7\nGPU1 NV4 X NV4 NV4 0-7\n"
      "GPU2 NV4 NV4 X NV4 0-7\nGPU3 NV4 NV4 NV4 X 0-7\n";
  const NodeSpec node = import(text, "A100-SXM4-40GB").cluster.node;
  EXPECT_EQ(node.interconnect, GpuInterconnect::direct);
  EXPECT_EQ(node.pairs.size(), 6u);
  EXPECT_EQ(node.sockets, 1);
}

TEST(SmiMatrix, WhatIsWrittenReadsBackEqual) {
  const Imported imported = import(sample("smi_matrix/a100_pcie_bridges.txt"), "A100-PCIe-80GB");
  EXPECT_EQ(cluster_yaml(written_and_read(imported), imported.gpu, shipped_catalog()),
            cluster_yaml(imported.cluster, imported.gpu, shipped_catalog()));
}

TEST(SmiMatrix, ContradictionsAreRefusedWithTheirLine) {
  const auto message = [](const std::string& text) {
    return refusal(import_smi_matrix, text, "A100-SXM4-40GB");
  };
  EXPECT_THAT(message("nothing here"), HasSubstr("no heading with GPU0"));
  EXPECT_THAT(message(" GPU0 GPU1\nGPU0 X PIX\n"), HasSubstr("1 rows for 2 GPUs"));
  EXPECT_THAT(message(" GPU0 GPU1\nGPU0 X PIX\nGPU1 PHB X\n"),
              HasSubstr("file:2: GPU0 and GPU1 contradict each other"));
  EXPECT_THAT(message(" GPU0 GPU1\nGPU0 X NVx\n"), HasSubstr("file:2: cell \"NVx\""));
  EXPECT_THAT(message(" GPU0 GPU1\nGPU0 X\n"), HasSubstr("1 cells for 2 columns"));
  EXPECT_THAT(refusal(import_smi_matrix, sample("smi_matrix/l4_8.txt")), HasSubstr("--gpu"));
}

}  // namespace
}  // namespace tessera::test
