#include "sim/reliability/cluster_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/reliability/failure_source.h"
#include "sim/reliability/node_pool.h"
#include "sim/reliability/replica_set.h"
#include "sim/reliability/run_ledger.h"

namespace tessera {
namespace {

/// A node in service that slows the job or computes wrong, until it is found.
struct BadNode {
  Micros found;
  int node = 0;
  int cause = 0;
  RunLedger::SavedWork clean;  ///< the last checkpoint before
};

class ClusterRun {
 public:
  ClusterRun(const RunPlan& plan, std::uint64_t seed, bool with_timeline)
      : plan_(plan),
        pool_(plan.nodes + plan.spares, plan.nodes, plan.repair_crews),
        failures_(plan.failures, plan.recorded, plan.nodes + plan.spares, seed),
        repairs_(seed, ~std::uint64_t{0}),
        ledger_(plan, with_timeline),
        replicas_(plan.replicas, plan.nodes) {}

  RunRecord run() {
    train();
    while (now_ < plan_.length && !done_) {
      now_ = std::min({activity_end_, write_end_, found_date(), pool_.next_return(),
                       failures_.next_date(), replicas_.next_joining(), plan_.length});
      ledger_.advance(now_, speed());
      if (now_ < plan_.length) handle();
    }
    return ledger_.finish(now_, done_, pool_);
  }

 private:
  bool is_stopped() const {
    return activity_ == Activity::detection || activity_ == Activity::waiting;
  }
  /// Has work that a checkpoint can save, or a bad node spoil.
  bool computes() const {
    return activity_ == Activity::training || activity_ == Activity::checkpoint;
  }

  /// The one thing that happens now and comes first.
  void handle() {
    if (write_end_ == now_) return end_write();
    if (activity_end_ == now_) return end_activity();
    if (pool_.next_return() == now_) return take_node_back();
    if (replicas_.next_joining() == now_) return take_replica_back();
    if (found_date() == now_) return find_bad_node();
    fail(failures_.take());
  }

  void enter(Activity activity, Micros duration) {
    ledger_.enter(activity, cause_);
    activity_ = activity;
    activity_end_ = duration < kLongestTime - now_ ? now_ + duration : kLongestTime;
  }

  RunLedger::Speed speed() const {
    double slowest = 1;
    for (const BadNode& bad : bad_)
      if (pool_.is_in_job(bad.node)) slowest = std::max(slowest, class_of(bad.cause).slowdown);
    const double speed = pace() / slowest;
    return {.all = write_end_ < kLongestTime ? speed / plan_.write_slowdown : speed,
            .without_writes = speed,
            .replicas = replicas_.training()};
  }

  double pace() const {
    const auto training = static_cast<std::size_t>(replicas_.training());
    return plan_.pace_of_replicas.empty() ? replicas_.share() : plan_.pace_of_replicas[training];
  }

  const FailureClass& class_of(int cause) const {
    return plan_.failures.classes[static_cast<std::size_t>(cause)];
  }
  bool is_recorded(int cause) const {
    return cause >= static_cast<int>(plan_.failures.classes.size());
  }

  /// Whole cycles of training and checkpoint in which nothing else can happen, in one go. What
  /// follows is the same as without.
  void skip_cycles() {
    const bool plain = plan_.write.value() == 0 && plan_.memory_interval.value() == 0 &&
                       plan_.local_interval.value() == 0 && plan_.full_every == 1;
    if (!plain || !ledger_.can_skip() || ledger_.since_checkpoint().value() > 0) return;
    if (wants_to_grow_) return;
    const Micros next = std::min({found_date(), pool_.next_return(), failures_.next_date(),
                                  replicas_.next_joining(), plan_.length, kLongestTime});
    const Micros cycle = plan_.interval + plan_.checkpoint;
    std::int64_t cycles = ((next - now_).value() - 1) / cycle.value();
    if (plan_.work.value() > 0)
      cycles =
          std::min(cycles, ((plan_.work - ledger_.useful()).value() - 1) / plan_.interval.value());
    if (cycles <= 1) return;
    ledger_.skip(cycles, speed());
    now_ += cycle * cycles;
  }

  void train() {
    skip_cycles();
    Micros until = plan_.interval - std::min(plan_.interval, ledger_.since_checkpoint());
    if (write_end_ < kLongestTime) until = std::max(until, write_end_ - now_);
    until = std::min({until, time_until_copy(CheckpointPlace::memory, plan_.memory_interval),
                      time_until_copy(CheckpointPlace::drives, plan_.local_interval)});
    if (plan_.work.value() > 0)
      until = std::min(until, ledger_.time_until(plan_.work, speed().all));
    enter(Activity::training, until);
  }

  void end_activity() {
    switch (activity_) {
      case Activity::training:
        return end_training();
      case Activity::checkpoint:
        return end_checkpoint();
      case Activity::detection:
        return trains_on_ ? train() : assemble();
      default:
        return train();
    }
  }

  void end_training() {
    if (plan_.work.value() > 0 && ledger_.useful() >= plan_.work) {
      done_ = true;
    } else if (write_end_ == kLongestTime && ledger_.since_checkpoint() >= plan_.interval) {
      begin_checkpoint(CheckpointPlace::storage);
    } else if (time_until_copy(CheckpointPlace::memory, plan_.memory_interval).value() == 0) {
      begin_checkpoint(CheckpointPlace::memory);
    } else if (time_until_copy(CheckpointPlace::drives, plan_.local_interval).value() == 0) {
      begin_checkpoint(CheckpointPlace::drives);
    } else {
      train();
    }
  }

  /// Of training, until a copy in `place` is due that is made every `interval`; 0: of none.
  Micros time_until_copy(CheckpointPlace place, Micros interval) const {
    if (interval.value() == 0) return kLongestTime;
    return interval - std::min(interval, ledger_.since_checkpoint(place));
  }

  bool is_increment() const { return increments_ >= 0 && increments_ + 1 < plan_.full_every; }

  void begin_checkpoint(CheckpointPlace place) {
    place_ = place;
    ledger_.snapshot();
    if (place == CheckpointPlace::memory)
      return enter(Activity::checkpoint, plan_.memory_checkpoint);
    if (place == CheckpointPlace::drives)
      return enter(Activity::checkpoint, plan_.local_checkpoint);
    enter(Activity::checkpoint, is_increment() ? plan_.increment : plan_.checkpoint);
  }

  void end_checkpoint() {
    const bool in_storage = place_ == CheckpointPlace::storage;
    const Micros write = is_increment() ? plan_.increment_write : plan_.write;
    ledger_.end_checkpoint(place_, write.value() > 0);
    if (in_storage && write.value() > 0) write_end_ = now_ + write;
    if (in_storage) increments_ = is_increment() ? increments_ + 1 : 0;
    if (stops_behind_checkpoint_ || (wants_to_grow_ && in_storage)) {
      stops_behind_checkpoint_ = wants_to_grow_ = false;
      return assemble();
    }
    train();
  }

  void end_write() {
    write_end_ = kLongestTime;
    ledger_.end_write();
    if (activity_ == Activity::training) train();
  }

  void take_node_back() {
    if (!pool_.take_return()) return;
    if (activity_ == Activity::waiting) return assemble();
    if (plan_.replica_wise) return fill_replicas();
    const int nodes = std::min(plan_.nodes, pool_.in_job() + pool_.idle());
    if (replicas_.on(nodes) > replicas_.training()) wants_to_grow_ = true;
  }

  Micros found_date() const {
    Micros first = kLongestTime;
    for (const BadNode& bad : bad_) first = std::min(first, bad.found);
    return first;
  }

  void find_bad_node() {
    const auto found = std::ranges::find(bad_, now_, &BadNode::found);
    const BadNode bad = *found;
    const FailureClass& of = class_of(bad.cause);
    if (of.stays && of.repair.value() > 0 && pool_.is_in_job(bad.node)) {
      found->found = kLongestTime;  // known, and taken out with the next stop
      return settle_speed();
    }
    bad_.erase(found);
    if (of.is_silent()) return stop_and_go_back(bad);
    if (of.repair.value() == 0 || !pool_.is_in_job(bad.node)) return settle_speed();
    take_out(bad.cause, bad.node);
    stop(bad.cause, 1, Seconds(0));
  }

  /// The end of training depends on the speed where the work has an end.
  void settle_speed() {
    if (activity_ == Activity::training) train();
  }

  void take_out(int cause, int node) {
    if (class_of(cause).repair.value() == 0) return;
    std::erase_if(bad_, [&](const BadNode& bad) {
      return bad.node == node && !class_of(bad.cause).is_silent();
    });
    pool_.take_out(node, now_, to_micros(repairs_.exponential(class_of(cause).repair)));
  }

  void fail(const FailureEvent& event) {
    if (is_recorded(event.cause)) return fail_as_recorded(event);
    const FailureClass& of = class_of(event.cause);
    const int first = event.node / of.takes_nodes * of.takes_nodes;
    const int end = std::min(first + of.takes_nodes, pool_.size());
    bool meets_job = false, meets_any = false;
    for (int node = first; node < end; ++node) {
      meets_job = meets_job || pool_.is_in_job(node);
      meets_any = meets_any || !pool_.is_out(node);
    }
    if (!meets_any) return;
    ledger_.count_event(event.cause);
    if (of.is_slow() || of.is_silent()) return go_bad(event.cause, event.node);
    for (int node = first; node < end; ++node) take_out(event.cause, node);
    const bool stops = !plan_.replica_wise || of.repair.value() == 0;
    if (of.announced && computes() && meets_job && stops)
      return stop_behind_checkpoint(event.cause);
    if (meets_job) stop(event.cause, of.takes_nodes, of.detection);
  }

  void fail_as_recorded(const FailureEvent& event) {
    const bool meets_job = pool_.is_in_job(event.node);
    if (!pool_.is_out(event.node)) ledger_.count_event(event.cause);
    pool_.take_out_until(event.node, now_, event.recorded_end);
    if (meets_job) stop(event.cause, 1, to_seconds(plan_.recorded_detection));
  }

  void go_bad(int cause, int node) {
    const FailureClass& of = class_of(cause);
    if (of.is_silent() && (!pool_.is_in_job(node) || !computes())) return;
    if (!pool_.is_in_job(node)) return take_out(cause, node);
    const Micros hidden = to_micros(of.is_silent() ? of.found_after : of.detection);
    bad_.push_back({now_ + std::max(Micros(1), hidden), node, cause, ledger_.stored()});
    if (of.is_silent()) return;
    ledger_.blame_slowness(cause);
    settle_speed();
  }

  /// Whatever the job does meanwhile, what it has is wrong.
  void stop_and_go_back(const BadNode& bad) {
    if (pool_.is_in_job(bad.node)) take_out(bad.cause, bad.node);
    cause_ = bad.cause;
    if (!is_stopped()) ledger_.count_stop(bad.cause);
    ledger_.roll_back_to(bad.clean, bad.cause);
    write_end_ = kLongestTime;
    stops_behind_checkpoint_ = false;
    assemble();
  }

  void stop_behind_checkpoint(int cause) {
    cause_ = cause;
    ledger_.count_stop(cause);
    stops_behind_checkpoint_ = true;
    if (activity_ == Activity::checkpoint) return;
    write_end_ = kLongestTime;  // the newer one takes the place of what was being written
    begin_checkpoint(CheckpointPlace::storage);
  }

  /// `nodes` of the job have failed.
  void stop(int cause, int nodes, Seconds detection) {
    if (is_stopped() && !trains_on_) return;
    if (plan_.replica_wise && drop_replicas(nodes)) return train_on(cause, detection);
    cause_ = cause;
    trains_on_ = false;
    ledger_.count_stop(cause);
    const bool keeps_nodes = !is_recorded(cause) && class_of(cause).repair.value() == 0;
    ledger_.roll_back(cause, keeps_nodes, nodes == 1);
    write_end_ = kLongestTime;
    stops_behind_checkpoint_ = false;
    if (detection.value() > 0) return enter(Activity::detection, to_micros(detection));
    assemble();
  }

  /// Without the replicas that `nodes` nodes belong to. False where too few would be left.
  bool drop_replicas(int nodes) {
    const bool can_go_on = computes() || (activity_ == Activity::detection && trains_on_);
    return can_go_on && replicas_.drop(nodes, plan_.least_replicas);
  }

  void train_on(int cause, Seconds detection) {
    cause_ = cause;
    trains_on_ = true;
    ledger_.count_drop(cause);
    ledger_.blame_slowness(cause);
    fill_replicas();
    const Micros known = now_ + to_micros(detection);
    replicas_.delay(known + plan_.restart);
    if (detection.value() > 0) return enter(Activity::detection, to_micros(detection));
    train();
  }

  void fill_replicas() {
    pool_.fill_job(plan_.nodes);
    replicas_.join(pool_.in_job(), now_ + plan_.restart);
  }

  void take_replica_back() {
    replicas_.take_back();
    settle_speed();
  }

  /// Slow nodes that are known and were kept.
  void take_out_known() {
    std::vector<BadNode> known;
    for (const BadNode& bad : bad_)
      if (bad.found == kLongestTime && pool_.is_in_job(bad.node)) known.push_back(bad);
    for (const BadNode& bad : known) take_out(bad.cause, bad.node);
  }

  /// Takes what nodes there are, and starts with them or waits.
  void assemble() {
    take_out_known();
    pool_.fill_job(plan_.nodes);
    const int possible = replicas_.on(pool_.in_job());
    trains_on_ = false;
    const bool goes_on_with_less = plan_.elastic || plan_.replica_wise;
    const bool enough =
        pool_.in_job() == plan_.nodes || (goes_on_with_less && possible >= plan_.least_replicas);
    if (!enough) return enter(Activity::waiting, kLongestTime);
    replicas_.start(possible);
    wants_to_grow_ = false;
    if (!replicas_.whole()) {
      ledger_.blame_slowness(cause_);
      pool_.shrink_job(replicas_.nodes_of(possible));
    }
    enter(Activity::restart, restart_time());
  }

  Micros restart_time() const {
    const Micros increments = plan_.increment_restart * std::max<std::int64_t>(0, increments_);
    if (cause_ >= 0 && !is_recorded(cause_) && class_of(cause_).restart)
      return to_micros(*class_of(cause_).restart) + increments;
    return plan_.restart + increments;
  }

  const RunPlan& plan_;
  NodePool pool_;
  FailureSource failures_;
  RandomStream repairs_;
  RunLedger ledger_;
  Micros now_;
  Activity activity_ = Activity::training;
  Micros activity_end_;
  Micros write_end_ = kLongestTime;  ///< of the checkpoint that is being written beside training
  std::vector<BadNode> bad_;
  ReplicaSet replicas_;
  int cause_ = -1;                                    ///< of the last stop
  CheckpointPlace place_ = CheckpointPlace::storage;  ///< of the checkpoint that is made
  std::int64_t increments_ = -1;  ///< since the last whole one in storage; -1: none
  bool trains_on_ = false;        ///< behind the detection, with the replicas that are left
  bool stops_behind_checkpoint_ = false;
  bool wants_to_grow_ = false;
  bool done_ = false;
};

}  // namespace

std::string_view name_of(Activity activity) {
  constexpr std::array<std::string_view, kActivityCount> kNames = {
      "training", "checkpoint", "detection", "restart", "waiting", "lost"};
  return kNames[static_cast<std::size_t>(activity)];
}

RunRecord simulate_run(const RunPlan& plan, std::uint64_t seed, bool with_timeline) {
  return ClusterRun(plan, seed, with_timeline).run();
}

}  // namespace tessera
