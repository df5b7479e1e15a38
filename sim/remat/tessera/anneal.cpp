#include "sim/remat/tessera/anneal.h"

#include <algorithm>
#include <type_traits>

#include "sim/remat/tessera/matrix_moves.h"

namespace tessera::remat {
namespace {

constexpr double kLastTemperature = 1.5e-3;  ///< of the mean time of an operator
constexpr double kLastPenalty = 20;
constexpr int kCoolingSteps = 200;

/// Geometric from `first` to `last` in kCoolingSteps steps.
double cooled(double first, double last, int step) {
  const double share = static_cast<double>(step) / (kCoolingSteps - 1);
  return first * portable_exp2(portable_log2(last / first) * share);
}

/// The time that a plan may not show: an operator that cannot be run again.
bool runs_what_it_must_not(const Graph& graph, const StagePlan& plan) {
  return std::any_of(plan.again.begin(), plan.again.end(),
                     [&](OpId op) { return !graph.recomputable(op); });
}

template <int Words>
std::optional<StagePlan> anneal_in(const Graph& graph, ByteCount budget,
                                   const AnnealOptions& options) {
  StageMatrix<Words> matrix(graph, budget);
  if (options.start) matrix.load(*options.start);
  Random random(options.seed);
  MatrixMoves<Words> moves(graph, matrix, random, budget);
  const auto base = static_cast<double>(graph.base_time());
  const double unit =
      4 * base /
      (static_cast<double>(std::max<ByteCount>(1, budget)) * static_cast<double>(graph.ops() + 1));
  const double mean_time = base / std::max(1, graph.ops());
  std::optional<StagePlan> best;
  Nanoseconds best_time = 0;
  const auto note_best = [&] {
    if (matrix.excess() > 0 || (best && matrix.again_time() >= best_time)) return;
    StagePlan plan;
    matrix.write(plan);
    if (runs_what_it_must_not(graph, plan)) return;
    best = std::move(plan);
    best_time = matrix.again_time();
  };
  note_best();
  const int per_step = std::max(1, options.moves / kCoolingSteps);
  for (int step = 0; step < kCoolingSteps; ++step) {
    const double temperature =
        std::max(1e-6, mean_time * cooled(options.first_temperature, kLastTemperature, step));
    const double penalty = unit * cooled(options.first_penalty, kLastPenalty, step);
    for (int k = 0; k < per_step; ++k) {
      const double before =
          static_cast<double>(matrix.again_time()) + penalty * static_cast<double>(matrix.excess());
      const int kind = random.below(20);
      const bool moved = kind < 9 ? moves.drop() : kind < 18 ? moves.hold() : moves.exchange();
      if (!moved) continue;
      matrix.settle();
      const double after =
          static_cast<double>(matrix.again_time()) + penalty * static_cast<double>(matrix.excess());
      if (after > before && random.uniform() >= portable_exp((before - after) / temperature)) {
        matrix.undo();
        continue;
      }
      matrix.accept();
      if (after < before || !best) note_best();
    }
  }
  return best;
}

}  // namespace

std::optional<StagePlan> anneal(const Graph& graph, ByteCount budget,
                                const AnnealOptions& options) {
  return with_words<std::optional<StagePlan>>(
      graph, [&](auto words) { return anneal_in<decltype(words)::value>(graph, budget, options); });
}

}  // namespace tessera::remat
