#include "workloads/memory/stage_ops.h"

#include <algorithm>

#include "workloads/parallel/split_backward.h"

namespace tessera {
namespace {

constexpr int kPersistent = -1;

class StageWalk {
 public:
  StageWalk(const ModelGraph& graph, const StageBlocks& blocks, bool splits_backward,
            bool keeps_sent)
      : graph_(graph),
        blocks_(blocks),
        splits_backward_(splits_backward),
        keeps_sent_(keeps_sent) {}

  StageOps run() && {
    const bool first = blocks_.begin == 0;
    const bool last = blocks_.end == static_cast<int>(graph_.order.size());
    for (int p = blocks_.begin; p < blocks_.end; ++p) forward(p, p == blocks_.begin && !first);
    result_.forward_ops = static_cast<int>(result_.ops.size());
    if (!last) result_.sent_output = take(passed_, Bytes(-1));
    if (!last) result_.received_gradient = message(StorageScope::enters_backward);
    for (int p = blocks_.end; p-- > blocks_.begin;) backward(p);
    result_.late_ops = static_cast<int>(result_.ops.size());
    for (int p = blocks_.end; p-- > blocks_.begin;) late_backward(p);
    if (keeps_sent_ && result_.sent_output >= 0)
      result_.ops.back().reads.push_back(result_.sent_output);
    if (!first) result_.sent_gradient = take(gradients_, Bytes(-1));
    return std::move(result_);
  }

 private:
  const Block& block(int position) const { return graph_.at(position); }
  int layer(int position) const { return graph_.layer_numbers[static_cast<std::size_t>(position)]; }

  int add(const std::string& name, Bytes bytes, TensorRole role) {
    result_.tensors.push_back({name, allocated_size(bytes), role});
    return static_cast<int>(result_.tensors.size()) - 1;
  }
  int add(int position, const Storage& storage) {
    std::string name = block(position).name;
    if (layer(position) >= 0) name += " " + std::to_string(layer(position));
    return add(name + "." + storage.name, storage.bytes, storage.role);
  }
  /// Memory of a message that starts a pass.
  int message(StorageScope scope) {
    const bool forward = scope == StorageScope::enters_forward;
    const Bytes bytes =
        forward ? input_bytes(block(blocks_.begin)) : output_bytes(block(blocks_.end - 1));
    const int tensor = add(forward ? "received input" : "received gradient", bytes,
                           forward ? TensorRole::saved_activation : TensorRole::temporary);
    (forward ? passed_ : gradients_).push_back(tensor);
    return tensor;
  }

  /// The latest of `open` with that size (any size below 0); it leaves `open`.
  int take(std::vector<int>& open, Bytes bytes) {
    for (auto entry = open.rbegin(); entry != open.rend(); ++entry) {
      const int tensor = *entry;
      if (bytes.value() >= 0 &&
          result_.tensors[static_cast<std::size_t>(tensor)].bytes != allocated_size(bytes))
        continue;
      open.erase(std::next(entry).base());
      return tensor;
    }
    return -1;
  }

  void forward(int position, bool starts_with_message) {
    if (starts_with_message) result_.received_input = message(StorageScope::enters_forward);
    std::vector<int> map(block(position).storages.size(), kPersistent);
    std::vector<int> leaving;
    for (std::size_t s = 0; s < map.size(); ++s) {
      const Storage& storage = block(position).storages[s];
      switch (storage.scope) {
        case StorageScope::enters_forward:
          map[s] = take(passed_, storage.bytes);
          break;
        case StorageScope::leaves_forward:
          map[s] = add(position, storage);
          leaving.push_back(map[s]);
          break;
        case StorageScope::local:
        case StorageScope::held:
          map[s] = add(position, storage);
          break;
        default:
          break;
      }
    }
    passed_.insert(passed_.end(), leaving.begin(), leaving.end());
    append(position, block(position).forward, map, [](std::size_t) { return true; });
    maps_.push_back(std::move(map));
  }

  void backward(int position) {
    std::vector<int>& map = maps_[static_cast<std::size_t>(position - blocks_.begin)];
    for (std::size_t s = 0; s < map.size(); ++s) {
      const Storage& storage = block(position).storages[s];
      if (storage.scope == StorageScope::enters_backward) map[s] = take(gradients_, storage.bytes);
    }
    for (std::size_t s = 0; s < map.size(); ++s) {
      const Storage& storage = block(position).storages[s];
      if (storage.scope != StorageScope::leaves_backward) continue;
      map[s] = add(position, storage);
      gradients_.push_back(map[s]);
    }
    const std::vector<bool> late = late_ops(position);
    append(position, block(position).backward, map, [&](std::size_t i) { return !late[i]; });
    if (std::ranges::find(late, true) == late.end()) hold_to_end(position, map);
  }
  void late_backward(int position) {
    const std::vector<bool> late = late_ops(position);
    if (std::ranges::find(late, true) == late.end()) return;
    const std::vector<int>& map = maps_[static_cast<std::size_t>(position - blocks_.begin)];
    append(position, block(position).backward, map, [&](std::size_t i) { return late[i]; });
    hold_to_end(position, map);
  }
  std::vector<bool> late_ops(int position) const {
    if (splits_backward_) return runs_later(block(position));
    return std::vector<bool>(block(position).backward.size(), false);
  }

  /// What the caller holds is used by the block's last operator.
  void hold_to_end(int position, const std::vector<int>& map) {
    for (std::size_t s = 0; s < map.size(); ++s) {
      if (block(position).storages[s].scope != StorageScope::held) continue;
      std::vector<int>& reads = result_.ops.back().reads;
      if (std::ranges::find(reads, map[s]) == reads.end()) reads.push_back(map[s]);
    }
  }

  template <class Chosen>
  void append(int position, const std::vector<GraphOp>& ops, const std::vector<int>& map,
              const Chosen& chosen) {
    const auto tensors = [&](const std::vector<Access>& accesses) {
      std::vector<int> list;
      for (const Access& access : accesses) {
        const int tensor = map[static_cast<std::size_t>(access.storage.index())];
        if (tensor == kPersistent || std::ranges::find(list, tensor) != list.end()) continue;
        list.push_back(tensor);
      }
      return list;
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!chosen(i)) continue;
      const GraphOp& op = ops[i];
      StageOp entry;
      entry.op = &op;
      entry.block = graph_.order[static_cast<std::size_t>(position)];
      entry.layer = layer(position);
      entry.reads = tensors(op.reads);
      entry.writes = tensors(op.writes);
      if (op.bits.valid()) entry.bits = map[static_cast<std::size_t>(op.bits.index())];
      result_.ops.push_back(std::move(entry));
    }
  }

  const ModelGraph& graph_;
  StageBlocks blocks_;
  bool splits_backward_, keeps_sent_;
  StageOps result_;
  std::vector<std::vector<int>> maps_;   ///< by position: storage -> tensor
  std::vector<int> passed_, gradients_;  ///< between blocks
};

}  // namespace

StageOps stage_ops(const ModelGraph& graph, const StageBlocks& blocks, bool splits_backward,
                   bool keeps_sent) {
  return StageWalk(graph, blocks, splits_backward, keeps_sent).run();
}

}  // namespace tessera
