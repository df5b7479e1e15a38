#include "lab/validate/models/match_operators.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

namespace tessera {
namespace {

/// Kernels of one pass of one operator.
using Kernels = std::vector<Kernel>;

/// A forward operator of the graph with what autograd derives from it.
struct LaunchedOperator {
  OperatorKey key;
  std::array<Kernels, kOperatorPasses.size()> passes;
};

Kernels& kernels(LaunchedOperator& launched, OperatorPass pass) {
  return launched.passes[static_cast<std::size_t>(pass)];
}

bool is_kernel(const GraphOp& op) {
  return op.kind == GraphOpKind::kernel;
}

/// Backward kernels that belong to no operator of the forward pass, or to a view.
LaunchedOperator without_origin(const GraphOp& op) {
  LaunchedOperator launched{.key = key_of(op), .passes = {}};
  kernels(launched, OperatorPass::backward).push_back(op.kernel);
  return launched;
}

void append_block(const Block& block, std::vector<LaunchedOperator>& all) {
  std::map<int, std::size_t> position;  // forward index -> index in `all`
  for (std::size_t i = 0; i < block.forward.size(); ++i) {
    if (!is_kernel(block.forward[i])) continue;
    position[static_cast<int>(i)] = all.size();
    all.push_back({.key = key_of(block.forward[i]), .passes = {}});
    kernels(all.back(), OperatorPass::forward).push_back(block.forward[i].kernel);
  }
  for (const GraphOp& op : block.backward) {
    if (!is_kernel(op)) continue;
    const auto origin = position.find(op.origin);
    if (origin == position.end()) {
      all.push_back(without_origin(op));
      continue;
    }
    const OperatorPass pass =
        op.accumulates_gradient ? OperatorPass::accumulate : OperatorPass::backward;
    kernels(all[origin->second], pass).push_back(op.kernel);
  }
}

/// Kernels of one call, or calls of one kernel each.
enum class Calls { together, apart };

Seconds isolated(const Kernels& kernels, Calls calls, const KernelPredictor& predictor) {
  Seconds busy;
  Seconds overhead;
  for (const Kernel& kernel : kernels) {
    busy += predictor.duration(kernel);
    const Seconds own = predictor.isolated_launch_overhead(kernel);
    overhead = calls == Calls::apart ? overhead + own : std::max(overhead, own);
  }
  return busy + overhead;
}

std::optional<Seconds> time_of(const TimedOperator& timed, OperatorPass pass) {
  switch (pass) {
    case OperatorPass::forward:
      return timed.forward;
    case OperatorPass::backward:
      return timed.backward;
    case OperatorPass::accumulate:
      return timed.gradient_accumulate;
  }
  return std::nullopt;
}

/// The passes of one operator; either side may be missing.
void append_passes(const OperatorKey& key, const TimedOperator* timed,
                   const LaunchedOperator* launched, const KernelPredictor& predictor,
                   std::vector<OperatorMatch>& matches) {
  for (const OperatorPass pass : kOperatorPasses) {
    OperatorMatch match{.key = key, .pass = pass};
    const std::optional<Seconds> time = timed ? time_of(*timed, pass) : std::nullopt;
    if (time && time->value() > 0) {
      match.timed = true;
      match.measured = *time;
    }
    const Kernels none;
    const Kernels& ours = launched ? launched->passes[static_cast<std::size_t>(pass)] : none;
    match.kernels = static_cast<int>(ours.size());
    const Calls calls = pass == OperatorPass::accumulate ? Calls::apart : Calls::together;
    if (match.kernels > 0) match.predicted = isolated(ours, calls, predictor);
    for (const Kernel& kernel : ours) {
      const KernelPrediction prediction = predictor.predict(kernel);
      match.launched.push_back({kernel, prediction.duration, prediction.spread});
    }
    if (match.timed || match.kernels > 0) matches.push_back(match);
  }
}

}  // namespace

std::string_view label_of(OperatorPass pass) {
  switch (pass) {
    case OperatorPass::forward:
      return "forward";
    case OperatorPass::backward:
      return "backward";
    case OperatorPass::accumulate:
      return "accumulate";
  }
  return "";
}

std::vector<OperatorMatch> match_operators(const std::vector<TimedOperator>& timed,
                                           const ModelGraph& graph,
                                           const KernelPredictor& predictor) {
  std::vector<LaunchedOperator> all;
  for (const Block& block : graph.blocks) append_block(block, all);
  std::map<OperatorKey, std::deque<const LaunchedOperator*>> waiting;
  for (const LaunchedOperator& launched : all) {
    const bool has_forward = !launched.passes.front().empty();
    if (has_forward) waiting[launched.key].push_back(&launched);
  }
  std::vector<OperatorMatch> matches;
  for (const TimedOperator& op : timed) {
    auto& candidates = waiting[key_of(op)];
    const LaunchedOperator* launched = candidates.empty() ? nullptr : candidates.front();
    if (launched) candidates.pop_front();
    append_passes(key_of(op), &op, launched, predictor, matches);
  }
  for (const auto& [key, rest] : waiting) {
    for (const LaunchedOperator* launched : rest) {
      append_passes(key, nullptr, launched, predictor, matches);
    }
  }
  for (const LaunchedOperator& launched : all) {
    if (!launched.passes.front().empty()) continue;
    append_passes(launched.key, nullptr, &launched, predictor, matches);
  }
  return matches;
}

}  // namespace tessera
