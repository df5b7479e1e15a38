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
    while (!changes_.empty()) {
      const auto [date, bytes] = *changes_.begin();
      if (date > start && level_ + taken <= limit_) return start;
      start = std::max(start, date);
      level_ += bytes;
      changes_.erase(changes_.begin());
    }
    return start;
  }
  void change(Bytes net) { level_ += net; }
  /// Beside the kernels.
  void change_at(Seconds date, Bytes net) {
    if (net != Bytes(0)) changes_.emplace(date, net);
  }

 private:
  Bytes limit_, level_;
  std::multimap<Seconds, Bytes> changes_;
};

/// Of an op, and of what leaves the hardware queue last when it starts.
struct OpDuration {
  Seconds all, last;
  double products = 0;  ///< share of `all` (loses_multiprocessors())
  DeviceLoad load = {};
};

/// What the ops of a stage take alone.
class OpDurations {
 public:
  explicit OpDurations(const StageWalkSetting& setting)
      : setting_(setting), known_(setting.segments.size()) {}

  OpDuration of(const ProgramOp& op) {
    if (op.kind == OpKind::kernels) return of(op.segment);
    const bool copies = op.kind == OpKind::copy_out || op.kind == OpKind::copy_in;
    OpCost cost;
    if (is_collective(op.kind)) cost = setting_.time(collective_of(op));
    if (copies && setting_.copies.value() > 0)
      cost.time = Seconds(static_cast<double>(op.bytes.value()) / setting_.copies.value());
    return {.all = cost.time, .last = cost.time, .load = cost.load};
  }

 private:
  OpDuration of(SegmentId segment) {
    const auto at = static_cast<std::size_t>(segment.index());
    if (known_[at]) return *known_[at];
    OpDuration sum;
    Seconds products;
    for (const KernelLaunch& launch : setting_.segments[at].kernels) {
      GraphOp op;
      op.kernel = launch.kernel;
      const OpCost cost = setting_.time(op);
      sum.last = cost.time;
      sum.all += cost.time;
      if (cost.product) products += cost.time;
    }
    if (sum.all > Seconds(0)) sum.products = products / sum.all;
    known_[at] = sum;
    return sum;
  }

  const StageWalkSetting& setting_;
  std::vector<std::optional<OpDuration>> known_;  ///< by segment
};

/// When the ops of a stage start and end that wait for their streams, each other and room alone.
class OpDates {
 public:
  /// `stretch`: by op, of its duration; all three must outlive the object.
  OpDates(const StageWalkSetting& setting, OpDurations& durations,
          const std::vector<double>& stretch)
      : setting_(setting),
        durations_(durations),
        stretch_(stretch),
        room_(setting.limit, setting.held) {}

  void add(const ProgramOp& op) {
    Seconds& stream = streams_[static_cast<std::size_t>(op.stream)];
    Seconds start = setting_.single_queue ? std::max(stream, queue_) : stream;
    for (const std::int32_t wait : op.waits)
      if (wait >= 0) start = std::max(start, ends_[static_cast<std::size_t>(wait)]);
    OpDuration duration = durations_.of(op);
    duration.all *= stretch_[ends_.size()];
    duration.last *= stretch_[ends_.size()];
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
  Seconds with_room(const ProgramOp& op, Seconds start, Seconds duration) {
    const bool kernels = op.kind == OpKind::kernels;
    const Segment* segment =
        kernels ? &setting_.segments[static_cast<std::size_t>(op.segment.index())] : nullptr;
    const Bytes kept = op.allocated + (kernels ? segment->net_memory : Bytes(0));
    if (op.stream == StreamKind::compute) {
      start = room_.wait(start, op.allocated + (kernels ? segment->peak_above_start : Bytes(0)));
      room_.change(kept - op.freed);
    } else {
      room_.change_at(start, kept);
      room_.change_at(start + duration, Bytes(0) - op.freed);
    }
    return start;
  }

  const StageWalkSetting& setting_;
  OpDurations& durations_;
  const std::vector<double>& stretch_;
  RoomOverTime room_;
  std::array<Seconds, kStreamCount> streams_{};
  Seconds queue_, last_;
  std::vector<Seconds> starts_, ends_;  ///< by op
};

/// Kernels of the compute stream and collectives beside them, where both take longer.
class MutualStretch {
 public:
  MutualStretch(const RankProgram& stage, const OpDates& dates, OpDurations& durations)
      : dates_(dates), work_(stage.ops.size()) {
    for (std::size_t op = 0; op < stage.ops.size(); ++op) {
      work_[op] = dates.end(op) - dates.start(op);
      if (work_[op] <= Seconds(0)) continue;
      const OpDuration duration = durations.of(stage.ops[op]);
      if (stage.ops[op].stream == StreamKind::compute)
        kernels_.push_back({op, duration});
      else if (duration.load != DeviceLoad())
        streams_[static_cast<std::size_t>(stage.ops[op].stream)].push_back({op, duration});
    }
  }

  /// By op; each collective counts as if it were the only one beside a kernel.
  std::vector<double> run() {
    for (const std::vector<Running>& collectives : streams_) {
      std::size_t next = 0;
      for (const Running& collective : collectives) {
        while (next < kernels_.size() && dates_.end(kernels_[next].op) <= start(collective)) ++next;
        for (std::size_t k = next; k < kernels_.size(); ++k) {
          if (dates_.start(kernels_[k].op) >= dates_.end(collective.op)) break;
          lose(kernels_[k], collective);
        }
      }
    }
    std::vector<double> stretch;
    for (std::size_t op = 0; op < work_.size(); ++op) {
      const Seconds lasting = dates_.end(op) - dates_.start(op);
      stretch.push_back(lasting > Seconds(0) ? lasting / work_[op] : 1);
    }
    return stretch;
  }

 private:
  struct Running {
    std::size_t op;
    OpDuration duration;
  };

  Seconds start(const Running& running) const { return dates_.start(running.op); }

  void lose(const Running& kernel, const Running& collective) {
    const Seconds together = std::min(dates_.end(kernel.op), dates_.end(collective.op)) -
                             std::max(start(kernel), start(collective));
    const KernelsBeside beside(collective.duration.load, kernel.duration.products);
    work_[kernel.op] -= together * (1 - 1 / beside.stretch());
    work_[collective.op] -= together * (1 - 1 / beside.stretch_of_collectives());
  }

  const OpDates& dates_;
  std::vector<Seconds> work_;  ///< by op: what it would take alone of what is done
  std::vector<Running> kernels_;
  std::array<std::vector<Running>, kStreamCount> streams_;
};

/// Dates and stretches that follow from each other, as far as a few rounds bring them there.
class SettledWalk {
 public:
  SettledWalk(const RankProgram& stage, const StageWalkSetting& setting)
      : durations_(setting), stretch_(stage.ops.size(), 1.0) {
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      if (dates_) stretch_ = MutualStretch(stage, *dates_, durations_).run();
      dates_.emplace(setting, durations_, stretch_);
      for (const ProgramOp& op : stage.ops) dates_->add(op);
    }
  }
  SettledWalk(const SettledWalk&) = delete;
  SettledWalk& operator=(const SettledWalk&) = delete;

  const OpDates& dates() const { return *dates_; }

 private:
  OpDurations durations_;
  std::vector<double> stretch_;
  std::optional<OpDates> dates_;
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
  const SettledWalk walk(stage, setting);
  const OpDates& dates = walk.dates();
  std::vector<std::size_t> kernels;  // of the compute stream
  for (std::size_t i = 0; i < stage.ops.size(); ++i)
    if (stage.ops[i].stream == StreamKind::compute) kernels.push_back(i);
  const auto start = [&](std::size_t op) { return dates.start(op); };
  for (std::size_t i = 0; i < stage.ops.size(); ++i) {
    if (!reduces(stage.ops[i])) continue;
    const auto next = std::ranges::lower_bound(kernels, dates.end(i), {}, start);
    places[i] = std::max(i, next == kernels.end() ? stage.ops.size() : *next);
  }
  return places;
}

Seconds walked_time(const RankProgram& stage, const StageWalkSetting& setting) {
  return SettledWalk(stage, setting).dates().last();
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
