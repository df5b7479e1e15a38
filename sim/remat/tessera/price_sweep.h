#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/remat/stage_plan.h"

namespace tessera::remat {

/// What makes tensors stay, go to the host, or be computed again.
struct Prices {
  /// Price of holding one byte through stage t [ns/B]; ops + 1 values.
  std::vector<double> stage;
  /// Share of the price of the longer life of its inputs that computing an operator again is
  /// charged, 0..1. Below 1 groups that share an input are computed again together.
  double extension = 1;
  /// Shares of a copy's time that are charged though it is hidden: the price of the channels.
  double copy_out = 0, copy_in = 0;
  bool recompute = true;
  bool swap = false;
};

/// Decodes prices into a plan in one reverse sweep over the operators: when an operator's turn
/// comes, all uses of its outputs are known, those by operators that run again included. Between
/// two uses the cheapest of holding, copying and running again is taken; the price of running again
/// includes, recursively, that of its inputs. O(ops + edges + runs + recursion).
class PriceSweep {
 public:
  explicit PriceSweep(const Graph& graph);

  /// `times`: operator times, possibly perturbed [ns]. `link` (the same in all calls) and `clock`
  /// (starts of stages, ops + 2 values) where `prices.swap`.
  void decode(const Prices& prices, const std::vector<double>& times, const HostLink* link,
              const std::vector<Nanoseconds>* clock, StagePlan& plan);

 private:
  struct Use {
    Stage stage;
    TensorId tensor;
  };
  struct Memo {
    std::int64_t query = 0;
    double value = 0, limit = 0;
  };

  void start(const Prices& prices, StagePlan& plan);
  /// The last stage that reads `q`, reruns included; that of its producer where none does.
  Stage last_use(TensorId q) const;
  /// Whether holding the outputs of `op` up to their last uses costs no more than running it once,
  /// and no copy can cost less: nothing else comes into question then.
  bool holding_is_cheapest(OpId op) const;
  void hold_outputs(OpId op, StagePlan& plan);
  void collect_uses(OpId op);
  struct Live;
  /// Of holding `q` from its last use to stage `t`, or of copying it out and back.
  double stay_cost(TensorId q, const Live& live, Stage t) const;
  /// Takes the cheaper of the two.
  void carry_on(TensorId q, Live& live, Stage t);
  bool better_run_again(OpId op, Stage t, double stay);
  void decide(OpId op, StagePlan& plan);
  void run_again(OpId op, Stage t);
  void flush_runs(OpId op, StagePlan& plan);
  void order_again(StagePlan& plan);
  double hold(TensorId q, Stage from, Stage to) const {
    if (is_away(q, from, to)) return std::numeric_limits<double>::infinity();
    return static_cast<double>(graph_.size(q)) * (prefix_[to] - prefix_[from + 1]);
  }
  /// Not on the device when the rest of the step begins, between the two stages.
  bool is_away(TensorId q, Stage from, Stage to) const {
    return graph_.gone(q) && from < graph_.done() && to >= graph_.done();
  }
  /// Of the channels that a copy takes; no copy costs less than that.
  double channel_cost(TensorId q, bool hosted) const {
    return static_cast<double>(copy_times_[q]) *
           ((hosted ? 0.0 : prices_->copy_out) + prices_->copy_in);
  }
  double swap_cost(TensorId q, Stage made, Stage from, Stage to) const;
  double again_cost(OpId op, Stage t, double limit, int depth);
  double use_cost(TensorId q, Stage t, double limit, int depth);
  /// Last use before t (or birth) and first use from t on (or -1).
  void neighbours(TensorId q, Stage t, Stage& before, Stage& after) const;

  const Graph& graph_;
  const Prices* prices_ = nullptr;
  const std::vector<double>* times_ = nullptr;
  const std::vector<Nanoseconds>* clock_ = nullptr;
  std::vector<Nanoseconds> copy_times_;  ///< by tensor, once there was a link
  std::vector<double> prefix_;
  std::vector<std::vector<Stage>> extra_;  ///< by tensor: uses by operators that run again
  std::vector<TensorId> touched_;
  std::vector<Use> uses_;
  struct Live {
    Stage made, last;
    bool hosted;
    std::vector<Run> runs;
  };
  std::vector<Live> live_;  ///< of the outputs of one operator
  std::vector<Memo> memo_;
  std::int64_t query_ = 0;
  int nodes_ = 0;
  struct Again {
    Stage stage;
    OpId op;
  };
  std::vector<Again> again_;
};

}  // namespace tessera::remat
