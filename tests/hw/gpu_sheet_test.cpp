#include "hw/gpu_sheet.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

/// A data sheet that holds together: RTX 5080, GB203 (NVIDIA, recalled).
GpuSpec sheet() {
  GpuSpec gpu;
  gpu.id = "RTX-5080";
  gpu.vendor = "NVIDIA";
  gpu.architecture = Architecture::blackwell;
  gpu.compute_capability = "12.0";
  gpu.sm_count = 84;
  gpu.boost_clock = Hertz(2.617e9);
  gpu.fp32 = 56.3_TFLOPS;
  gpu.tf32 = 56.3_TFLOPS;
  gpu.bf16 = 112.6_TFLOPS;
  gpu.fp16 = 112.6_TFLOPS;
  gpu.fp8 = 225.1_TFLOPS;
  gpu.fp4 = 900.4_TFLOPS;
  gpu.memory = 16_GiB;
  gpu.memory_bandwidth = 960_GBps;
  gpu.l2 = 64_MiB;
  gpu.max_threads_per_sm = 1536;
  gpu.pcie_generation = 5;
  gpu.pcie_bandwidth = 63_GBps;
  gpu.tdp = Watts(360);
  return gpu;
}

/// The one field that is named when `change` is made to the sheet.
auto names(const char* field, const char* words) {
  return ElementsAre(AllOf(Field(&Problem::where, field), Field(&Problem::what, HasSubstr(words))));
}
std::vector<Problem> after(const std::function<void(GpuSpec&)>& change) {
  GpuSpec gpu = sheet();
  change(gpu);
  return sheet_problems_of(gpu);
}

TEST(GpuSheet, OneThatHoldsTogetherIsTaken) {
  EXPECT_THAT(sheet_problems_of(sheet()), IsEmpty());
}

// Rates follow from the vendor's name: "Nvidia" ran the bf16 product of 4096 at 78 instead of 111
// TFLOP/s.
TEST(GpuSheet, VendorsAreThoseOfTheArchitecture) {
  EXPECT_THAT(after([](GpuSpec& g) { g.vendor = "Nvidia"; }),
              names("vendor", "blackwell is NVIDIA's"));
  EXPECT_THAT(after([](GpuSpec& g) { g.architecture = Architecture::cdna3; }),
              Contains(Field(&Problem::where, "vendor")));
}

TEST(GpuSheet, CapabilitiesAreThoseOfTheArchitecture) {
  EXPECT_THAT(after([](GpuSpec& g) { g.compute_capability = "9.0"; }),
              names("compute_capability", "9.0 is none of blackwell"));
  EXPECT_THAT(after([](GpuSpec& g) { g.compute_capability.clear(); }),
              names("compute_capability", "missing"));
  const auto radeon = [](GpuSpec& g) {  // RDNA 3, entered as the nearest word
    g.vendor = "AMD";
    g.architecture = Architecture::cdna3;
    g.compute_capability = "gfx1100";
  };
  EXPECT_THAT(after(radeon), names("compute_capability", "gfx1100 is none of cdna3"));
}

TEST(GpuSheet, DiesAreThoseOfTheArchitecture) {
  EXPECT_THAT(after([](GpuSpec& g) { g.die = "GB203"; }), IsEmpty());
  EXPECT_THAT(after([](GpuSpec& g) { g.die = "GH100"; }),
              names("die", "GH100 is none of blackwell"));
}

TEST(GpuSheet, ClocksAreThoseOfGpus) {
  EXPECT_THAT(after([](GpuSpec& g) { g.boost_clock = Hertz(2.617e6); }),
              Contains(Field(&Problem::where, "boost_clock")));
  EXPECT_THAT(after([](GpuSpec& g) { g.boost_clock = Hertz(2.617e12); }),
              Contains(Field(&Problem::where, "boost_clock")));
  EXPECT_THAT(after([](GpuSpec& g) { g.tensor_clock = Hertz(3.5e9); }),
              names("tensor_clock", "above the boost_clock"));
}

// 56.3e12 / (2 x 84 x 2.617e9) = 128 lanes.
TEST(GpuSheet, ThePeakFitsTheSms) {
  EXPECT_THAT(after([](GpuSpec& g) { g.sm_count = 8; }), names("fp32", "1.34e+03 lanes an SM"));
  EXPECT_THAT(after([](GpuSpec& g) { g.sm_count = 840; }), names("fp32", "12.8 lanes an SM"));
  EXPECT_THAT(after([](GpuSpec& g) { g.fp32 = FlopsPerSecond(56.3e9); }),
              names("fp32", "0.128 lanes an SM"));
}

TEST(GpuSheet, NarrowerFormatsAreNoSlower) {
  EXPECT_THAT(after([](GpuSpec& g) { g.fp8 = 60_TFLOPS; }), names("fp8", "below the 16-bit peak"));
  EXPECT_THAT(after([](GpuSpec& g) { g.fp4 = 100_TFLOPS; }), names("fp4", "below fp8"));
  EXPECT_THAT(after([](GpuSpec& g) { g.tf32 = 300_TFLOPS; }), names("tf32", "above the 16-bit"));
}

TEST(GpuSheet, MemoryIsThatOfGpus) {
  EXPECT_THAT(after([](GpuSpec& g) { g.memory_bandwidth = BytesPerSecond(0.96e9); }),
              names("memory_bandwidth", "is no GPU's"));
  EXPECT_THAT(after([](GpuSpec& g) { g.memory = 16'384_GiB; }), names("memory", "no GPU's"));
  EXPECT_THAT(after([](GpuSpec& g) { g.l2 = 64_GiB; }), names("l2", "no GPU's"));
}

TEST(GpuSheet, WattsAreThoseOfBoards) {
  EXPECT_THAT(after([](GpuSpec& g) { g.tdp = Watts(360e3); }), names("tdp", "no board's"));
  EXPECT_THAT(after([](GpuSpec& g) { g.idle_power = Watts(500); }),
              names("idle_power", "not below the tdp"));
  EXPECT_THAT(after([](GpuSpec& g) { g.busy_power = Watts(1000); }),
              names("busy_power", "above the tdp"));
}

// Data sheets say 900 GB/s of the 18 links of an H100, and 128 GB/s of PCIe 5.0 x16.
TEST(GpuSheet, LinksAreCountedInOneDirection) {
  const auto both_ways = [](GpuSpec& g) {
    g.nvlink_generation = 4;
    g.nvlink_links = 18;
    g.nvlink_bandwidth = 900_GBps;
  };
  EXPECT_THAT(after(both_ways), names("nvlink_bandwidth", "carry 450 GB/s in one direction"));
  const auto terabytes = [](GpuSpec& g) {
    g.nvlink_links = 18;
    g.nvlink_bandwidth = 450'000_GBps;
  };
  EXPECT_THAT(after(terabytes), names("nvlink_bandwidth", "18 links of the newest carry 1.8 TB/s"));
  EXPECT_THAT(after([](GpuSpec& g) { g.pcie_bandwidth = 128_GBps; }),
              names("pcie_bandwidth", "carry 63 GB/s in one direction"));
}

TEST(GpuSheet, AnSmHoldsMoreThanAFewThreads) {
  EXPECT_THAT(after([](GpuSpec& g) { g.max_threads_per_sm = 3; }),
              names("max_threads_per_sm", "= 3"));
}

}  // namespace
}  // namespace tessera
