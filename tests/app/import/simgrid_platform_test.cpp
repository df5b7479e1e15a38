#include "app/import/simgrid_radical.h"
#include "app/import/simgrid_units.h"
#include "hw/topology/topology.h"
#include "tests/app/import/import_fixture.h"

namespace tessera::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGpu = "H100-SXM5-80GB";

Imported import(const std::string& text) {
  return import_simgrid_platform(text, "file", {kGpu, {}}, find_gpu);
}

/// Links of the file on the way between two hosts.
std::vector<std::string> links_between(const Topology& topology, int from, int to) {
  std::vector<std::string> names;
  for (const LinkId id : topology.route(from, to).links) {
    const std::string& name = topology.link(id).name;
    const std::size_t end = name.find(".in->");
    if (end != std::string::npos) names.push_back(name.substr(7, end - 7));
  }
  return names;
}

TEST(SimgridPlatform, RoutesCrossTheLinksThatTheFileLists) {
  const Topology topology(import(sample("simgrid_platform/backbone.xml")).cluster);
  EXPECT_THAT(links_between(topology, 0, 1), ElementsAre("a_UP", "backbone", "b_DOWN"));
  EXPECT_THAT(links_between(topology, 2, 0), ElementsAre("c_UP", "backbone", "a_DOWN"));
  EXPECT_NEAR(topology.route(0, 1).latency.value(), 2.5e-6, 1e-15);
}

TEST(SimgridPlatform, ClustersMeetOverTheirRouters) {
  const Topology topology(import(sample("simgrid_platform/two_clusters.xml")).cluster);
  EXPECT_EQ(topology.gpu_count(), 4 + 3);
  EXPECT_THAT(links_between(topology, 0, 1),
              ElementsAre("east_link_0_UP", "east_backbone", "east_link_1_DOWN"));
  EXPECT_THAT(links_between(topology, 0, 6),
              ElementsAre("east_link_0_UP", "east_backbone", "wan", "west_link_3_DOWN"));
  EXPECT_THAT(links_between(topology, 4, 5), ElementsAre("west_link_0_UP", "west_link_2_DOWN"));
}

TEST(SimgridPlatform, ALinkSharedByBothDirectionsIsOneLink) {
  const std::string text =
      "<platform version='4.1'><zone id='z' routing='Full'><host id='a' speed='1Gf'/>"
      "<host id='b' speed='1Gf'/><link id='l' bandwidth='1GBps' latency='1us'/>"
      "<route src='a' dst='b'><link_ctn id='l'/></route></zone></platform>";
  const Topology topology(import(text).cluster);
  const auto there = links_between(topology, 0, 1);
  EXPECT_THAT(there, ElementsAre("l"));
  EXPECT_EQ(there, links_between(topology, 1, 0));
}

TEST(SimgridPlatform, WhatIsNotUsedIsNamed) {
  const Imported imported = import(sample("simgrid_platform/backbone.xml"));
  EXPECT_THAT(imported.ignored, Contains("1 x <prop>"));
  EXPECT_THAT(imported.ignored, Contains("attributes of <host>: core, speed"));
}

TEST(SimgridPlatform, WhatIsWrittenReadsBackEqual) {
  const Imported imported = import(sample("simgrid_platform/two_clusters.xml"));
  EXPECT_EQ(cluster_yaml(written_and_read(imported), kGpu, shipped_catalog()),
            cluster_yaml(imported.cluster, kGpu, shipped_catalog()));
}

/// The YAML of 4,950 links has more values than aliases may repeat, and no alias.
TEST(SimgridPlatform, ALinkBetweenEveryTwoOfAHundredHostsReadsBack) {
  constexpr int kHosts = 100;
  const auto host = [](int i) { return "h" + std::to_string(i); };
  std::string hosts;
  std::string links;
  std::string routes;
  for (int i = 0; i < kHosts; ++i) {
    hosts += "<host id='" + host(i) + "' speed='1Gf'/>";
    for (int j = 0; j < i; ++j) {
      const std::string link = host(i) + host(j);
      links += "<link id='" + link + "' bandwidth='1GBps' latency='1us'/>";
      routes += "<route src='" + host(i) + "' dst='" + host(j) + "'><link_ctn id='" + link +
                "'/></route>";
    }
  }
  const Imported imported = import("<platform version='4.1'><zone id='z' routing='Full'>" + hosts +
                                   links + routes + "</zone></platform>");
  EXPECT_EQ(written_and_read(imported).fabric.links.size(), imported.cluster.fabric.links.size());
}

TEST(SimgridPlatform, ContradictionsAreRefusedWithTheirLine) {
  const auto message = [](const std::string& inside) {
    return refusal(
        import_simgrid_platform,
        "<platform version='4.1'>\n<zone id='z' routing='Full'>" + inside + "</zone></platform>",
        kGpu);
  };
  const std::string hosts = "<host id='a'/><host id='b'/>";
  const std::string link = "<link id='l' bandwidth='1GBps' latency='1us'/>";
  EXPECT_THAT(message(""), HasSubstr("holds no host"));
  EXPECT_THAT(message("<host/>"), HasSubstr("file:2: host has no id"));
  EXPECT_THAT(message("<host id='a'/><host id='a'/>"), HasSubstr("\"a\" occurs twice"));
  EXPECT_THAT(message("<link id='l' bandwidth='fast'/>"), HasSubstr("\"fast\" is no bandwidth"));
  EXPECT_THAT(message(hosts + "<route src='a' dst='b'><link_ctn id='l'/></route>"),
              HasSubstr("there is no link \"l\""));
  EXPECT_THAT(message(hosts + link + "<route src='a' dst='c'><link_ctn id='l'/></route>"),
              HasSubstr("no host or router \"c\""));
  EXPECT_THAT(message(hosts + link + "<route src='a' dst='b'></route>"), HasSubstr("no link"));
  EXPECT_THAT(message(hosts), HasSubstr("holds no link"));
  EXPECT_THAT(message(hosts + link), HasSubstr("cannot be reached"));
  EXPECT_THAT(message("<cluster id='c' radical='0-1' bw='1GBps' topology='TORUS'/>"),
              HasSubstr("fabric.kind"));
  EXPECT_THAT(message("<cluster id='c' radical='5-1' bw='1GBps'/>"), HasSubstr("radical"));
}

TEST(SimgridUnits, BitsAndBytesWithDecimalAndBinaryPrefixes) {
  EXPECT_EQ(simgrid_bandwidth("1Gbps"), 0.125_GBps);
  EXPECT_EQ(simgrid_bandwidth("125MBps"), 0.125_GBps);
  EXPECT_EQ(simgrid_bandwidth("1KiBps"), BytesPerSecond(1024));
  EXPECT_EQ(simgrid_bandwidth("2.5e9"), 2.5_GBps);
  EXPECT_FALSE(simgrid_bandwidth("1GB"));
  EXPECT_FALSE(simgrid_bandwidth("-1GBps"));
  EXPECT_FALSE(simgrid_bandwidth("infGBps"));
  EXPECT_NEAR(simgrid_time("50us")->value(), 50e-6, 1e-18);
  EXPECT_EQ(simgrid_time("0")->value(), 0);
  EXPECT_FALSE(simgrid_time("5parsec"));
}

TEST(SimgridRadical, ListsRangesUpToTheLimit) {
  EXPECT_THAT(*simgrid_radical("0-2,7", 10), ElementsAre(0, 1, 2, 7));
  EXPECT_FALSE(simgrid_radical("0-10", 10));
  EXPECT_FALSE(simgrid_radical("3-1", 10));
  EXPECT_FALSE(simgrid_radical("1,", 10));
  EXPECT_FALSE(simgrid_radical("0-2147483647", 10));
}

}  // namespace
}  // namespace tessera::test
