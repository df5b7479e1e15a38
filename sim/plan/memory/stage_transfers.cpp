#include "sim/plan/memory/stage_transfers.h"

#include <algorithm>

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

}  // namespace

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
