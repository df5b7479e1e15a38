#include "sim/plan/memory/planned_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "sim/plan/memory/split_micro_batches.h"

namespace tessera {
namespace {

constexpr std::int32_t kNoOp = -1;

/// A pass of the old program, taken apart.
struct OldPass {
  /// An op of the span. Those of the model's blocks are `planned`, and of the block with number
  /// `run` in the pass's order; others lie ahead of that block.
  struct Op {
    bool planned = false;
    int run = 0;
  };
  struct Run {
    std::vector<std::int32_t> awaited;  ///< ops that are not planned, or outside of the pass
    Bytes allocated;
  };
  std::vector<Op> ops;
  std::vector<Run> runs;
};

class ProgramRewriter {
 public:
  ProgramRewriter(const RankProgram& stage, const std::vector<MemoryPasses>& chunks,
                  GradientStore store, SegmentId empty_segment,
                  const std::vector<Segment>& segments)
      : stage_(stage),
        chunks_(chunks),
        store_(store),
        empty_segment_(empty_segment),
        segments_(segments),
        split_(stage),
        result_(stage) {
    result_.ops.clear();
    result_.passes.clear();
  }

  RankProgram run() && {
    moved_to_.assign(stage_.ops.size(), kNoOp);
    auto span = stage_.passes.begin();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(stage_.ops.size()); ++i) {
      while (span != stage_.passes.end() && i == span->begin) {
        PassSpan placed = *span;
        placed.begin = size();
        if (passes_of(*span).usual.front().empty()) {
          for (; i < span->end; ++i) copy(i);
        } else {
          place(*span);
          i = span->end;
        }
        placed.end = size();
        result_.passes.push_back(placed);
        ++span;
      }
      if (i < static_cast<std::int32_t>(stage_.ops.size())) copy(i);
    }
    return std::move(result_);
  }

 private:
  const ProgramOp& old(std::int32_t op) const { return stage_.ops[static_cast<std::size_t>(op)]; }
  std::int32_t& moved(std::int32_t op) { return moved_to_[static_cast<std::size_t>(op)]; }
  std::int32_t size() const { return static_cast<std::int32_t>(result_.ops.size()); }

  /// An operator of the model's blocks.
  bool is_planned(const ProgramOp& op) const {
    if (op.kind == OpKind::kernels)
      return segments_[static_cast<std::size_t>(op.segment.index())].block >= 0;
    return is_collective(op.kind) &&
           (op.group == GroupKind::tensor || op.group == GroupKind::context ||
            op.group == GroupKind::expert || op.group == GroupKind::expert_tensor);
  }

  OldPass take_apart(const PassSpan& span) const {
    OldPass pass;
    std::pair<std::int32_t, std::int32_t> last{-2, -2};  // layer and block
    for (std::int32_t i = span.begin; i < span.end; ++i) {
      const ProgramOp& op = old(i);
      if (!is_planned(op)) {
        pass.ops.push_back({false, static_cast<int>(pass.runs.size())});
        continue;
      }
      if (op.kind == OpKind::kernels) {
        const std::pair here{op.layer,
                             segments_[static_cast<std::size_t>(op.segment.index())].block};
        if (here != std::exchange(last, here)) pass.runs.emplace_back();
      }
      OldPass::Run& run = pass.runs.back();
      pass.ops.push_back({true, static_cast<int>(pass.runs.size()) - 1});
      run.allocated += op.allocated;
      for (const std::int32_t wait : op.waits) {
        const bool inside = wait >= span.begin;
        if (wait >= 0 && !(inside && pass.ops[static_cast<std::size_t>(wait - span.begin)].planned))
          run.awaited.push_back(wait);
      }
    }
    return pass;
  }

  /// Of the micro-batch that `span` works on.
  const MemoryPasses& passes_of(const PassSpan& span) const {
    return *std::ranges::find_if(chunks_, [&](const MemoryPasses& passes) {
      return passes.chunk == span.chunk && passes.splits == split_.contains(span);
    });
  }

  const MemoryPass& pass_of(const PassSpan& span) {
    const MemoryPasses& passes = passes_of(span);
    const auto part = static_cast<std::size_t>(span.part);
    if (span.part == PassPart::forward) {
      const auto first = first_forward_.try_emplace(span.chunk, span.micro_batch).first->second;
      const bool differs = !passes.first[part].empty();
      return differs && span.micro_batch == first ? passes.first[part] : passes.usual[part];
    }
    if (store_ == GradientStore::never) return passes.usual[part];
    const auto first = first_backward_.try_emplace(span.chunk, span.micro_batch).first->second;
    const bool stores = store_ == GradientStore::every || span.micro_batch == first;
    const bool differs = !passes.first[static_cast<std::size_t>(PassPart::backward)].empty();
    return stores && differs ? passes.first[part] : passes.usual[part];
  }

  /// The planned pass with what the old one did besides.
  void place(const PassSpan& span) {
    const OldPass pass = take_apart(span);
    next_old_ = span.begin;
    last_kernels_ = kNoOp;
    gathers_.clear();
    put(pass_of(span), span, pass);
    reach(static_cast<int>(pass.runs.size()), span, pass);
  }

  void put(const MemoryPass& planned_pass, const PassSpan& span, const OldPass& pass) {
    std::size_t begun = 0;  // blocks of the old pass
    std::vector<std::int32_t> at;
    for (const PlannedOp& planned : planned_pass) {
      reach(planned.run, span, pass);
      ProgramOp op = planned.op;
      op.micro_batch = span.micro_batch;
      std::vector<std::int32_t> waits;
      for (const PlannedWait& wait : planned.waits) waits.push_back(op_at(wait, span, at));
      if (op.kind == OpKind::kernels) {
        waits.push_back(gather_of(op.layer, span, pass));
        for (; begun < pass.runs.size() && static_cast<int>(begun) <= planned.run; ++begun) {
          for (const std::int32_t wait : pass.runs[begun].awaited) waits.push_back(moved(wait));
          op.allocated += pass.runs[begun].allocated;
        }
      }
      at.push_back(push(op, waits));
      if (op.kind == OpKind::kernels) last_kernels_ = at.back();
    }
    passes_at_[{span.chunk, span.micro_batch, static_cast<int>(span.part)}] = std::move(at);
  }

  /// All blocks ahead of `run` have ended; what lies ahead of it besides is put.
  void reach(int run, const PassSpan& span, const OldPass& pass) {
    for (; next_old_ < span.end; ++next_old_) {
      const OldPass::Op& here = pass.ops[static_cast<std::size_t>(next_old_ - span.begin)];
      if (here.planned ? here.run >= run : here.run > run) return;
      if (!here.planned) {
        put_beside(next_old_);
        continue;
      }
      moved(next_old_) = last_kernels_;
      if (last_kernels_ != kNoOp)
        result_.ops[static_cast<std::size_t>(last_kernels_)].freed += old(next_old_).freed;
    }
  }

  void put_beside(std::int32_t op) {
    if (moved(op) == kNoOp) copy(op);
    if (gathers(old(op))) gathers_[old(op).layer] = moved(op);
  }

  /// Gathers parameters of a layer, or casts what is gathered.
  static bool gathers(const ProgramOp& op) {
    const bool of_parameters = op.group == GroupKind::shard || op.group == GroupKind::expert_data;
    return of_parameters && op.layer >= 0;
  }

  /// The last op that gathers parameters of `layer` for this pass, at the latest now, with what
  /// is cast and gathered ahead of it.
  std::int32_t gather_of(std::int32_t layer, const PassSpan& span, const OldPass& pass) {
    if (layer < 0) return kNoOp;
    const bool put = gathers_.contains(layer);
    for (std::int32_t i = next_old_; i < span.end && !put; ++i) {
      const bool beside = !pass.ops[static_cast<std::size_t>(i - span.begin)].planned;
      if (beside && gathers(old(i)) && old(i).layer == layer) put_beside(i);
    }
    const auto known = gathers_.find(layer);
    return known == gathers_.end() ? kNoOp : known->second;
  }

  std::int32_t op_at(const PlannedWait& wait, const PassSpan& span,
                     const std::vector<std::int32_t>& here) const {
    if (wait.part == static_cast<int>(span.part)) return here[static_cast<std::size_t>(wait.op)];
    return passes_at_.at(
        {span.chunk, span.micro_batch, wait.part})[static_cast<std::size_t>(wait.op)];
  }

  void copy(std::int32_t i) {
    std::vector<std::int32_t> waits;
    for (const std::int32_t wait : old(i).waits)
      if (wait >= 0) waits.push_back(moved(wait));
    moved(i) = push(old(i), waits);
  }

  /// An op has room for two waits: empty kernels take more.
  std::int32_t push(ProgramOp op, std::vector<std::int32_t> waits) {
    std::erase(waits, kNoOp);
    std::size_t next = 0;
    op.waits = {kNoOp, kNoOp};
    for (std::int32_t& wait : op.waits)
      if (next < waits.size()) wait = waits[next++];
    if (next == waits.size()) {
      result_.ops.push_back(op);
      return size() - 1;
    }
    // Waits of an op on the compute stream hold for all behind it on that stream.
    std::int32_t last = kNoOp;
    for (; next < waits.size(); ++next) last = waiting_op(op, waits[next], last);
    op.waits[op.kind == OpKind::kernels ? 0 : 1] = op.kind == OpKind::kernels ? op.waits[0] : last;
    result_.ops.push_back(op);
    return size() - 1;
  }
  std::int32_t waiting_op(const ProgramOp& like, std::int32_t wait, std::int32_t last) {
    ProgramOp op;
    op.segment = empty_segment_;
    op.phase = like.phase;
    op.micro_batch = like.micro_batch;
    op.layer = like.layer;
    op.waits = {wait, last};
    result_.ops.push_back(op);
    return size() - 1;
  }

  const RankProgram& stage_;
  const std::vector<MemoryPasses>& chunks_;
  GradientStore store_;
  SegmentId empty_segment_;
  const std::vector<Segment>& segments_;
  SplitMicroBatches split_;
  std::vector<std::int32_t> moved_to_;                   ///< by old op
  std::map<std::int32_t, std::int32_t> first_forward_;   ///< micro-batch, by chunk
  std::map<std::int32_t, std::int32_t> first_backward_;  ///< likewise
  std::int32_t next_old_ = 0;                            ///< of the span that is being placed
  std::int32_t last_kernels_ = kNoOp;                    ///< that were placed of it
  std::map<std::int32_t, std::int32_t> gathers_;         ///< likewise, by layer
  /// By chunk, micro-batch and part: the new ops of a planned pass.
  std::map<std::tuple<int, int, int>, std::vector<std::int32_t>> passes_at_;
  RankProgram result_;
};

}  // namespace

RankProgram put_planned_passes(const RankProgram& stage, const std::vector<MemoryPasses>& chunks,
                               GradientStore store, SegmentId empty_segment,
                               const std::vector<Segment>& segments) {
  return ProgramRewriter(stage, chunks, store, empty_segment, segments).run();
}

}  // namespace tessera
