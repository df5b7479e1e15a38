#include "sim/trace/huge_pages.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Numbers = std::vector<int, HugePageAllocator<int>>;

TEST(HugePages, LargeArraysBeginWithAPage) {
  const Numbers numbers(1'000'000, 7);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % (2U << 20), 0u);
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 7'000'000);
}

TEST(HugePages, ArraysGrowAcrossTheSizeOfAPage) {
  Numbers numbers;
  for (int i = 0; i < 1'000'000; ++i) numbers.push_back(i);
  for (int i = 0; i < 1'000'000; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
}

TEST(HugePages, AHeapOfThemIsAHeap) {
  let_heap_use_huge_pages();
  let_heap_use_huge_pages();
  std::vector<std::vector<int>> lists;
  for (int i = 0; i < 1000; ++i) lists.emplace_back(1000 * (1 + i % 40), i);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(lists[static_cast<std::size_t>(i)].back(), i);
}

}  // namespace
}  // namespace tessera
