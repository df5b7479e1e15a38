#include "sim/plan/memory/stage_transfers.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "sim/plan/memory/split_micro_batches.h"

namespace tessera {
namespace {

constexpr int kNoPass = -2;

/// Layers of a pass as StageTransfer counts them, op by op of the program.
class PassLayers {
 public:
  PassLayers(const RankProgram& stage, const PassSpan& pass, const std::vector<Segment>& segments)
      : begin_(static_cast<std::size_t>(pass.begin)) {
    int last = kNoPass;
    for (auto i = pass.begin; i < pass.end; ++i) {
      const ProgramOp& op = stage.ops[static_cast<std::size_t>(i)];
      const bool of_model = op.kind == OpKind::kernels &&
                            segments[static_cast<std::size_t>(op.segment.index())].block >= 0;
      begun_.push_back(static_cast<int>(layers_.size()));
      if (!of_model || op.layer == last) continue;
      last = op.layer;
      layers_.push_back(last);
    }
  }

  /// That begin ahead of op `place` of the program.
  int ahead_of(std::size_t place) const {
    if (place < begin_) return 0;
    const std::size_t at = place - begin_;
    return at < begun_.size() ? begun_[at] : static_cast<int>(layers_.size());
  }
  /// The first with that number; -1: the pass has none.
  int find(int layer) const {
    const auto found = std::ranges::find(layers_, layer);
    return found == layers_.end() ? -1 : static_cast<int>(found - layers_.begin());
  }

 private:
  std::size_t begin_;
  std::vector<int> begun_, layers_;
};

GraphOp collective_of(const ProgramOp& op) {
  GraphOp collective;
  collective.kind = GraphOpKind::collective;
  collective.collective = op.kind;
  collective.group = op.group;
  collective.bytes = op.bytes;
  return collective;
}

/// Memory as kernels find it, and when there is room for them.
class RoomOverTime {
 public:
  RoomOverTime(Bytes limit, Bytes held) : limit_(limit), level_(held) {}

  /// When what needs `taken` can start, `start` at the earliest.
  Seconds wait(Seconds start, Bytes taken) {
    while (!returning_.empty()) {
      const auto [end, bytes] = *returning_.begin();
      if (end > start && level_ + taken <= limit_) return start;
      start = std::max(start, end);
      level_ -= bytes;
      returning_.erase(returning_.begin());
    }
    return start;
  }
  void change(Bytes net) { level_ += net; }
  void returns(Seconds end, Bytes bytes) { returning_.emplace(end, bytes); }

 private:
  Bytes limit_, level_;
  std::multimap<Seconds, Bytes> returning_;  ///< that collectives free, by when they end
};

/// When the ops of a stage start and end that wait for their streams, each other and room alone.
class OpDates {
 public:
  explicit OpDates(const StageWalkSetting& setting)
      : setting_(setting), room_(setting.limit, setting.held), known_(setting.segments.size()) {}

  void add(const ProgramOp& op) {
    Seconds& stream = streams_[static_cast<std::size_t>(op.stream)];
    Seconds start = setting_.single_queue ? std::max(stream, queue_) : stream;
    for (const std::int32_t wait : op.waits)
      if (wait >= 0) start = std::max(start, ends_[static_cast<std::size_t>(wait)]);
    const Duration duration = duration_of(op);
    if (setting_.limit > Bytes(0)) start = with_room(op, start, duration.all);
    queue_ = start + duration.all - duration.last;
    stream = start + duration.all;
    last_ = std::max(last_, stream);
    starts_.push_back(start);
    ends_.push_back(stream);
  }
  Seconds start(std::size_t op) const { return starts_[op]; }
  Seconds end(std::size_t op) const { return ends_[op]; }
  Seconds last() const { return last_; }

 private:
  /// Of an op, and of what leaves the hardware queue last when it starts.
  struct Duration {
    Seconds all, last;
  };

  Seconds with_room(const ProgramOp& op, Seconds start, Seconds duration) {
    const bool kernels = op.kind == OpKind::kernels;
    const Segment* segment =
        kernels ? &setting_.segments[static_cast<std::size_t>(op.segment.index())] : nullptr;
    if (op.stream == StreamKind::compute)
      start = room_.wait(start, op.allocated + (kernels ? segment->peak_above_start : Bytes(0)));
    room_.change(op.allocated + (kernels ? segment->net_memory : Bytes(0)));
    if (is_collective(op.kind))
      room_.returns(start + duration, op.freed);
    else
      room_.change(Bytes(0) - op.freed);
    return start;
  }

  Duration duration_of(const ProgramOp& op) {
    if (op.kind == OpKind::kernels) return duration_of(op.segment);
    const bool copies = op.kind == OpKind::copy_out || op.kind == OpKind::copy_in;
    Seconds time;
    if (is_collective(op.kind)) time = setting_.time(collective_of(op)).time;
    if (copies && setting_.copies.value() > 0)
      time = Seconds(static_cast<double>(op.bytes.value()) / setting_.copies.value());
    return {time, time};
  }
  Duration duration_of(SegmentId segment) {
    const auto at = static_cast<std::size_t>(segment.index());
    if (known_[at]) return *known_[at];
    Duration sum;
    for (const KernelLaunch& launch : setting_.segments[at].kernels) {
      GraphOp op;
      op.kernel = launch.kernel;
      sum.last = setting_.time(op).time;
      sum.all += sum.last;
    }
    known_[at] = sum;
    return sum;
  }

  const StageWalkSetting& setting_;
  RoomOverTime room_;
  std::vector<std::optional<Duration>> known_;  ///< by segment
  std::array<Seconds, kStreamCount> streams_{};
  Seconds queue_, last_;
  std::vector<Seconds> starts_, ends_;  ///< by op
};

}  // namespace

bool reduces(const ProgramOp& op) {
  return op.stream == StreamKind::data_comm && op.phase == Phase::gradient_reduction;
}

bool gathers(const ProgramOp& op) {
  return op.stream == StreamKind::data_comm &&
         (op.phase == Phase::forward || op.phase == Phase::backward);
}

std::vector<std::size_t> earliest_places(const RankProgram& stage, bool single_queue) {
  std::vector<std::size_t> places;
  std::size_t stream = 0, kernels = 0;
  const auto behind = [&](std::size_t op) { return gathers(stage.ops[op]) ? places[op] : op + 1; };
  for (std::size_t i = 0; i < stage.ops.size(); ++i) {
    const ProgramOp& op = stage.ops[i];
    places.push_back(i);
    if (gathers(op)) {
      places[i] = std::max(stream, single_queue ? kernels : 0);
      for (const std::int32_t wait : op.waits)
        if (wait >= 0) places[i] = std::max(places[i], behind(static_cast<std::size_t>(wait)));
    }
    if (op.stream == StreamKind::data_comm) stream = behind(i);
    if (op.stream == StreamKind::compute) kernels = i;
  }
  return places;
}

std::vector<std::size_t> places_in_memory(const RankProgram& stage,
                                          const StageWalkSetting& setting) {
  std::vector<std::size_t> places = earliest_places(stage, setting.single_queue);
  if (std::ranges::none_of(stage.ops, reduces)) return places;
  OpDates dates(setting);
  std::vector<std::size_t> kernels;  // of the compute stream
  for (std::size_t i = 0; i < stage.ops.size(); ++i) {
    dates.add(stage.ops[i]);
    if (stage.ops[i].stream == StreamKind::compute) kernels.push_back(i);
  }
  const auto start = [&](std::size_t op) { return dates.start(op); };
  for (std::size_t i = 0; i < stage.ops.size(); ++i) {
    if (!reduces(stage.ops[i])) continue;
    const auto next = std::ranges::lower_bound(kernels, dates.end(i), {}, start);
    places[i] = std::max(i, next == kernels.end() ? stage.ops.size() : *next);
  }
  return places;
}

Seconds walked_time(const RankProgram& stage, const StageWalkSetting& setting) {
  OpDates dates(setting);
  for (const ProgramOp& op : stage.ops) dates.add(op);
  return dates.last();
}

std::vector<StageTransfer> transfers_beside(const RankProgram& stage, const ChunkMemoryPlan& chunk,
                                            const TimedProgram& timed) {
  const std::vector<std::size_t> places = earliest_places(stage, timed.single_hardware_queue);
  const SplitMicroBatches split(stage);
  std::vector<StageTransfer> transfers;
  for (const PassPart part : {PassPart::forward, PassPart::backward, PassPart::weight_gradient}) {
    const auto pass = std::ranges::find_if(stage.passes, [&](const PassSpan& span) {
      return span.part == part && span.chunk == chunk.chunk && split.contains(span) == chunk.splits;
    });
    if (pass == stage.passes.end()) continue;
    const PassLayers layers(stage, *pass, timed.program.segments);
    for (auto i = static_cast<std::size_t>(pass->begin); i < static_cast<std::size_t>(pass->end);
         ++i) {
      const ProgramOp& op = stage.ops[i];
      if (op.stream != StreamKind::data_comm || !is_collective(op.kind)) continue;
      const int awaited = !gathers(op) ? -1 : op.layer >= 0 ? layers.find(op.layer) : 0;
      int launched = layers.ahead_of(places[i]);
      if (awaited >= 0) launched = std::min(launched, awaited);
      transfers.push_back({part, launched, awaited, collective_of(op)});
    }
  }
  return transfers;
}

}  // namespace tessera
