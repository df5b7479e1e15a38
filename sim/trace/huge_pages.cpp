#include "sim/trace/huge_pages.h"

#include <cstdint>
#include <cstdlib>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tessera {

void let_heap_use_huge_pages() {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
  constexpr int kHeap = 1 << 30;
  constexpr int kLargestInHeap = 32 << 20;  // glibc's limit; larger blocks are mapped alone
  constexpr std::uintptr_t kPage = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestInHeap);
  mallopt(M_TRIM_THRESHOLD, kHeap);
  mallopt(M_TOP_PAD, kHeap);
  // Larger than what the heap has left, so that it grows now, by this and the padding.
  void* const grown = std::malloc(kPage);
  const auto begin = (reinterpret_cast<std::uintptr_t>(grown) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0)) / kPage * kPage;
  if (begin < end && end - begin <= kHeap) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  std::free(grown);
#endif
}

}  // namespace tessera
