#include "lab/validate/collectives/nccl_log.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/validate/device_name.h"

namespace tessera {
namespace {

constexpr const char* kText = R"(# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid  17 on  node-a device  0 [0x07] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid  18 on  node-b device  1 [0x0b] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
           8             2     float     sum      -1    20.26    0.00    0.00      0    20.30    0.00    0.00      0
     1048576        262144     float     sum      -1    37.90   27.67   48.42      0    38.21   27.44   48.02    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 24.2
)";

std::string log_complaint(const std::string& text) {
  try {
    parse_nccl_log(text, "run.log");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NcclLog, TextNamesCollectiveRanksNodesAndTimes) {
  const NcclLog log = parse_nccl_log(kText, "run.log");
  EXPECT_EQ(log.collective, CollectiveKind::all_reduce);
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 2);
  ASSERT_EQ(log.times.size(), 2);
  EXPECT_EQ(log.times[1].bytes, 1_MiB);
  EXPECT_NEAR(log.times[1].time.value(), 37.90e-6, 1e-12);
  EXPECT_EQ(log.times[1].type, "float");
}

TEST(NcclLog, OldTablesHaveFewerColumnsBeforeTheTime) {
  const NcclLog log = parse_nccl_log(
      "#      size       count    type   redop    time  algbw  busbw  error    time  algbw  busbw\n"
      "         64          16   float     sum    13.4   0.00   0.01  1e-07    13.6   0.00   0.01  "
      "1e-07\n",
      "old.log");
  EXPECT_FALSE(log.collective.has_value());
  EXPECT_EQ(log.ranks, 0);
  EXPECT_NEAR(log.times.at(0).time.value(), 13.4e-6, 1e-12);
}

TEST(NcclLog, TablesWithoutCheckHaveThreeColumnsEach) {
  const NcclLog log = parse_nccl_log(
      "#  size  count  type  redop  root  time  algbw  busbw  time  algbw  busbw\n"
      "   1024    256  float   none   -1   9.5   0.11   0.11   9.4   0.11   0.11\n",
      "gather.log");
  EXPECT_NEAR(log.times.at(0).time.value(), 9.5e-6, 1e-12);
}

TEST(NcclLog, JsonNamesTheSame) {
  const NcclLog log = parse_nccl_log(
      R"({"args": "build/reduce_scatter_perf -b 8", "devices": [{"rank": 0, "hostname": "a"},
         {"rank": 1, "hostname": "a"}], "results": [{"size": 4096, "type": "float",
         "out_of_place": {"time": 10.5, "alg_bw": 0.4}, "in_place": {"time": 10.0}}]})",
      "run.json");
  EXPECT_EQ(log.collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 1);
  EXPECT_EQ(log.times.at(0).bytes, 4_KiB);
  EXPECT_NEAR(log.times.at(0).time.value(), 10.5e-6, 1e-12);
}

/// `text` with `tag` before every line.
std::string tagged(const std::string& text, const std::string& tag) {
  std::string result = tag;
  for (const char c : text) result += c == '\n' ? "\n" + tag : std::string(1, c);
  return result;
}

TEST(NcclLog, TagsOfLaunchersAreNoPartOfALine) {
  for (const char* tag :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-node-a-7@1,0]<stdout>:", "0: ", " 0: "}) {
    const NcclLog log = parse_nccl_log(tagged(kText, tag), "run.log");
    EXPECT_EQ(log.collective, CollectiveKind::all_reduce) << tag;
    EXPECT_EQ(log.ranks, 2) << tag;
    EXPECT_EQ(log.nodes, 2) << tag;
    ASSERT_EQ(log.times.size(), 2) << tag;
    EXPECT_EQ(log.times[1].bytes, 1_MiB) << tag;
  }
}

TEST(NcclLog, TablesOfSeveralProcessesAreNotOneTable) {
  const std::string both = tagged(kText, "[1,0]<stdout>:") + "\n" + tagged(kText, "[1,1]<stdout>:");
  EXPECT_NE(log_complaint(both).find("rows from [1,0]<stdout>: and from [1,1]<stdout>:"),
            std::string::npos)
      << log_complaint(both);
}

TEST(NcclLog, KnowsItsDevices) {
  const NcclLog log = parse_nccl_log(kText, "run.log");
  EXPECT_EQ(log.gpus, std::set<std::string>{"NVIDIA A100-SXM4-80GB"});
  EXPECT_TRUE(log.even);
  std::string uneven = kText;
  uneven.insert(uneven.find("#  Rank  1"),
                "#  Rank  2 Group  0 Pid  19 on  node-a device  1 [0x08] NVIDIA A100-SXM4-80GB\n");
  EXPECT_FALSE(parse_nccl_log(uneven, "run.log").even);
}

TEST(DeviceName, AModelIsRecognizedInBothSpellings) {
  const auto same = [](const char* device, const char* id) {
    EXPECT_TRUE(can_be_gpu(device, id)) << device << " " << id;
  };
  same("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB");
  same("A100-SXM4-40GB", "A100-SXM4-80GB");  // the same links
  same("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB");
  same("NVIDIA H100 PCIe", "H100-PCIe-80GB");
  same("Tesla V100-SXM2-32GB", "V100-SXM2-16GB");
  same("NVIDIA GeForce RTX 3090", "RTX-3090");
  same("NVIDIA TITAN V", "TitanV");
  same("NVIDIA H100 80GB HBM3", "my-h100");
  same("NVIDIA H100 80GB HBM3", "mine");
  const auto other = [](const char* device, const char* id) {
    EXPECT_FALSE(can_be_gpu(device, id)) << device << " " << id;
  };
  other("NVIDIA A100-SXM4-80GB", "H100-SXM5-80GB");
  other("NVIDIA A100-PCIE-40GB", "A100-SXM4-40GB");
  other("NVIDIA H800", "H100-SXM5-80GB");
  other("NVIDIA H200", "H100-SXM5-80GB");
  other("NVIDIA GH200 480GB", "H200-SXM5-141GB");
}

TEST(NcclLog, WhatIsNoLogIsRefusedWithItsLine) {
  EXPECT_NE(log_complaint("").find("run.log: no measurement"), std::string::npos);
  EXPECT_NE(
      log_complaint("# size count type time #wrong\n 8 2 float sum\n").find("run.log:2: not a row"),
      std::string::npos);
  EXPECT_NE(log_complaint("# size count type time #wrong\n 8 2 float nan 0 0 0 1 0 0 0\n")
                .find("run.log:2: not a row"),
            std::string::npos);
  EXPECT_NE(log_complaint("{").find("not JSON"), std::string::npos);
  EXPECT_NE(log_complaint("{}").find("no list \"results\""), std::string::npos);
  EXPECT_NE(log_complaint(R"({"results": [{"size": "8"}]})").find("results[0]"), std::string::npos);
}

}  // namespace
}  // namespace tessera
