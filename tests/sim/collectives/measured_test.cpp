#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>

#include "sim/collectives/collective.h"
#include "tests/hw/boxes.h"
#include "tests/hw/units/measurements.h"

namespace tessera {
namespace {

/// An all-reduce of measurements/collectives.csv.
struct MeasuredAllReduce {
  Bytes bytes;
  Seconds time;
};

/// Rows of `system` with at least `least` bytes.
std::vector<MeasuredAllReduce> all_reduces(const std::string& system, Bytes least) {
  std::ifstream file(measurements_folder() / "collectives.csv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = csv_fields(line);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  };
  std::vector<MeasuredAllReduce> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> row = csv_fields(line);
    if (row.at(column("system")) != system || row.at(column("collective")) != "all_reduce")
      continue;
    const Bytes bytes(std::stoll(row.at(column("bytes"))));
    if (bytes < least) continue;
    rows.push_back({bytes, Seconds(std::stod(row.at(column("time_us"))) * 1e-6)});
  }
  return rows;
}

/// NVSwitch node of eight H100 with in-switch reduction, which the ring does not use.
NodeSpec h100_switch() {
  NodeSpec node = boxes::node("DGX-H100", boxes::gpu("H100", Architecture::hopper, "9.0", 18), 8);
  node.interconnect = GpuInterconnect::nvswitch;
  node.nvlink_efficiency = boxes::kHopperEfficiency;
  return node;
}

/// A published sweep and how far the ring may be off on average above 4 MB. The bounds are sanity
/// limits; nothing is fitted to these rows.
struct Sweep {
  const char* label;
  const char* system;
  NodeSpec node;
  double bound;
};

void PrintTo(const Sweep& sweep, std::ostream* out) {
  *out << sweep.label;
}

class MeasuredAllReduces : public testing::TestWithParam<Sweep> {};

TEST_P(MeasuredAllReduces, RingIsCloseAboveFourMegabytes) {
  if (!std::filesystem::exists(measurements_folder() / "collectives.csv")) {
    GTEST_SKIP() << "no collectives.csv; set TESSERA_MEASUREMENTS to the folder of measurements";
  }
  const Sweep& sweep = GetParam();
  const Topology topology(boxes::alone(sweep.node));
  std::vector<int> ranks(static_cast<std::size_t>(topology.gpu_count()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto rows = all_reduces(sweep.system, Bytes(4'000'000));
  ASSERT_FALSE(rows.empty()) << sweep.system;
  double sum = 0;
  for (const MeasuredAllReduce& row : rows) {
    const Seconds time =
        collective_cost(topology, CollectiveKind::all_reduce, row.bytes, ranks).solo_time;
    const double error = time / row.time - 1;
    std::cout << sweep.label << ' ' << row.bytes.value() << " B: measured "
              << row.time.value() * 1e6 << " us, ring " << time.value() * 1e6 << " us, "
              << std::round(error * 1000) / 10 << " %\n";
    sum += std::abs(error);
  }
  const double mean = sum / static_cast<double>(rows.size());
  std::cout << sweep.label << ": mean absolute error " << std::round(mean * 1000) / 10 << " %\n";
  EXPECT_LT(mean, sweep.bound);
}

INSTANTIATE_TEST_SUITE_P(
    Sweeps, MeasuredAllReduces,
    testing::Values(Sweep{"4xA100 mesh", "HGX A100 4-GPU SXM4-80GB (direct NVLink NV4 mesh)",
                          boxes::a100_mesh(), 0.4},
                    Sweep{"8xA100", "DGX-like 8xA100-SXM4-80GB NVSwitch (mpirun)",
                          boxes::a100_switch(), 0.4},
                    Sweep{"8xH100 NVLS", "HGX H100 8-GPU (NVLS)", h100_switch(), 0.4},
                    Sweep{"8xV100 cube mesh", "DGX-1-like 8xV100-SXM2-16GB (hybrid cube mesh)",
                          boxes::v100_cube_mesh(), 0.4}));

}  // namespace
}  // namespace tessera
