#include <algorithm>

#include "sim/remat/tessera/anneal.h"
#include "sim/remat/tessera/matrix_moves.h"
#include "sim/remat/tessera/plan_evaluator.h"

namespace tessera::remat {
namespace {

constexpr double kLastHybridTemperature = 1e-5;  ///< of the base time
constexpr int kHybridSteps = 100;
/// Of the mean price of a byte over the budget.
constexpr double kFirstHybridPenalty = 10;
constexpr double kLastHybridPenalty = 40;

template <int Words>
class HybridAnnealer {
 public:
  HybridAnnealer(const Graph& graph, ByteCount budget, const HostLink& link, ByteCount host_bytes)
      : graph_(graph),
        host_bytes_(host_bytes),
        link_(link),
        matrix_(graph, budget),
        evaluator_(graph, link_, budget + graph.static_bytes()),
        base_(static_cast<double>(graph.base_time())),
        unit_(4 * base_ /
              (static_cast<double>(std::max<ByteCount>(1, budget)) *
               static_cast<double>(graph.ops() + 1))),
        budget_(budget) {}

  std::optional<StagePlan> run(const HybridAnnealOptions& options) {
    if (options.start) matrix_.load(*options.start);
    Random random(options.seed);
    MatrixMoves<Words> moves(graph_, matrix_, random, budget_);
    const int per_step = std::max(1, options.moves / kHybridSteps);
    const double ratio = portable_log2(kLastHybridTemperature / options.first_temperature);
    const double growth = portable_log2(kLastHybridPenalty / kFirstHybridPenalty);
    measure();
    for (int step = 0; step < kHybridSteps; ++step) {
      const double share = static_cast<double>(step) / (kHybridSteps - 1);
      const double temperature =
          std::max(1e-6, base_ * options.first_temperature * portable_exp2(ratio * share));
      penalty_ = unit_ * kFirstHybridPenalty * portable_exp2(growth * share);
      double before = energy();
      for (int k = 0; k < per_step; ++k) {
        if (!change(moves, random)) continue;
        const Nanoseconds old_time = time_;
        const ByteCount old_host = host_over_;
        matrix_.settle();
        measure();
        const double after = energy();
        if (after > before && random.uniform() >= portable_exp((before - after) / temperature)) {
          matrix_.undo();
          time_ = old_time;
          host_over_ = old_host;
          continue;
        }
        matrix_.accept();
        before = after;
      }
    }
    return best_;
  }

 private:
  static bool change(MatrixMoves<Words>& moves, Random& random) {
    const int kind = random.below(20);
    if (kind < 8) return moves.drop_or_swap();
    if (kind < 14) {
      if (!moves.hold()) return false;
      if (random.below(4) == 0) moves.drop_or_swap();
      return true;
    }
    if (kind < 16) return moves.exchange();
    return moves.flip_fetch();
  }

  double energy() const {
    return static_cast<double>(time_) +
           penalty_ * static_cast<double>(matrix_.excess() + host_over_);
  }

  /// Time with the windows of copies; the compute time alone while the budget is exceeded.
  void measure() {
    host_over_ = 0;
    if (matrix_.excess() > 0) {
      time_ = graph_.base_time() + matrix_.again_time();
      return;
    }
    matrix_.write(plan_);
    const Evaluation cost = evaluator_.evaluate(plan_);
    time_ = cost.time;
    host_over_ = std::max<ByteCount>(0, cost.host_peak - host_bytes_);
    const bool fits = cost.peak <= budget_ + graph_.static_bytes() && host_over_ == 0;
    if (!fits || (best_ && time_ >= best_time_) || !legal()) return;
    best_ = plan_;
    best_time_ = time_;
  }

  bool legal() const {
    return std::all_of(plan_.again.begin(), plan_.again.end(),
                       [&](OpId op) { return graph_.recomputable(op); });
  }

  const Graph& graph_;
  ByteCount host_bytes_;
  std::optional<HostLink> link_;
  StageMatrix<Words> matrix_;
  PlanEvaluator evaluator_;
  double base_, unit_, penalty_ = 0;
  ByteCount budget_, host_over_ = 0;
  Nanoseconds time_ = 0, best_time_ = 0;
  StagePlan plan_;
  std::optional<StagePlan> best_;
};

}  // namespace

std::optional<StagePlan> anneal_hybrid(const Graph& graph, ByteCount budget, const HostLink& link,
                                       ByteCount host_bytes, const HybridAnnealOptions& options) {
  return with_words<std::optional<StagePlan>>(graph, [&](auto words) {
    return HybridAnnealer<decltype(words)::value>(graph, budget, link, host_bytes).run(options);
  });
}

}  // namespace tessera::remat
