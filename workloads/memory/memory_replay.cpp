#include "workloads/memory/memory_replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hw/units/deadline.h"
#include "workloads/memory/open_allocations.h"
#include "workloads/memory/segment_temporaries.h"

namespace tessera {
namespace {

MemoryCategory category_of(const Storage& storage) {
  switch (storage.role) {
    case TensorRole::temporary:
    case TensorRole::gradient:
      return MemoryCategory::temporary;
    default:
      return MemoryCategory::activations;
  }
}

class MemoryReplay {
 public:
  MemoryReplay(const Program& program, MemoryVisitor& visitor, bool with_uses)
      : program_(program), visitor_(visitor), with_uses_(with_uses) {}

  void run(const RankProgram& stage, int micro_batches) {
    const SegmentTemporaries temporaries(program_, stage);
    for (std::size_t i = 0; i < stage.ops.size(); ++i) {
      const ProgramOp& op = stage.ops[i];
      if (micro_batches >= 0 && op.micro_batch >= micro_batches) continue;
      poll_deadline();
      op_ = &op;
      step_.op = static_cast<std::int32_t>(i);
      step_.kernel = 0;
      for (const std::int32_t awaited : op.waits) leave(awaited);
      if (op.moves_saved) {
        move_saved(op);
        continue;
      }
      if (op.allocated.value() > 0) allocate_besides(op.allocated);
      if (op.kind == OpKind::kernels) {
        const Segment& segment = program_.segment(op.segment);
        if (with_uses_)
          for (const StorageId storage : segment.touches) touch(segment, storage);
        perform(segment, temporaries.of(op.segment));
      }
      if (op.freed.value() > 0) free_besides(op.freed);
    }
  }

 private:
  /// What a layer saved for backward while it is in host memory.
  struct Away {
    std::int32_t layer = -1, micro_batch = -1;
    bool left = false;
    std::vector<std::pair<OpenTensor, Allocation>> held;
    std::vector<PassedAllocation> passed;
  };

  /// Copied out it is free once somebody waits for the copy; copied in it is there from the copy's
  /// start.
  void move_saved(const ProgramOp& op) {
    if (op.kind == OpKind::copy_out) {
      away_[step_.op] = {.layer = op.layer, .micro_batch = op.micro_batch};
      return;
    }
    for (const std::int32_t copied_out : op.waits) come_back(copied_out);
  }

  /// What the copy `op` took out, if it is one that nobody waited for yet.
  void leave(std::int32_t op) {
    const auto found = away_.find(op);
    if (found == away_.end() || std::exchange(found->second.left, true)) return;
    Away& away = found->second;
    const auto place = std::ranges::find(program_.order, away.layer, &BlockPosition::layer);
    const auto position = static_cast<int>(place - program_.order.begin());
    const ProgramBlock& block = program_.blocks[static_cast<std::size_t>(place->block)];
    for (int i = 0; i < std::ssize(block.storages); ++i) {
      const Storage& storage = block.storages[static_cast<std::size_t>(i)];
      if (storage.role != TensorRole::saved_activation) continue;
      if (storage.scope == StorageScope::enters_forward) {
        const auto taken =
            open_.take_passed({away.micro_batch, true}, allocated_size(storage.bytes), position);
        if (taken) away.passed.push_back(*taken);
      } else {
        const OpenTensor key{place->block, away.layer, away.micro_batch, i};
        if (const auto taken = open_.take(key)) away.held.emplace_back(key, *taken);
      }
    }
    for (const auto& [key, allocation] : away.held) tell(false, allocation);
    for (const PassedAllocation& entry : away.passed) tell(false, entry.allocation);
  }

  void come_back(std::int32_t copied_out) {
    const auto found = away_.find(copied_out);
    if (found == away_.end()) return;
    const auto again = [&](Allocation& allocation) {
      allocation.id = next_id_++;
      tell(true, allocation);
    };
    for (auto& [key, allocation] : found->second.held) {
      again(allocation);
      open_.hold(key, allocation);
    }
    for (PassedAllocation& entry : found->second.passed) {
      again(entry.allocation);
      open_.pass({found->second.micro_batch, true}, entry);
    }
    away_.erase(found);
  }

  /// Buffers of communication that no segment speaks of: gathered units, buckets of gradients.
  void allocate_besides(Bytes bytes) {
    Allocation made;
    made.id = next_id_++;
    made.bytes = bytes;
    made.category = MemoryCategory::temporary;
    besides_.push_back(made);
    tell(true, made);
  }
  /// The oldest of that size, else the oldest that add up to it; what is left of one stays.
  void free_besides(Bytes bytes) {
    const auto same = std::ranges::find(besides_, bytes, &Allocation::bytes);
    if (same != besides_.end()) {
      const Allocation freed = *same;
      besides_.erase(same);
      return tell(false, freed);
    }
    while (bytes.value() > 0 && !besides_.empty()) {
      const Allocation freed = besides_.front();
      besides_.erase(besides_.begin());
      tell(false, freed);
      if (freed.bytes > bytes) allocate_besides(freed.bytes - bytes);
      bytes = std::max(Bytes(0), bytes - freed.bytes);
    }
  }

  /// What the segment makes itself is not there yet.
  void touch(const Segment& segment, StorageId id) {
    const Storage& storage = storage_of(segment, id);
    const Allocation* used = nullptr;
    switch (storage.scope) {
      case StorageScope::enters_forward:
      case StorageScope::enters_backward:
        used = open_.find_passed(passage(storage.scope == StorageScope::enters_forward),
                                 allocated_size(storage.bytes), position(segment));
        break;
      case StorageScope::leaves_forward:
      case StorageScope::leaves_backward:
        used = open_.find_made(passage(storage.scope == StorageScope::leaves_forward),
                               allocated_size(storage.bytes), position(segment));
        break;
      case StorageScope::local:
      case StorageScope::held:
        used = open_.find(key(segment, id));
        break;
      case StorageScope::persistent:
        break;
    }
    const bool writes = std::ranges::find(segment.writes, id) != segment.writes.end();
    if (used != nullptr) visitor_.use(step_.op, *used, writes);
  }
  /// `makers`: SegmentTemporaries::of the segment.
  void perform(const Segment& segment, std::span<const std::int32_t> makers) {
    temporaries_.resize(std::max(temporaries_.size(), makers.size()));
    for (std::size_t i = 0; i < makers.size(); ++i) {
      const MemoryEvent& event = segment.memory[i];
      step_.kernel = event.kernel;
      if (makers[i] < 0) {
        perform(segment, event);
      } else if (event.kind == MemoryEventKind::allocate) {
        temporaries_[i] = make(segment, event);
        tell(true, temporaries_[i]);
      } else {
        tell(false, temporaries_[static_cast<std::size_t>(makers[i])]);
      }
    }
  }

  void perform(const Segment& segment, const MemoryEvent& event) {
    switch (event.kind) {
      case MemoryEventKind::allocate:
        return allocate(segment, event);
      case MemoryEventKind::free:
        return free(segment, event);
      case MemoryEventKind::receive: {
        Allocation made = make(segment, event);
        const int from = position(segment) + (forward() ? -1 : 1);
        open_.pass(passage(forward()), {from, made});
        return tell(true, made);
      }
      case MemoryEventKind::send:
        return tell(false, take_passed(event.bytes, position(segment) + (forward() ? 1 : -1)));
      case MemoryEventKind::drop_sent:
        return tell(false, take_passed(event.bytes, behind_model(), true));
    }
  }

  void allocate(const Segment& segment, const MemoryEvent& event) {
    const Allocation made = make(segment, event);
    const StorageScope scope = scope_of(segment, event);
    if (scope == StorageScope::leaves_forward || scope == StorageScope::leaves_backward)
      open_.pass(passage(scope == StorageScope::leaves_forward), {position(segment), made});
    else
      open_.hold(key(segment, event.storage), made);
    tell(true, made);
  }

  void free(const Segment& segment, const MemoryEvent& event) {
    const StorageScope scope = scope_of(segment, event);
    if (scope == StorageScope::enters_forward || scope == StorageScope::enters_backward) {
      const bool from_forward = scope == StorageScope::enters_forward;
      return tell(false, take_passed(event.bytes, position(segment), from_forward));
    }
    const std::optional<Allocation> freed = open_.take(key(segment, event.storage));
    if (!freed) throw std::logic_error("memory is freed that was not allocated");
    tell(false, *freed);
  }

  Allocation take_passed(Bytes bytes, int position, bool from_forward) {
    const auto taken = open_.take_passed(passage(from_forward), bytes, position);
    if (!taken) throw std::logic_error("a block frees what no block made");
    return taken->allocation;
  }
  Allocation take_passed(Bytes bytes, int position) {
    return take_passed(bytes, position, forward());
  }

  Allocation make(const Segment& segment, const MemoryEvent& event) {
    Allocation made;
    made.id = next_id_++;
    made.bytes = event.bytes;
    made.block = segment.block;
    made.storage = event.storage;
    made.layer = op_->layer;
    made.micro_batch = op_->micro_batch;
    const bool activation = event.kind == MemoryEventKind::receive && forward();
    made.category = activation ? MemoryCategory::activations : MemoryCategory::temporary;
    if (event.storage.valid()) made.category = category_of(storage_of(segment, event.storage));
    return made;
  }

  void tell(bool allocates, const Allocation& allocation) {
    step_.allocates = allocates;
    step_.allocation = allocation;
    visitor_.step(step_);
  }

  const Storage& storage_of(const Segment& segment, StorageId id) const {
    return program_.blocks[static_cast<std::size_t>(segment.block)]
        .storages[static_cast<std::size_t>(id.index())];
  }
  StorageScope scope_of(const Segment& segment, const MemoryEvent& event) const {
    return event.storage.valid() ? storage_of(segment, event.storage).scope : StorageScope::local;
  }
  OpenTensor key(const Segment& segment, StorageId storage) const {
    const bool spans =
        segment.block >= 0 && program_.blocks[static_cast<std::size_t>(segment.block)].spans_layers;
    return {segment.block, spans ? -1 : op_->layer, op_->micro_batch,
            storage.valid() ? storage.index() : -1};
  }
  int behind_model() const { return static_cast<int>(program_.order.size()); }
  bool forward() const { return op_->phase == Phase::forward || op_->phase == Phase::loss; }
  Passage passage(bool from_forward) const { return {op_->micro_batch, from_forward}; }

  /// Of the block in the model.
  int position(const Segment& segment) {
    const auto [entry, added] = positions_.try_emplace({segment.block, op_->layer}, 0);
    if (!added) return entry->second;
    for (std::size_t p = 0; p < program_.order.size(); ++p) {
      if (program_.order[p].block != segment.block || program_.order[p].layer != op_->layer)
        continue;
      return entry->second = static_cast<int>(p);
    }
    throw std::logic_error("a segment of no block passes memory on");
  }

  const Program& program_;
  MemoryVisitor& visitor_;
  bool with_uses_;
  const ProgramOp* op_ = nullptr;
  MemoryStep step_;
  std::int64_t next_id_ = 0;
  OpenAllocations open_;
  std::vector<Allocation> temporaries_;  ///< by event of the segment that runs
  std::vector<Allocation> besides_;
  std::map<std::int32_t, Away> away_;  ///< by the op that copies it out
  std::map<std::pair<int, int>, int> positions_;
};

/// Who asks for steps alone.
class StepVisitor final : public MemoryVisitor {
 public:
  explicit StepVisitor(const std::function<void(const MemoryStep&)>& visit) : visit_(visit) {}
  void step(const MemoryStep& step) override { visit_(step); }
  void use(std::int32_t, const Allocation&, bool) override {}

 private:
  const std::function<void(const MemoryStep&)>& visit_;
};

}  // namespace

void replay_memory(const Program& program, int stage, int micro_batches,
                   const std::function<void(const MemoryStep&)>& visit) {
  StepVisitor visitor(visit);
  MemoryReplay(program, visitor, false)
      .run(program.stages[static_cast<std::size_t>(stage)], micro_batches);
}

void replay_memory(const Program& program, int stage, MemoryVisitor& visitor) {
  MemoryReplay(program, visitor, true).run(program.stages[static_cast<std::size_t>(stage)], -1);
}

int telling_micro_batches(const RankProgram& stage) {
  constexpr int kMargin = 2;
  int in_flight = 0;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels) continue;
    if (op.phase == Phase::backward) break;
    in_flight = std::max(in_flight, op.micro_batch + 1);
  }
  return 2 * in_flight + kMargin;
}

std::string name_of(const Allocation& allocation, const Program& program) {
  if (allocation.block < 0) return "temporaries outside of blocks";
  const ProgramBlock& block = program.blocks[static_cast<std::size_t>(allocation.block)];
  if (!allocation.storage.valid()) return block.name + ".message";
  return block.name + "." +
         block.storages[static_cast<std::size_t>(allocation.storage.index())].name;
}

}  // namespace tessera
