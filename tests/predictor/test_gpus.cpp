#include "tests/predictor/test_gpus.h"

#include <algorithm>
#include <array>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

struct Facts {
  const char* id;
  Architecture architecture;
  const char* compute_capability;
  const char* die;
  int sm_count;
  double clock_mhz, fp32_tflops, bandwidth_gbps;
  std::int64_t l2_mib, memory_gib;
  double tdp_watts;
};

constexpr std::array<Facts, 11> kFacts{{
    {"P4", Architecture::pascal, "6.1", "GP104", 20, 1114, 5.5, 192, 2, 8, 75},
    {"P100-PCIe-16GB", Architecture::pascal, "6.0", "GP100", 56, 1329, 9.3, 732, 4, 16, 250},
    {"V100-PCIe-32GB", Architecture::volta, "7.0", "GV100", 80, 1380, 14.0, 900, 6, 32, 250},
    {"V100-SXM2-32GB", Architecture::volta, "7.0", "GV100", 80, 1530, 15.7, 900, 6, 32, 300},
    {"T4", Architecture::turing, "7.5", "TU104", 40, 1590, 8.1, 320, 4, 16, 70},
    {"A100-PCIe-40GB", Architecture::ampere, "8.0", "GA100", 108, 1410, 19.5, 1555, 40, 40, 250},
    {"A100-SXM4-80GB", Architecture::ampere, "8.0", "GA100", 108, 1410, 19.5, 2039, 40, 80, 400},
    {"A40", Architecture::ampere, "8.6", "GA102", 84, 1740, 37.4, 696, 6, 48, 300},
    {"L4", Architecture::ada, "8.9", "AD104", 58, 2040, 30.3, 300, 48, 24, 72},
    {"H100-SXM5-80GB", Architecture::hopper, "9.0", "GH100", 132, 1980, 66.9, 3350, 50, 80, 700},
    {"H200-SXM5-141GB", Architecture::hopper, "9.0", "GH100", 132, 1980, 66.9, 4800, 50, 141, 700},
}};

}  // namespace

GpuSpec test_gpu(const std::string& id) {
  const auto found = std::ranges::find_if(kFacts, [&](const Facts& f) { return f.id == id; });
  if (found == kFacts.end()) throw InputError({"GPU " + id, "is unknown", "use one of the tests'"});
  GpuSpec gpu;
  gpu.id = id;
  gpu.vendor = "NVIDIA";
  gpu.architecture = found->architecture;
  gpu.compute_capability = found->compute_capability;
  gpu.die = found->die;
  gpu.sm_count = found->sm_count;
  gpu.boost_clock = Hertz(found->clock_mhz * 1e6);
  gpu.fp32 = FlopsPerSecond(found->fp32_tflops * 1e12);
  gpu.memory_bandwidth = BytesPerSecond(found->bandwidth_gbps * 1e9);
  gpu.l2 = Bytes(found->l2_mib << 20);
  gpu.memory = Bytes(found->memory_gib << 30);
  gpu.tdp = Watts(found->tdp_watts);
  return gpu;
}

}  // namespace tessera
