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

/// Moves that make a plan faster, or nearer to its budget, or by chance neither.
template <int Words>
class Annealing {
 public:
  Annealing(const Graph& graph, ByteCount budget, const AnnealOptions& options)
      : graph_(graph),
        matrix_(graph, budget),
        random_(options.seed),
        moves_(graph, matrix_, random_, budget) {
    if (options.start) matrix_.load(*options.start);
    const auto base = static_cast<double>(graph.base_time());
    unit_ = 4 * base /
            (static_cast<double>(std::max<ByteCount>(1, budget)) *
             static_cast<double>(graph.ops() + 1));
    mean_time_ = base / std::max(1, graph.ops());
    note_best();
  }

  void cool(const AnnealOptions& options) {
    const int per_step = std::max(1, options.moves / kCoolingSteps);
    for (int step = 0; step < kCoolingSteps; ++step) {
      const double temperature =
          std::max(1e-6, mean_time_ * cooled(options.first_temperature, kLastTemperature, step));
      const double penalty = unit_ * cooled(options.first_penalty, kLastPenalty, step);
      for (int k = 0; k < per_step; ++k) move(temperature, penalty);
    }
  }

  std::optional<StagePlan> best() && { return std::move(best_); }

 private:
  double cost(double penalty) const {
    return static_cast<double>(matrix_.again_time()) +
           penalty * static_cast<double>(matrix_.excess());
  }

  void move(double temperature, double penalty) {
    const double before = cost(penalty);
    const int kind = random_.below(20);
    if (!(kind < 9 ? moves_.drop() : kind < 18 ? moves_.hold() : moves_.exchange())) return;
    matrix_.settle();
    const double after = cost(penalty);
    if (after > before && random_.uniform() >= portable_exp((before - after) / temperature))
      return matrix_.undo();
    matrix_.accept();
    if (after < before || !best_) note_best();
  }

  void note_best() {
    if (matrix_.excess() > 0 || (best_ && matrix_.again_time() >= best_time_)) return;
    StagePlan plan;
    matrix_.write(plan);
    if (runs_what_it_must_not(graph_, plan)) return;
    best_ = std::move(plan);
    best_time_ = matrix_.again_time();
  }

  const Graph& graph_;
  StageMatrix<Words> matrix_;
  Random random_;
  MatrixMoves<Words> moves_;
  double unit_ = 0, mean_time_ = 0;
  std::optional<StagePlan> best_;
  Nanoseconds best_time_ = 0;
};

}  // namespace

std::optional<StagePlan> anneal(const Graph& graph, ByteCount budget,
                                const AnnealOptions& options) {
  return with_words<std::optional<StagePlan>>(graph, [&](auto words) {
    Annealing<decltype(words)::value> annealing(graph, budget, options);
    annealing.cool(options);
    return std::move(annealing).best();
  });
}

}  // namespace tessera::remat
