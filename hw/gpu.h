#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/precision.h"
#include "hw/units/quantity.h"

namespace tessera {

/// Where figures of a description come from.
struct FigureSource {
  std::vector<std::string> figures;  ///< field names of the description that this entry covers
  std::string source;                ///< datasheet, measured file, paper
  bool confirmed = true;  ///< false: recalled or inferred, not found in a stored document
};

/// NVIDIA families in order of age, then other vendors.
enum class Architecture : std::uint8_t {
  pascal,
  volta,
  turing,
  ampere,
  ada,
  hopper,
  blackwell,
  blackwell_ultra,
  cdna1,
  cdna2,
  cdna3,
  cdna4,
  xe2
};

/// Where the device memory sits: stacks beside the die, or chips on the board.
enum class MemoryKind : std::uint8_t { not_stated, hbm, gddr };

/// How tiles come into shared memory: through registers, past them by each thread (cp.async), or
/// whole by a unit of their own (TMA).
enum class AsyncCopy : std::uint8_t { not_stated, synchronous, per_thread, bulk };

/// How a GPU sits in a server.
enum class FormFactor : std::uint8_t { not_stated, card, sxm, superchip, oam };

/// Architecture facts of one GPU as seen by a kernel. Peaks are dense. Zero means "does not have"
/// or "not published".
struct GpuSpec {
  std::string id;      ///< e.g. "H100-SXM5-80GB"; the id used in measurement files
  std::string vendor;  ///< "NVIDIA", "AMD" or "Intel"
  Architecture architecture = Architecture::pascal;
  std::string compute_capability;  ///< "9.0"; AMD: "gfx942"; Intel: "xe2-hpg"
  std::string die;  ///< "GH100"; GPUs of one die differ in board alone; empty = no sibling known
  int process = 0;  ///< nanometres in the name of the process: 4 for 4N and 4NP; 0 = not known
  MemoryKind memory_kind = MemoryKind::not_stated;
  AsyncCopy async_copy = AsyncCopy::not_stated;
  FormFactor form_factor = FormFactor::not_stated;
  int sm_count = 0;  ///< streaming multiprocessors (AMD: compute units, Intel: Xe cores)
  Hertz boost_clock;
  Hertz
      tensor_clock;  ///< at which the dense tensor peaks are quoted; 0 = they follow from no clock
  FlopsPerSecond fp32;         ///< on CUDA cores (AMD, Intel: vector units)
  FlopsPerSecond fp32_matrix;  ///< FP32 products on matrix cores; 0 = they run on the vector units
  FlopsPerSecond tf32;         ///< dense tensor peaks from here on
  FlopsPerSecond bf16;
  FlopsPerSecond fp16;
  FlopsPerSecond fp8;
  FlopsPerSecond int8;
  FlopsPerSecond fp4;  ///< blocks of 16 or 32 that share a scale
  Bytes memory;        ///< what CUDA gives programs, else what the driver shows, or nominal
  BytesPerSecond memory_bandwidth;
  Bytes l2;
  Bytes shared_memory_per_sm;
  std::int64_t registers_per_sm = 0;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int nvlink_generation = 0;  ///< 0 = no NVLink
  int nvlink_links = 0;
  BytesPerSecond nvlink_bandwidth;  ///< all links together, one direction
  int pcie_generation = 0;
  BytesPerSecond pcie_bandwidth;  ///< x16 line rate, one direction
  BytesPerSecond c2c_bandwidth;   ///< CPU-GPU coherent link, one direction
  Watts tdp;
  Watts idle_power;   ///< no kernel runs; 0 = hw/power.h has a rule
  Watts busy_power;   ///< in products that fill the GPU; 0 = tdp
  Watts power_limit;  ///< cap that is set; 0 = none
  int release_year = 0;
  double price = 0;  ///< USD per GPU-hour, rented on demand at a list price; 0 = not known
  std::vector<FigureSource> sources;

  /// Dense peak of arithmetic in `precision`; zero where the GPU has none.
  FlopsPerSecond peak(Precision precision) const;

  /// Stacked memory: as `memory_kind` states it, else all of AMD and the compute dies of NVIDIA.
  bool has_stacked_memory() const;
  /// Kernels can be written for copies in bulk: as `async_copy` states it, else NVIDIA's since
  /// Hopper, and those of vendors nobody stated it of.
  bool copies_in_bulk() const;
};

}  // namespace tessera
