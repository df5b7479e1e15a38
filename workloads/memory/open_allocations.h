#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/memory/memory_replay.h"

namespace tessera {

/// Which tensor of a step, as who looks for it names it.
struct OpenTensor {
  int block = 0, layer = 0, micro_batch = 0, storage = 0;
  bool operator==(const OpenTensor&) const = default;
};

/// Tensors that pass between blocks: of a micro-batch, activations or (not `forward`) gradients.
struct Passage {
  int micro_batch = 0;
  bool forward = true;
  auto operator<=>(const Passage&) const = default;
};

/// An allocation that passes from one block to another, with the position of the block that made
/// it.
struct PassedAllocation {
  int position = 0;
  Allocation allocation;
};

/// What a rank has allocated and not freed yet: the tensors inside of blocks, and those that pass
/// between them.
class OpenAllocations {
 public:
  void hold(const OpenTensor& key, const Allocation& allocation);
  /// The first that is held under `key`; nothing where none is.
  std::optional<Allocation> take(const OpenTensor& key);
  const Allocation* find(const OpenTensor& key) const;

  void pass(const Passage& passage, const PassedAllocation& made);
  /// What a block made that lies ahead of `position` in the direction of the pass, the nearest one
  /// first; nothing where there is none of that size.
  std::optional<PassedAllocation> take_passed(const Passage& passage, Bytes bytes, int position);
  const Allocation* find_passed(const Passage& passage, Bytes bytes, int position);
  /// What the block at `position` itself passes on.
  const Allocation* find_made(const Passage& passage, Bytes bytes, int position);

 private:
  struct Hash {
    std::size_t operator()(const OpenTensor& key) const;
  };
  /// Allocations of one tensor, which most often is allocated once.
  struct Same {
    Allocation first;
    std::vector<Allocation> others;
  };
  using Passed = std::vector<PassedAllocation>;
  static Passed::iterator nearest(Passed& open, bool forward, Bytes bytes, int position);

  // Nodes of a pool: tensors come and go by the ten thousand.
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::unordered_map<OpenTensor, Same, Hash> held_{&nodes_};
  std::map<Passage, Passed> passed_;
};

}  // namespace tessera
