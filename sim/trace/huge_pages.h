#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

// Memory in pages of 2 MiB, where the kernel has some to give to those who ask (transparent huge
// pages). Large simulations look all over hundreds of megabytes: in pages of 4 KiB the kernel
// clears a hundred thousand of them at first touch, and most addresses have to be looked up anew.
namespace tessera {

/// Lets the heap grow in one piece of up to 1 GiB of address space that asks for huge pages. For
/// large simulations: small processes, and those that fork, lose more than they gain.
void let_heap_use_huge_pages();

/// Allocates large arrays in pages of 2 MiB where the kernel has some (transparent huge pages;
/// where not, the advice does nothing). The records of 1,024 ranks have 470 MB: the kernel clears
/// them in 4 KiB pages at first touch otherwise, and every look-up of an address misses.
template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class Other>
  explicit HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
    const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
    void* memory = std::aligned_alloc(kPage, whole);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, whole, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < kPage) return ::operator delete(memory);
    std::free(memory);
  }
  bool operator==(const HugePageAllocator&) const = default;

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
};

}  // namespace tessera
