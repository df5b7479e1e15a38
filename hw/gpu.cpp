#include "hw/gpu.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

constexpr auto kArchitectures = std::to_array<std::string_view>({
#include "configs/schema/words/architecture_names.inc"
});

}  // namespace

std::string_view name_of(Architecture architecture) {
  return kArchitectures[static_cast<std::size_t>(architecture)];
}

std::optional<Architecture> architecture_called(std::string_view name) {
  const auto found = std::ranges::find(kArchitectures, name);
  if (found == kArchitectures.end()) return std::nullopt;
  return static_cast<Architecture>(found - kArchitectures.begin());
}

FlopsPerSecond GpuSpec::peak(Precision precision) const {
  switch (precision) {
    case Precision::fp32:
      return fp32;
    case Precision::tf32:
      return tf32;
    case Precision::bf16:
      return bf16;
    case Precision::fp16:
      return fp16;
    case Precision::fp8:
      return fp8;
    case Precision::int8:
      return int8;
    case Precision::fp4:
      return fp4;
    case Precision::int64:
      return FlopsPerSecond(0);
  }
  return FlopsPerSecond(0);
}

bool GpuSpec::has_stacked_memory() const {
  if (memory_kind != MemoryKind::not_stated) return memory_kind == MemoryKind::hbm;
  if (vendor != "NVIDIA") return vendor == "AMD";
  // NVIDIA numbers the compute die of a generation x.0, its refresh 10.3; they alone carry HBM.
  // 12.0 is a graphics die.
  const std::string& version = compute_capability;
  return (version.ends_with(".0") && version != "12.0") || version == "10.3";
}

bool GpuSpec::copies_in_bulk() const {
  if (async_copy != AsyncCopy::not_stated) return async_copy == AsyncCopy::bulk;
  return architecture >= Architecture::hopper;
}

}  // namespace tessera
