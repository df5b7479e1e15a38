#include "workloads/memory/caching_allocator.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "workloads/memory/memory_bytes.h"

namespace tessera {
namespace {

TEST(CachingAllocator, SmallRequestsShareASegmentOf2MiB) {
  CachingAllocator allocator;
  allocator.allocate(Bytes(1));
  allocator.allocate(Bytes(513));
  EXPECT_EQ(allocator.allocated(), Bytes(512 + 1024));
  EXPECT_EQ(allocator.reserved(), 2_MiB);
  allocator.allocate(1_MiB);
  EXPECT_EQ(allocator.reserved(), 2_MiB);
  allocator.allocate(1_MiB);  // 1 MiB minus 1.5 KiB are left
  EXPECT_EQ(allocator.reserved(), 4_MiB);
}

TEST(CachingAllocator, MiddleRequestsAreCutFrom20MiB) {
  CachingAllocator allocator;
  allocator.allocate(8_MiB);
  allocator.allocate(8_MiB);
  EXPECT_EQ(allocator.reserved(), 20_MiB);
  allocator.allocate(8_MiB);  // 4 MiB are left
  EXPECT_EQ(allocator.reserved(), 40_MiB);
}

TEST(CachingAllocator, LargeRequestsHaveSegmentsOfWhole2MiB) {
  CachingAllocator allocator;
  allocator.allocate(Bytes((10 << 20) + 1));
  EXPECT_EQ(allocator.reserved(), 12_MiB);
}

TEST(CachingAllocator, FreedNeighboursMergeAndSegmentsStay) {
  CachingAllocator allocator;
  const auto first = allocator.allocate(8_MiB);
  const auto second = allocator.allocate(8_MiB);
  allocator.free(first);
  allocator.free(second);
  EXPECT_EQ(allocator.allocated(), Bytes(0));
  allocator.allocate(20_MiB);  // the whole segment is free again
  EXPECT_EQ(allocator.reserved(), 20_MiB);
}

TEST(CachingAllocator, TheBestFittingFreeBlockIsTaken) {
  CachingAllocator allocator;
  const auto large = allocator.allocate(64_MiB);
  const auto exact = allocator.allocate(32_MiB);
  allocator.free(large);
  allocator.free(exact);
  allocator.allocate(32_MiB);
  allocator.allocate(64_MiB);  // fits only because the first request left it whole
  EXPECT_EQ(allocator.reserved(), 96_MiB);
}

TEST(CachingAllocator, WithoutRoomItGivesBackWhatIsFreeAsAWhole) {
  CachingAllocator allocator(64_MiB);
  const auto whole = allocator.allocate(20_MiB);
  allocator.allocate(4_MiB);  // of a segment of 20 MiB, which stays
  allocator.free(whole);
  allocator.allocate(40_MiB);
  EXPECT_EQ(allocator.reserved(), 60_MiB);
  allocator.allocate(8_MiB);  // still finds room there
  EXPECT_EQ(allocator.reserved(), 60_MiB);
  EXPECT_EQ(allocator.peak_reserved(), 60_MiB);
}

TEST(CachingAllocator, HoldsWhatIsInUseWhateverTheOrder) {
  std::mt19937_64 random(7);
  CachingAllocator allocator;
  std::vector<CachingAllocator::Handle> held;
  for (int i = 0; i < 20'000; ++i) {
    if (held.size() > 50 || (!held.empty() && random() % 3 == 0)) {
      const std::size_t at = random() % held.size();
      allocator.free(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      held.push_back(allocator.allocate(
          Bytes(1 + static_cast<std::int64_t>(random() % (1 << (random() % 26))))));
    }
    Bytes in_use;
    for (const auto& block : held) in_use += Bytes(block->bytes);
    ASSERT_EQ(in_use, allocator.allocated());
    ASSERT_LE(allocator.allocated(), allocator.reserved());
  }
}

}  // namespace
}  // namespace tessera
