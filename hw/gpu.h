#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/precision.h"
#include "hw/units/quantity.h"

namespace tessera {

/// Where figures of a description come from.
struct FigureSource {
#include "configs/schema/fields/figure_source.inc"
};

/// NVIDIA families in order of age, then other vendors.
enum class Architecture : std::uint8_t {
#include "configs/schema/words/architecture.inc"
};
/// "blackwell_ultra".
std::string_view name_of(Architecture architecture);
/// The inverse; empty where it is none.
std::optional<Architecture> architecture_called(std::string_view name);

/// Where the device memory sits: stacks beside the die, or chips on the board.
enum class MemoryKind : std::uint8_t {
#include "configs/schema/words/memory_kind.inc"
};

/// How tiles come into shared memory: through registers, past them by each thread (cp.async), or
/// whole by a unit of their own (TMA).
enum class AsyncCopy : std::uint8_t {
#include "configs/schema/words/async_copy.inc"
};

/// How a GPU sits in a server.
enum class FormFactor : std::uint8_t {
#include "configs/schema/words/form_factor.inc"
};

/// Architecture facts of one GPU as seen by a kernel. Peaks are dense. Zero means "does not have"
/// or "not published".
struct GpuSpec {
#include "configs/schema/fields/gpu_spec.inc"

  /// Dense peak of arithmetic in `precision`; zero where the GPU has none.
  FlopsPerSecond peak(Precision precision) const;

  /// Stacked memory: as `memory_kind` states it, else all of AMD and the compute dies of NVIDIA.
  bool has_stacked_memory() const;
  /// Kernels can be written for copies in bulk: as `async_copy` states it, else NVIDIA's since
  /// Hopper, and those of vendors nobody stated it of.
  bool copies_in_bulk() const;
};

}  // namespace tessera
