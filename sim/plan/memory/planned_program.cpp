#include "sim/plan/memory/planned_program.h"

#include <map>
#include <string>
#include <utility>

#include "hw/units/input_error.h"
#include "workloads/labels.h"

namespace tessera {
namespace {

constexpr std::int32_t kNoOp = -1;

/// Of a pass over the stage; others are outside of passes.
struct PassKey {
  std::int32_t micro_batch = kNoOp;
  bool backward = false;
  bool operator==(const PassKey&) const = default;
};

bool is_in_pass(const ProgramOp& op) {
  return op.micro_batch >= 0 && (op.kind == OpKind::kernels || is_collective(op.kind));
}

class ProgramRewriter {
 public:
  ProgramRewriter(const MemoryPasses& passes, bool stores_first)
      : passes_(passes), stores_first_(stores_first) {}

  std::vector<ProgramOp> run(const std::vector<ProgramOp>& ops) && {
    moved_to_.assign(ops.size(), kNoOp);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (is_in_pass(ops[i])) {
        check(ops[i]);
        in_pass(ops, i);
      } else {
        outside(ops[i], i);
      }
    }
    return std::move(result_);
  }

 private:
  static void check(const ProgramOp& op) {
    if (op.kind == OpKind::kernels || op.group == GroupKind::tensor) return;
    throw InputError(
        {"memory.planner",
         "cannot plan a pass with collectives of the " + std::string(label_of(op.group)) + " group",
         "use parallelism without sharded parameters or overlapped reduction"});
  }

  void in_pass(const std::vector<ProgramOp>& ops, std::size_t i) {
    const PassKey key{ops[i].micro_batch, ops[i].phase == Phase::backward};
    if (key != current_) {
      current_ = key;
      insert(ops, i, key);
    }
    moved_to_[i] = last_of_pass_;
  }

  /// The planned pass, behind what the old pass's ops waited for from outside.
  void insert(const std::vector<ProgramOp>& ops, std::size_t first, const PassKey& key) {
    std::vector<std::int32_t> awaited;
    for (std::size_t i = first; i < ops.size(); ++i) {
      if (!is_in_pass(ops[i])) continue;
      if (PassKey{ops[i].micro_batch, ops[i].phase == Phase::backward} != key) break;
      for (const std::int32_t wait : ops[i].waits)
        if (wait >= 0 && static_cast<std::size_t>(wait) < first) awaited.push_back(moved(wait));
    }
    const auto base = static_cast<std::int32_t>(result_.size());
    std::vector<std::int32_t> at;  // of the planned pass's ops
    const std::vector<std::int32_t>& forward = forward_at_[key.micro_batch];
    const auto place = [&](int wait) {
      return wait >= 0 ? at[static_cast<std::size_t>(wait)]
                       : forward[static_cast<std::size_t>(-2 - wait)];
    };
    for (const PlannedOp& planned : pass_of(key)) {
      std::vector<std::int32_t> waits;
      for (const int wait : planned.waits) waits.push_back(place(wait));
      if (planned.starts_pass) waits.insert(waits.end(), awaited.begin(), awaited.end());
      ProgramOp op = planned.op;
      op.micro_batch = key.micro_batch;
      at.push_back(push(op, waits));
      if (op.kind == OpKind::kernels) last_of_pass_ = at.back();
    }
    if (at.empty()) last_of_pass_ = base - 1;
    if (!key.backward) forward_at_[key.micro_batch] = std::move(at);
  }
  const MemoryPass& pass_of(const PassKey& key) const {
    if (!key.backward) return passes_.forward;
    const bool first = stores_first_ && key.micro_batch == 0 && !passes_.first_backward.empty();
    return first ? passes_.first_backward : passes_.backward;
  }

  void outside(const ProgramOp& op, std::size_t i) {
    std::vector<std::int32_t> waits;
    for (const std::int32_t wait : op.waits)
      if (wait >= 0) waits.push_back(moved(wait));
    moved_to_[i] = push(op, waits);
  }
  std::int32_t moved(std::int32_t op) const { return moved_to_[static_cast<std::size_t>(op)]; }

  /// An op has room for two waits: empty kernels take more.
  std::int32_t push(ProgramOp op, std::vector<std::int32_t> waits) {
    std::erase(waits, kNoOp);
    std::size_t next = 0;
    op.waits = {kNoOp, kNoOp};
    for (std::int32_t& wait : op.waits)
      if (next < waits.size()) wait = waits[next++];
    if (next == waits.size()) {
      result_.push_back(op);
      return static_cast<std::int32_t>(result_.size()) - 1;
    }
    // Waits of an op on the compute stream hold for all behind it on that stream.
    std::int32_t last = kNoOp;
    for (; next < waits.size(); ++next) last = waiting_op(op, waits[next], last);
    op.waits[op.kind == OpKind::kernels ? 0 : 1] = op.kind == OpKind::kernels ? op.waits[0] : last;
    result_.push_back(op);
    return static_cast<std::int32_t>(result_.size()) - 1;
  }
  std::int32_t waiting_op(const ProgramOp& like, std::int32_t wait, std::int32_t last) {
    ProgramOp op;
    op.segment = empty_segment_;
    op.phase = like.phase;
    op.micro_batch = like.micro_batch;
    op.layer = like.layer;
    op.waits = {wait, last};
    result_.push_back(op);
    return static_cast<std::int32_t>(result_.size()) - 1;
  }

 public:
  void set_empty_segment(SegmentId id) { empty_segment_ = id; }

 private:
  const MemoryPasses& passes_;
  bool stores_first_;
  SegmentId empty_segment_;
  PassKey current_;
  std::int32_t last_of_pass_ = kNoOp;
  std::vector<std::int32_t> moved_to_;                            ///< by old op
  std::map<std::int32_t, std::vector<std::int32_t>> forward_at_;  ///< by micro-batch
  std::vector<ProgramOp> result_;
};

}  // namespace

void put_planned_passes(const MemoryPasses& passes, bool stores_first_gradients,
                        SegmentId empty_segment, RankProgram& stage) {
  ProgramRewriter rewriter(passes, stores_first_gradients);
  rewriter.set_empty_segment(empty_segment);
  stage.ops = std::move(rewriter).run(stage.ops);
}

}  // namespace tessera
