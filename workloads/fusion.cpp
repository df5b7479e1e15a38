#include "workloads/fusion.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace tessera {
namespace {

bool can_fuse(const GraphOp& op) {
  if (op.kind != GraphOpKind::kernel || op.accumulates_gradient) return false;
  switch (op.kernel.kind) {
    case KernelKind::elementwise:
    case KernelKind::copy:
    case KernelKind::fill:
    case KernelKind::softmax:
    case KernelKind::layer_norm:
    case KernelKind::reduction:
      return true;
    default:
      return false;
  }
}

std::int64_t elements(const GraphOp& op) {
  return op.kernel.rows * op.kernel.cols;
}

/// Its result is there for no kernel but the next: every thread block has a part of it.
bool reduces_to_one(const GraphOp& op) {
  return op.kernel.kind == KernelKind::reduction && op.writes.size() == 1 &&
         op.writes.front().bytes <= Bytes(4) && elements(op) > 1;
}

/// Kernels that become one.
struct Group {
  std::vector<std::size_t> members;  ///< positions in the op list, ascending
  std::int64_t elements = 0;
};

bool hands_over(const GraphOp& earlier, const GraphOp& later) {
  const auto touches = [&](const Access& written) {
    const auto same = [&](const Access& access) { return access.storage == written.storage; };
    return std::any_of(later.reads.begin(), later.reads.end(), same);
  };
  return std::any_of(earlier.writes.begin(), earlier.writes.end(), touches);
}

/// Broadcast operands (one value per row, constants) may have fewer elements than the chain.
bool sizes_match(const Group& group, std::int64_t count) {
  return count == group.elements || group.elements % count == 0 || count % group.elements == 0;
}

Bytes sum_of(const std::vector<Access>& accesses) {
  Bytes sum;
  for (const Access& access : accesses) sum += access.bytes;
  return sum;
}

class Fusion {
 public:
  explicit Fusion(const Block& block) : block_(block), uses_(block.storages.size(), 0) {
    count_uses(block.forward);
    count_uses(block.backward);
  }

  std::vector<GraphOp> run(const std::vector<GraphOp>& ops) {
    ops_ = &ops;
    std::vector<GraphOp> result;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == GraphOpKind::view) continue;  // compiled code makes no framework calls
      if (can_fuse(ops[i])) {
        if (waits_for_a_sum(i)) flush(result);
        join_group(i);
      } else {
        flush(result);
        result.push_back(ops[i]);
      }
    }
    flush(result);
    return result;
  }

 private:
  void count_uses(const std::vector<GraphOp>& ops) {
    for (const GraphOp& op : ops) {
      for (const Access& access : op.reads) ++uses_[index(access)];
    }
  }
  static std::size_t index(const Access& access) {
    return static_cast<std::size_t>(access.storage.index());
  }

  /// Whether op `i`, of many elements, takes what an open group reduces all of its elements to.
  bool waits_for_a_sum(std::size_t i) const {
    const GraphOp& op = (*ops_)[i];
    return elements(op) > 1 && std::ranges::any_of(groups_, [&](const Group& group) {
             return std::ranges::any_of(group.members, [&](std::size_t m) {
               return reduces_to_one((*ops_)[m]) && hands_over((*ops_)[m], op);
             });
           });
  }

  /// Adds op `i` to every open group that it takes a tensor from, merging them; else opens one.
  void join_group(std::size_t i) {
    Group joined{{i}, elements((*ops_)[i])};
    std::erase_if(groups_, [&](const Group& group) {
      const bool feeds =
          std::any_of(group.members.begin(), group.members.end(),
                      [&](std::size_t m) { return hands_over((*ops_)[m], (*ops_)[i]); });
      if (!feeds || !sizes_match(group, joined.elements)) return false;
      joined.members.insert(joined.members.end(), group.members.begin(), group.members.end());
      joined.elements = std::max(joined.elements, group.elements);
      return true;
    });
    std::sort(joined.members.begin(), joined.members.end());
    groups_.push_back(std::move(joined));
  }

  void flush(std::vector<GraphOp>& result) {
    std::sort(groups_.begin(), groups_.end(),
              [](const Group& a, const Group& b) { return a.members.back() < b.members.back(); });
    for (const Group& group : groups_) result.push_back(merged(group));
    groups_.clear();
  }

  /// What a group moves, by storage.
  struct Traffic {
    std::map<std::size_t, Bytes> inputs;  ///< read before the group made them
    std::map<std::size_t, Bytes> made;
    std::map<std::size_t, int> reads_inside;
  };
  Traffic traffic_of(const Group& group) const;
  GraphOp merged(const Group& group) const;
  bool used_outside(std::size_t storage, int uses_inside) const {
    const StorageScope scope = block_.storages[storage].scope;
    return scope != StorageScope::local || uses_[storage] > uses_inside;
  }

  const Block& block_;
  std::vector<int> uses_;  ///< reads of each storage in the whole block
  const std::vector<GraphOp>* ops_ = nullptr;
  std::vector<Group> groups_;
};

KernelKind kind_of(KernelKind a, KernelKind b) {
  for (const KernelKind kind : {KernelKind::softmax, KernelKind::layer_norm, KernelKind::reduction,
                                KernelKind::elementwise}) {
    if (a == kind || b == kind) return kind;
  }
  return a;
}

Fusion::Traffic Fusion::traffic_of(const Group& group) const {
  Traffic traffic;
  for (const std::size_t m : group.members) {
    for (const Access& read : (*ops_)[m].reads) {
      ++traffic.reads_inside[index(read)];
      if (traffic.made.count(index(read)) > 0) continue;
      Bytes& bytes = traffic.inputs[index(read)];
      bytes = std::max(bytes, read.bytes);
    }
    for (const Access& write : (*ops_)[m].writes) {
      Bytes& bytes = traffic.made[index(write)];
      bytes = std::max(bytes, write.bytes);
    }
  }
  return traffic;
}

GraphOp Fusion::merged(const Group& group) const {
  GraphOp result = (*ops_)[group.members.front()];
  result.kernel.strided = false;  // sizes are constants of a compiled loop
  if (group.members.size() == 1) return result;
  result.name = (*ops_)[group.members.back()].name + ".fused";
  Kernel& kernel = result.kernel;
  kernel.flops = Flops();
  for (const std::size_t m : group.members) {
    const Kernel& part = (*ops_)[m].kernel;
    kernel.flops += part.flops;
    kernel.kind = kind_of(kernel.kind, part.kind);
    if (part.reuse_footprint > kernel.reuse_footprint) {
      kernel.reuse_footprint = part.reuse_footprint;
      kernel.bytes_refetched = part.bytes_refetched;
    }
    if (part.rows * part.cols <= kernel.rows * kernel.cols) continue;
    kernel.rows = part.rows;
    kernel.cols = part.cols;
  }
  const Traffic traffic = traffic_of(group);
  result.reads.clear();
  result.writes.clear();
  for (const auto& [storage, bytes] : traffic.inputs) {
    result.reads.push_back({StorageId(static_cast<std::int32_t>(storage)), bytes});
  }
  for (const auto& [storage, bytes] : traffic.made) {
    const auto inside = traffic.reads_inside.find(storage);
    const int reads = inside == traffic.reads_inside.end() ? 0 : inside->second;
    if (!used_outside(storage, reads)) continue;
    result.writes.push_back({StorageId(static_cast<std::int32_t>(storage)), bytes});
  }
  kernel.bytes_read = sum_of(result.reads);
  kernel.bytes_written = sum_of(result.writes);
  return result;
}

}  // namespace

void fuse_pointwise(Block& block) {
  Fusion fusion(block);
  std::vector<GraphOp> forward = fusion.run(block.forward);
  std::vector<GraphOp> backward = fusion.run(block.backward);
  // A block in which nothing is trained ends the gradient that it is given.
  if (backward.empty() && !block.backward.empty()) backward.push_back(block.backward.back());
  block.backward = std::move(backward);
  block.forward = std::move(forward);
  for (GraphOp& op : block.backward) op.origin = -1;
  plan_memory(block);
}

}  // namespace tessera
