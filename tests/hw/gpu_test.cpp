#include "hw/gpu.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

GpuSpec of_version(const char* vendor, const char* version) {
  GpuSpec gpu;
  gpu.vendor = vendor;
  gpu.compute_capability = version;
  return gpu;
}

TEST(GpuSpec, MemoryThatNobodyStatedIsThatOfTheDieOfItsVersion) {
  EXPECT_TRUE(of_version("NVIDIA", "9.0").has_stacked_memory());
  EXPECT_TRUE(of_version("NVIDIA", "10.3").has_stacked_memory());
  EXPECT_FALSE(of_version("NVIDIA", "12.0").has_stacked_memory());
  EXPECT_FALSE(of_version("NVIDIA", "8.6").has_stacked_memory());
  EXPECT_TRUE(of_version("AMD", "gfx942").has_stacked_memory());
  EXPECT_FALSE(of_version("Intel", "xe2-hpg").has_stacked_memory());
}

TEST(GpuSpec, StatedMemoryOutweighsTheVersion) {
  GpuSpec gpu = of_version("NVIDIA", "9.0");
  gpu.memory_kind = MemoryKind::gddr;
  EXPECT_FALSE(gpu.has_stacked_memory());
}

TEST(GpuSpec, CopiesInBulkCameWithHopperUnlessAFileSaysOtherwise) {
  GpuSpec gpu;
  gpu.architecture = Architecture::ada;
  EXPECT_FALSE(gpu.copies_in_bulk());
  gpu.architecture = Architecture::hopper;
  EXPECT_TRUE(gpu.copies_in_bulk());
  gpu.async_copy = AsyncCopy::per_thread;
  EXPECT_FALSE(gpu.copies_in_bulk());
}

}  // namespace
}  // namespace tessera
