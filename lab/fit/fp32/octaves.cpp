#include "lab/fit/fp32/octaves.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

constexpr std::size_t kRowsPerOctave = 120;
constexpr std::size_t kOctaves = 32;  ///< from 1 us up

std::size_t octave_of(const KernelMeasurement& row) {
  return static_cast<std::size_t>(std::clamp(std::log2(row.latency_us), 0.0, kOctaves - 1.0));
}

}  // namespace

std::vector<const KernelMeasurement*> rows_over_octaves(const GpuData& gpu, MeasuredOp op) {
  std::array<std::size_t, kOctaves> available{}, seen{};
  for (const KernelMeasurement* row : gpu.rows)
    if (row->op == op) ++available[octave_of(*row)];
  std::vector<const KernelMeasurement*> chosen;
  for (const KernelMeasurement* row : gpu.rows) {
    if (row->op != op) continue;
    const std::size_t octave = octave_of(*row);
    const std::size_t wanted = std::min(available[octave], kRowsPerOctave);
    const std::size_t position = seen[octave]++;
    if ((position + 1) * wanted / available[octave] > position * wanted / available[octave])
      chosen.push_back(row);
  }
  return chosen;
}

}  // namespace tessera
