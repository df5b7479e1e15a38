// Checkpoints: parts of a block that backward runs once more.
#include <cassert>
#include <utility>

#include "workloads/graph/tape.h"

namespace tessera {
namespace {

bool may_be_kept(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::attention;
}

}  // namespace

Tensor Tape::checkpoint(const std::vector<Tensor>& inputs, const Recomputable& forward, Kept kept) {
  if (!records()) return forward(*this);
  const bool kept_rules = std::exchange(keeps_rules_, false);
  if (kept != Kept::nothing) {
    assert(kept_ == Kept::nothing);
    kept_ = kept;
    products_ = 0;
  }
  const Tensor result = forward(*this);
  keeps_rules_ = kept_rules;
  const std::vector<Tensor> casts = std::exchange(cached_casts_, {});
  const Results results = kept == Kept::nothing ? Results() : std::exchange(results_, {});
  if (kept != Kept::nothing) kept_ = Kept::nothing;
  const Tensor out = add_tensor(result.storage, result.shape, result.precision);
  differentiable(inputs, std::span(&out, 1), [=, scope = scope_](Tape& t, auto gradients) {
    const std::string before = t.enter_scope(scope);
    t.recompute(forward, gradients[0], results, casts);
    t.enter_scope(before);
  });
  return out;
}

void Tape::note_result(const Kernel& kernel, const std::vector<Access>& writes) {
  if (!may_be_kept(kernel)) return;
  const bool skipped = kernel.kind == KernelKind::gemm && products_++ % 2 == 1;
  results_.emplace_back();
  if (skipped) return;
  for (const Access& access : writes) results_.back().push_back(access.storage);
}

bool Tape::reuse_result(const Kernel& kernel, const std::vector<Access>& writes) {
  return may_be_kept(kernel) && take_result(writes);
}

bool Tape::take_result(const std::vector<Access>& writes) {
  if (results_.empty()) return false;
  const std::vector<StorageId> first = std::move(results_.front());
  results_.erase(results_.begin());
  if (first.empty()) return false;
  assert(first.size() == writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) kept_as_[writes[i].storage] = first[i];
  return true;
}

bool Tape::keeps_scattered(OpKind kind, const Tensor& received) {
  if (kind != OpKind::reduce_scatter) return false;
  if (kept_ != Kept::nothing) results_.push_back({received.storage});
  return recomputes_ && take_result({whole(received)});
}

std::vector<Access> Tape::at_kept(std::vector<Access> accesses) const {
  if (kept_as_.empty()) return accesses;
  for (Access& access : accesses) {
    const auto kept = kept_as_.find(access.storage);
    if (kept != kept_as_.end()) access.storage = kept->second;
  }
  return accesses;
}

Tensor Tape::remade(const Recomputable& forward) {
  return remade([forward](Tape& t) { return std::vector{forward(t)}; }).front();
}

std::vector<Tensor> Tape::remade(const std::function<std::vector<Tensor>(Tape&)>& forward) {
  if (!records() || !keeps_rules_ || recomputes_) return forward(*this);
  const std::size_t first = block_.storages.size();
  std::vector<Tensor> results = forward(*this);
  remade_.push_back({forward, local_storages(first), scope_});
  for (const StorageId id : remade_.back().storages) remade_by_[id] = remade_.size() - 1;
  return results;
}

std::vector<StorageId> Tape::local_storages(std::size_t first) const {
  std::vector<StorageId> storages;
  for (std::size_t s = first; s < block_.storages.size(); ++s)
    if (block_.storages[s].scope == StorageScope::local)
      storages.push_back(StorageId(static_cast<std::int32_t>(s)));
  return storages;
}

void Tape::require(const std::vector<Access>& reads) {
  if (!in_backward_ || remade_.empty()) return;
  for (const Access& read : reads) {
    const auto found = remade_by_.find(read.storage);
    if (found != remade_by_.end() && !remade_[found->second].done)
      make_again(remade_[found->second]);
  }
}

/// The second run makes as many storages as the first, in the same order.
void Tape::make_again(Remade& remade) {
  remade.done = true;
  const int origin = std::exchange(origin_, -1);
  const int calls = set_calls_per_launch(1);
  const std::size_t first = block_.storages.size();
  const bool recomputes = std::exchange(recomputes_, true);
  const bool keeps_rules = std::exchange(keeps_rules_, false);
  const std::string scope = enter_scope(remade.scope);
  remade.forward(*this);
  enter_scope(scope);
  recomputes_ = recomputes;
  keeps_rules_ = keeps_rules;
  const std::vector<StorageId> made = local_storages(first);
  assert(made.size() == remade.storages.size());
  for (std::size_t s = 0; s < made.size(); ++s) kept_as_[remade.storages[s]] = made[s];
  set_calls_per_launch(calls);
  origin_ = origin;
}

void Tape::recompute(const Recomputable& forward, const Tensor& gradient, Results results,
                     std::span<const Tensor> cached_casts) {
  const std::size_t first = nodes_.size();
  const int origin = std::exchange(origin_, -1);
  results_ = std::move(results);
  keeps_rules_ = recomputes_ = true;
  const Tensor out = forward(*this);
  drop_names(cached_casts);
  keeps_rules_ = recomputes_ = false;
  value(out).gradient = gradient;
  for (std::size_t n = nodes_.size(); n-- > first;) run_node(nodes_[n]);
  nodes_.resize(first);
  // What the inner call of the engine works on is held until it returns.
  if (options_.reentrant) drop_names({out, gradient});
  origin_ = origin;
}

}  // namespace tessera
