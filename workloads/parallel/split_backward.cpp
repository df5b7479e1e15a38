#include "workloads/parallel/split_backward.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

using Storages = std::vector<bool>;

bool any_in(const std::vector<Access>& accesses, const Storages& storages) {
  return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return storages[static_cast<std::size_t>(access.storage.index())];
  });
}

void insert(const std::vector<Access>& accesses, Storages& storages) {
  for (const Access& access : accesses)
    storages[static_cast<std::size_t>(access.storage.index())] = true;
}

/// By backward operator: whether what leaves the block depends on it.
std::vector<bool> needed_at_once(const Block& block) {
  Storages needed;
  for (const Storage& storage : block.storages)
    needed.push_back(storage.scope == StorageScope::leaves_backward);
  std::vector<bool> result(block.backward.size(), false);
  for (std::size_t i = block.backward.size(); i-- > 0;) {
    const GraphOp& op = block.backward[i];
    if (!any_in(op.writes, needed)) continue;
    result[i] = true;
    insert(op.reads, needed);
  }
  return result;
}

/// By backward operator: whether it can wait.
std::vector<bool> deferred_ops(const Block& block) {
  const std::vector<bool> needed = needed_at_once(block);
  Storages late(block.storages.size(), false);  // temporaries that deferred operators write
  std::vector<bool> deferred(block.backward.size(), false);
  for (std::size_t i = 0; i < block.backward.size(); ++i) {
    const GraphOp& op = block.backward[i];
    if (needed[i] || op.kind != GraphOpKind::kernel) continue;
    const bool product =
        counts_as_model_flops(op.kernel) && op.kernel.kind != KernelKind::attention;
    deferred[i] = (product && !op.recomputed) || any_in(op.reads, late);
    if (!deferred[i]) continue;
    for (const Access& access : op.writes) {
      const auto at = static_cast<std::size_t>(access.storage.index());
      late[at] = late[at] || block.storages[at].scope != StorageScope::persistent;
    }
  }
  return deferred;
}

}  // namespace

std::vector<bool> runs_later(const Block& block) {
  std::vector<bool> later = deferred_ops(block);
  for (std::size_t i = later.size(); i-- > 0;) {  // views belong to the operator behind them
    if (block.backward[i].kind != GraphOpKind::view) continue;
    later[i] = i + 1 < later.size() && later[i + 1];
  }
  return later;
}

SplitBackward split_backward(Block block) {
  const std::vector<bool> deferred = runs_later(block);
  std::vector<GraphOp> now;
  std::vector<GraphOp> later;
  for (std::size_t i = 0; i < block.backward.size(); ++i)
    (deferred[i] ? later : now).push_back(std::move(block.backward[i]));
  const auto first_part = static_cast<std::ptrdiff_t>(now.size());
  block.backward = std::move(now);
  std::move(later.begin(), later.end(), std::back_inserter(block.backward));
  plan_memory(block);
  return {{block.backward.begin(), block.backward.begin() + first_part},
          {block.backward.begin() + first_part, block.backward.end()}};
}

}  // namespace tessera
