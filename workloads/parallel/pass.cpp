#include "workloads/parallel/pass.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tessera {
namespace {

/// "attention" of "attention.scores.dgrad".
std::string scope_of(const std::string& kernel_name) {
  return kernel_name.substr(0, kernel_name.find('.'));
}

/// By operator of a pass: whether a later one of forward overwrites what it or one ahead of it
/// made, with nothing but calls between them. What is made so can only be made again as a whole.
std::vector<bool> joined_with_next(const std::vector<GraphOp>& ops) {
  std::vector<bool> joined(ops.size(), false);
  std::map<StorageId, std::size_t> made;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool is_call = ops[i].kind == GraphOpKind::kernel || ops[i].kind == GraphOpKind::view;
    if (!is_call || ops[i].phase != Phase::forward) made.clear();
    if (!is_call || ops[i].phase != Phase::forward) continue;
    for (const StorageId id : ops[i].allocates) made[id] = i;
    for (const Access& write : ops[i].writes) {
      const auto first = made.find(write.storage);
      for (std::size_t k = i; first != made.end() && k > first->second;) joined[--k] = true;
    }
  }
  return joined;
}

/// Storages in the order in which an open segment names them first.
class NamedStorages {
 public:
  void start_segment() { ++segment_; }
  /// Appends to `list`, of the open segment alone, those that it lacks.
  void add(const std::vector<StorageId>& storages, std::vector<StorageId>& list) {
    for (const StorageId id : storages) {
      const auto index = static_cast<std::size_t>(id.index());
      if (index >= named_in_.size()) named_in_.resize(index + 1);
      if (std::exchange(named_in_[index], segment_) != segment_) list.push_back(id);
    }
  }

 private:
  std::int32_t segment_ = 0;
  std::vector<std::int32_t> named_in_;  ///< by storage: the last segment that did
};

class SegmentCutter {
 public:
  SegmentCutter(const PassOps& pass, std::vector<Segment>& segments)
      : source_(pass), segments_(segments) {
    if (pass.segment_per_call) joined_ = joined_with_next(pass.ops);
  }

  void add(const GraphOp& op) {
    switch (op.kind) {
      case GraphOpKind::kernel:
      case GraphOpKind::view:
        return add_call(op);
      case GraphOpKind::host_sync:
        open_segment(op.phase).host_sync = true;
        return close();
      case GraphOpKind::collective:
      case GraphOpKind::wait:
        close();
        flying_ = op.kind == GraphOpKind::collective ? accessed_by(op) : std::vector<StorageId>();
        add_new(kept_on_device(op.writes), communicated_);
        pass_.push_back({op.kind, {}, op.phase, op.collective, op.group, op.bytes, false});
        received_ += op.allocated;
        sent_ += op.freed;
        note(late_, 0, MemoryEventKind::allocate, op.allocates, op.allocated);
        note(late_, 0, MemoryEventKind::free, op.frees, op.freed);
    }
  }

  Pass finish() && {
    close();
    if (last_ >= 0) {  // communication ends the pass
      Segment& last = segments_[static_cast<std::size_t>(last_)];
      add_new(communicated_, last.writes);
      last.peak_above_start = std::max(last.peak_above_start, last.net_memory + received_);
      last.net_memory += received_ - sent_;
      for (MemoryEvent event : late_) {
        event.kernel = static_cast<std::int32_t>(last.kernels.size());
        last.memory.push_back(event);
      }
    }
    return std::move(pass_);
  }

 private:
  void add_call(const GraphOp& op) {
    Segment& segment = open_segment(op.phase);
    touched_.add(accessed_by(op), segment.touches);
    written_.add(kept_on_device(op.writes), segment.writes);
    if (writes_persistent(op)) segment.repeatable = false;
    segment.host_ops += op.host_calls;
    const auto launched = [&] { return static_cast<std::int32_t>(segment.kernels.size()); };
    note(segment.memory, launched(), MemoryEventKind::allocate, op.allocates, op.allocated);
    in_use_ += op.allocated;
    segment.peak_above_start = std::max(segment.peak_above_start, in_use_);
    in_use_ -= op.freed;
    if (op.kind == GraphOpKind::kernel)
      segment.kernels.push_back({op.kernel, op.name, op.recomputed});
    note(segment.memory, launched(), MemoryEventKind::free, op.frees, op.freed);
    if (!joined_.empty() && op.kind == GraphOpKind::kernel &&
        !joined_[static_cast<std::size_t>(&op - source_.ops.data())])
      close();
  }

  std::vector<StorageId> accessed_by(const GraphOp& op) const {
    std::vector<StorageId> storages = kept_on_device(op.reads);
    for (const StorageId id : kept_on_device(op.writes)) storages.push_back(id);
    return storages;
  }
  /// Without static memory.
  std::vector<StorageId> kept_on_device(const std::vector<Access>& accesses) const {
    std::vector<StorageId> storages;
    if (!source_.storages) return storages;
    for (const Access& access : accesses)
      if (!is_persistent(access)) storages.push_back(access.storage);
    return storages;
  }
  bool is_persistent(const Access& access) const {
    return (*source_.storages)[static_cast<std::size_t>(access.storage.index())].scope ==
           StorageScope::persistent;
  }
  /// Statistics of a lone operator are put back, as planners take it to be.
  bool writes_persistent(const GraphOp& op) const {
    return source_.storages && std::ranges::any_of(op.writes, [this](const Access& access) {
             const Storage& written =
                 (*source_.storages)[static_cast<std::size_t>(access.storage.index())];
             const bool is_statistic = !joined_.empty() && written.role == TensorRole::buffer;
             return is_persistent(access) && !is_statistic;
           });
  }
  static void add_new(const std::vector<StorageId>& storages, std::vector<StorageId>& list) {
    for (const StorageId id : storages)
      if (std::ranges::find(list, id) == list.end()) list.push_back(id);
  }

  /// `bytes` as one event where they are of no storage.
  void note(std::vector<MemoryEvent>& events, std::int32_t kernel, MemoryEventKind kind,
            const std::vector<StorageId>& storages, Bytes bytes) const {
    if (!source_.storages && bytes.value() > 0)
      events.push_back({kind, kernel, StorageId(), bytes});
    if (!source_.storages) return;
    for (const StorageId id : storages) {
      const Bytes size = (*source_.storages)[static_cast<std::size_t>(id.index())].bytes;
      events.push_back({kind, kernel, id, allocated_size(size)});
    }
  }

  Segment& open_segment(Phase phase) {
    if (is_open_ && segments_.back().phase != phase) close();
    if (!is_open_) {
      segments_.emplace_back();
      segments_.back().phase = phase;
      segments_.back().block = source_.block;
      is_open_ = true;
      last_ = static_cast<std::ptrdiff_t>(segments_.size()) - 1;
      segments_.back().peak_above_start = std::exchange(received_, Bytes(0));
      in_use_ = segments_.back().peak_above_start - std::exchange(sent_, Bytes(0));
      // What communication allocated no kernels can make again.
      segments_.back().repeatable = phase == Phase::forward && source_.storages && late_.empty();
      segments_.back().memory = std::exchange(late_, {});
      touched_.start_segment();
      written_.start_segment();
      touched_.add(flying_, segments_.back().touches);
      written_.add(std::exchange(communicated_, {}), segments_.back().writes);
    }
    return segments_.back();
  }

  void close() {
    if (!is_open_) return;
    is_open_ = false;
    segments_.back().net_memory = in_use_;
    if (segments_.back().host_sync) segments_.back().repeatable = false;
    PassPiece piece;
    piece.segment = SegmentId(static_cast<std::int32_t>(segments_.size()) - 1);
    piece.phase = segments_.back().phase;
    piece.host_sync = segments_.back().host_sync;
    pass_.push_back(piece);
  }

  const PassOps& source_;
  std::vector<bool> joined_;  ///< by operator, with the next one; empty: with all up to a cut
  std::vector<Segment>& segments_;
  Pass pass_;
  bool is_open_ = false;
  NamedStorages touched_, written_;
  Bytes in_use_;
  std::ptrdiff_t last_ = -1;       ///< segment of this pass
  std::vector<StorageId> flying_;  ///< of a collective that runs beside the segments behind it
  std::vector<StorageId> communicated_;  ///< written by communication since the last segment
  // Buffers of the communication behind it, which the next segment takes and gives back.
  std::vector<MemoryEvent> late_;  ///< of communication since the last segment
  Bytes received_;
  Bytes sent_;
};

std::vector<Segment*> segments_of(const Pass& pass, std::vector<Segment>& segments) {
  std::vector<Segment*> result;
  for (const PassPiece& piece : pass) {
    if (piece.kind != GraphOpKind::kernel) continue;
    result.push_back(&segments[static_cast<std::size_t>(piece.segment.index())]);
  }
  return result;
}

/// A single segment carries the pass's name, more are told apart by their first kernel and number.
void name_segments(const std::vector<Segment*>& parts, const std::string& name) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string& part_name = parts[i]->name = name;
    if (parts.size() == 1) continue;
    if (!parts[i]->kernels.empty()) {
      part_name.append(".").append(scope_of(parts[i]->kernels.front().name));
    }
    part_name.append(".").append(std::to_string(i));
  }
}

void receive(Segment& segment, Bytes message) {
  const Bytes bytes = allocated_size(message);
  segment.peak_above_start += bytes;
  segment.net_memory += bytes;
  segment.memory.insert(segment.memory.begin(), {MemoryEventKind::receive, 0, StorageId(), bytes});
}

/// `kind`: send or drop_sent.
void leave(Segment& segment, MemoryEventKind kind, Bytes message) {
  const Bytes bytes = allocated_size(message);
  segment.net_memory -= bytes;
  segment.memory.push_back(
      {kind, static_cast<std::int32_t>(segment.kernels.size()), StorageId(), bytes});
}

}  // namespace

Pass cut_into_segments(const PassOps& source, const PassBoundary& boundary,
                       std::vector<Segment>& segments) {
  SegmentCutter cutter(source, segments);
  for (const GraphOp& op : source.ops) cutter.add(op);
  Pass pass = std::move(cutter).finish();
  const std::vector<Segment*> parts = segments_of(pass, segments);
  if (parts.empty()) return pass;
  name_segments(parts, source.name);
  if (boundary.received.value() > 0) receive(*parts.front(), boundary.received);
  if (boundary.sent.value() > 0) leave(*parts.back(), MemoryEventKind::send, boundary.sent);
  if (boundary.dropped.value() > 0)
    leave(*parts.back(), MemoryEventKind::drop_sent, boundary.dropped);
  return pass;
}

}  // namespace tessera
