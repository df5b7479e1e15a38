#include "workloads/graph/block.h"

#include <algorithm>

#include "workloads/memory/memory_bytes.h"

namespace tessera {
namespace {

/// First and last operator that touches a storage, over forward then backward.
struct LiveRange {
  int first = -1;
  int last = -1;
};

class MemoryPlan {
 public:
  explicit MemoryPlan(Block& block)
      : block_(block),
        ranges_(block.storages.size()),
        forward_ops_(static_cast<int>(block.forward.size())) {}

  void run() {
    for (int i = 0; i < op_count(); ++i) touch(i);
    for (std::size_t s = 0; s < ranges_.size(); ++s)
      place(StorageId(static_cast<std::int32_t>(s)), block_.storages[s], ranges_[s]);
  }

 private:
  int op_count() const { return forward_ops_ + static_cast<int>(block_.backward.size()); }
  GraphOp& op(int i) {
    return i < forward_ops_ ? block_.forward[static_cast<std::size_t>(i)]
                            : block_.backward[static_cast<std::size_t>(i - forward_ops_)];
  }

  void touch(int i) {
    op(i).allocated = op(i).freed = Bytes(0);
    op(i).allocates.clear();
    op(i).frees.clear();
    for (const auto* accesses : {&op(i).reads, &op(i).writes}) {
      for (const Access& access : *accesses) {
        LiveRange& range = ranges_[static_cast<std::size_t>(access.storage.index())];
        if (range.first < 0) range.first = i;
        range.last = i;
      }
    }
    for (const StorageId id : op(i).unnamed) ranges_[static_cast<std::size_t>(id.index())].last = i;
  }

  void allocate(int i, StorageId id, const Storage& storage) {
    op(i).allocated += allocated_size(storage.bytes);
    op(i).allocates.push_back(id);
  }
  void free(int i, StorageId id, const Storage& storage) {
    op(i).freed += allocated_size(storage.bytes);
    op(i).frees.push_back(id);
  }

  void place(StorageId id, Storage& storage, const LiveRange& range) {
    if (storage.scope == StorageScope::persistent || op_count() == 0) return;
    const bool enters = storage.scope == StorageScope::enters_forward ||
                        storage.scope == StorageScope::enters_backward;
    if (range.first < 0) {  // an input that no operator reads still has to be freed
      if (enters) free(first_op_of(storage.scope), id, storage);
      return;
    }
    if (!enters) allocate(range.first, id, storage);
    const bool leaves = storage.scope == StorageScope::leaves_forward ||
                        storage.scope == StorageScope::leaves_backward;
    if (leaves) return;
    const int last = storage.scope == StorageScope::held ? op_count() - 1 : range.last;
    free(last, id, storage);
    assign_role(storage, range, last);
  }

  int first_op_of(StorageScope scope) const {
    return scope == StorageScope::enters_backward ? forward_ops_ : 0;
  }

  void assign_role(Storage& storage, const LiveRange& range, int last) {
    if (storage.scope == StorageScope::enters_backward || range.first >= forward_ops_) {
      storage.role = TensorRole::temporary;
    } else if (last >= forward_ops_ && range.last >= forward_ops_) {
      storage.role = TensorRole::saved_activation;
      block_.saved += storage.bytes;
    }
  }

  Block& block_;
  std::vector<LiveRange> ranges_;
  int forward_ops_;
};

}  // namespace

std::string_view name_of(TensorRole role) {
  switch (role) {
    case TensorRole::parameter:
      return "parameter";
    case TensorRole::gradient:
      return "gradient";
    case TensorRole::optimizer_state:
      return "optimizer state";
    case TensorRole::activation:
      return "activation";
    case TensorRole::saved_activation:
      return "saved activation";
    case TensorRole::temporary:
      return "temporary";
    case TensorRole::input:
      return "input";
    case TensorRole::buffer:
      return "buffer";
  }
  return "";
}

void plan_memory(Block& block) {
  block.saved = Bytes(0);
  MemoryPlan(block).run();
}

bool counts_as_model_flops(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::gemm:
    case KernelKind::batched_gemm:
    case KernelKind::grouped_gemm:
    case KernelKind::convolution:
    case KernelKind::attention:
      return true;
    default:
      return false;
  }
}

OpTotals total(const std::vector<GraphOp>& ops) {
  OpTotals totals;
  for (const GraphOp& op : ops) {
    if (op.kind != GraphOpKind::kernel) continue;
    ++totals.kernels;
    totals.bytes += op.kernel.bytes();
    if (counts_as_model_flops(op.kernel)) totals.gemm_flops += op.kernel.flops;
  }
  return totals;
}

}  // namespace tessera
