#include "tests/app/import/import_fixture.h"

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

/// Two sockets with two switches each, of two GPUs and two NICs, as clouds ship it for
/// NCCL_TOPO_FILE.
std::string plain_node(const std::string& gpu_class, const std::string& nic_class) {
  std::string text = "<system version='1'>";
  int bus = 0;
  const auto device = [&](const std::string& kind) {
    return "<pci busid='000" + std::to_string(bus++) + ":00:00.0' class='" + kind +
           "' link_speed='16 GT/s' link_width='16'/>\n";
  };
  for (int socket = 0; socket < 2; ++socket) {
    text += "<cpu numaid='" + std::to_string(socket) + "' arch='x86_64' vendor='AuthenticAMD' " +
            "familyid='23' modelid='49'>\n";
    for (int pair = 0; pair < 2; ++pair) {
      text += "<pci busid='ffff:ff:0" + std::to_string(bus) + ".0' class='0x060400' " +
              "link_speed='16 GT/s' link_width='16'>\n";
      for (const std::string& kind : {gpu_class, nic_class, gpu_class, nic_class})
        text += device(kind);
      text += "</pci>\n";
    }
    text += "</cpu>";
  }
  return text + "</system>";
}

TEST(NcclTopology, GpusWithoutAnElementOfTheirOwnAreTheirPciDevices) {
  for (const char* gpu_class : {"0x030200", "0x030000"}) {
    const Imported imported =
        import(plain_node(gpu_class, "0x020700"), {"A100-SXM4-80GB", BytesPerSecond(25e9)});
    const NodeSpec& node = imported.cluster.node;
    EXPECT_EQ(node.gpu_count, 8);
    EXPECT_EQ(node.interconnect, GpuInterconnect::nvswitch);
    EXPECT_EQ(node.sockets, 2);
    EXPECT_EQ(node.gpus_per_pcie_switch, 2);
    EXPECT_EQ(node.nic_count, 8);
    EXPECT_EQ(node.nic_bandwidth, 25_GBps);
    EXPECT_THAT(imported.assumed, Contains(HasSubstr("the file leaves them to NCCL")));
    EXPECT_EQ(written_and_read(imported).node.gpu_count, 8);
  }
}

TEST(NcclTopology, WhatPlainFilesDoNotSayIsAskedFor) {
  const std::string text = plain_node("0x030200", "0x020000");
  const auto message = [](const std::string& file, const std::string& gpu) {
    return refusal(import_nccl_topology, file, gpu);
  };
  EXPECT_THAT(message(text, ""), HasSubstr("does not say what its 8 GPUs are; name the GPU"));
  EXPECT_THAT(message(text, "A100-SXM4-80GB"),
              HasSubstr("8 NICs without a speed; add --nic-bandwidth"));
  EXPECT_THAT(message(text, "V100-SXM2-16GB"),
              HasSubstr("does not say how the NVLinks of 8 V100-SXM2-16GB are joined"));
  EXPECT_THAT(message(text, "A100-PCIe-80GB"), HasSubstr("8 A100-PCIe-80GB are joined"))
      << "bridges or none";
  const Imported pcie = import(text, {"L40S", BytesPerSecond(25e9)});
  EXPECT_EQ(pcie.cluster.node.interconnect, GpuInterconnect::none);
}

TEST(NcclTopology, DisplaysBesideAcceleratorsAreNoGpus) {
  std::string text = plain_node("0x030200", "0x020700");
  text.insert(text.find("<pci"), "<pci busid='0003:00:00.0' class='0x030000'/>");
  EXPECT_EQ(import(text, {"A100-SXM4-80GB", BytesPerSecond(25e9)}).cluster.node.gpu_count, 8);
}

TEST(NcclTopology, NestingHasALimit) {
  std::string text = "<system>";
  for (int i = 0; i < 100; ++i) text += "<pci>";
  for (int i = 0; i < 100; ++i) text += "</pci>";
  EXPECT_THAT(refusal(import_nccl_topology, text + "</system>"), HasSubstr("nests deeper than 64"));
}

}  // namespace
}  // namespace tessera::test
