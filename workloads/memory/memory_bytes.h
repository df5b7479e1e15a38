#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hw/units/quantity.h"

namespace tessera {

/// What device memory is used for.
enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,    ///< moments and master weights
  activations,  ///< made in forward, until their last reader
  temporary,    ///< made and freed within backward, the loss or the optimizer
  buffers,      ///< masks, tables, scratch memory that is held all the time
  workspace,    ///< of libraries, taken from the framework's allocator
};
constexpr int kMemoryCategories = 7;

std::string_view name_of(MemoryCategory category);

/// Bytes in use by category.
class CategoryBytes {
 public:
  Bytes& operator[](MemoryCategory category) { return of_[static_cast<std::size_t>(category)]; }
  Bytes operator[](MemoryCategory category) const {
    return of_[static_cast<std::size_t>(category)];
  }
  Bytes total() const {
    Bytes sum;
    for (const Bytes bytes : of_) sum += bytes;
    return sum;
  }
  bool operator==(const CategoryBytes&) const = default;

  using All = std::array<Bytes, kMemoryCategories>;
  CategoryBytes() = default;
  explicit CategoryBytes(const All& all) : of_(all) {}
  const All& all() const { return of_; }  ///< in the order of the categories

 private:
  All of_{};
};

/// What PyTorch's caching allocator counts as allocated for a request: a multiple of 512 B
/// (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize).
constexpr Bytes allocated_size(Bytes requested) {
  constexpr std::int64_t kBlock = 512;
  return Bytes((requested.value() + kBlock - 1) / kBlock * kBlock);
}

}  // namespace tessera
