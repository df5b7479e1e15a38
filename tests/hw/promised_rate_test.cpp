#include "hw/promised_rate.h"

#include <gtest/gtest.h>

#include "hw/topology/topology.h"
#include "tests/hw/fabrics.h"

namespace tessera {
namespace {

const Link& named(const Topology& topology, const std::string& name) {
  for (const Link& link : topology.links())
    if (link.name == name) return link;
  throw std::runtime_error("no link " + name);
}

TEST(PromisedRate, IsTheLineRateOfNvlinkPcieAndNics) {
  ClusterSpec cluster = fabrics::nodes(2);
  cluster.node.nic_efficiency = 0.5;
  cluster.node.pcie_efficiency = 0.25;
  const Topology topology(cluster);
  const Link& nic = named(topology, "node0/nic0->fabric");
  EXPECT_DOUBLE_EQ(promised_rate(nic, cluster).value(), 2 * nic.bandwidth.value());
  EXPECT_DOUBLE_EQ(promised_rate(nic, cluster).value(),
                   cluster.node.nic_bandwidth.value() * nic.lanes);
  const Link& slot = named(topology, "node0/gpu0->socket0");
  EXPECT_DOUBLE_EQ(promised_rate(slot, cluster).value(), cluster.node.gpu.pcie_bandwidth.value());
}

TEST(PromisedRate, CablesOfAGraphHaveUsableRates) {
  const Topology topology(fabrics::graph());
  const Link& cable = named(topology, "fabric/left->right#2");
  EXPECT_EQ(promised_rate(cable, topology.cluster()).value(), cable.bandwidth.value());
}

}  // namespace
}  // namespace tessera
