#include <nlohmann/json.hpp>

#include "sim/longrun/run_answer.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

Json figure_json(const SeedFigure& figure) {
  return {{"mean", figure.mean}, {"low", figure.low}, {"high", figure.high}};
}

Json interval_json(const SeedFigure& figure, double factor = 1) {
  return Json::array({figure.low * factor, figure.high * factor});
}

Json losses_json(const std::vector<MeanCauseLoss>& causes) {
  Json all = Json::object();
  for (const MeanCauseLoss& of : causes) all[of.cause] = of.total_h();
  return all;
}

Json causes_json(const std::vector<MeanCauseLoss>& causes) {
  Json all = Json::object();
  for (const MeanCauseLoss& of : causes) {
    all[of.cause] = {{"events", of.events},       {"stops", of.stops},
                     {"hours", of.total_h()},     {"lost_work_h", of.lost_h},
                     {"slow_h", of.slow_h},       {"detection_h", of.detection_h},
                     {"restart_h", of.restart_h}, {"waiting_h", of.waiting_h}};
  }
  return all;
}

Json hours_json(const RunStatistics& runs) {
  return {{"wall", figure_json(runs.wall)},
          {"useful", figure_json(runs.useful)},
          {"slow", figure_json(runs.slow)},
          {"lost", figure_json(runs.lost)},
          {"checkpoint", figure_json(runs.checkpoint)},
          {"detection", figure_json(runs.detection)},
          {"restart", figure_json(runs.restart)},
          {"waiting", figure_json(runs.waiting)}};
}

Json checkpoint_json(const RunAnswer& answer) {
  const CheckpointCost& cost = answer.cost;
  return {{"bytes", cost.bytes.value()},
          {"writers", cost.writers},
          {"bytes_per_gpu", cost.bytes_per_gpu.value()},
          {"to_host_s", cost.to_host.value()},
          {"to_network_s", cost.to_network.value()},
          {"to_storage_s", cost.to_storage.value()},
          {"on_shared_links_s", cost.simulated.value()},
          {"slowest", cost.slowest},
          {"asynchronous", answer.asynchronous},
          {"blocking_s", to_seconds(answer.plan.checkpoint).value()},
          {"written_beside_training_s", to_seconds(answer.plan.write).value()},
          {"write_slowdown", answer.plan.write_slowdown},
          {"local_interval_s", to_seconds(answer.plan.local_interval).value()},
          {"incremental_share", answer.incremental_share},
          {"full_every", answer.plan.full_every},
          {"restore_s", answer.restore.value()}};
}

Json intervals_json(const RunAnswer& answer) {
  Json all = {{"used_s", to_seconds(answer.plan.interval).value()}};
  if (!answer.intervals) return all;
  const IntervalAdvice& advice = *answer.intervals;
  all["mean_time_to_failure_by_rates_h"] = advice.mean_time_to_failure.value() / 3600;
  all["young_s"] = advice.young.value();
  all["daly_s"] = advice.daly.value();
  if (!advice.best) return all;
  all["simulated_best_s"] = to_seconds(advice.best->interval).value();
  all["simulated_best_effective_training_time_ratio"] = advice.best->effective_ratio;
  return all;
}

Json goal_json(const TokenGoal& goal) {
  return {{"tokens", goal.tokens},
          {"hours", goal.hours ? figure_json(*goal.hours) : Json(nullptr)},
          {"hours_without_failures", goal.hours_without_failures},
          {"runs_that_reached_it", goal.reached}};
}

Json trace_json(const ReplayedTrace& trace) {
  return {{"nodes", trace.nodes},
          {"faults", trace.faults},
          {"days", in_hours(trace.length) / 24},
          {"availability", trace.availability()},
          {"lost_node_hours", in_hours(trace.time_out)}};
}

Json timeline_json(const std::vector<ActivitySpan>& timeline) {
  Json all = Json::array();
  for (const ActivitySpan& span : joined_spans(timeline))
    all.push_back({{"begin_s", to_seconds(span.begin).value()},
                   {"end_s", to_seconds(span.end).value()},
                   {"activity", name_of(span.activity)}});
  return all;
}

Json time_to_failure_json(const std::optional<SeedFigure>& hours) {
  return hours ? Json(hours->mean) : Json(nullptr);
}

/// While the job trains.
Json power_json(const RunPower& power) {
  const auto watts = [](Watts of) { return of.value() > 0 ? Json(of.value()) : Json(nullptr); };
  return {{"host_power_confirmed", power.has_hosts ? Json(power.host_is_confirmed) : Json(nullptr)},
          {"node_mean_w", watts(power.node_mean)},
          {"node_peak_w", watts(power.node_peak)},
          {"rack_mean_w", watts(power.rack_mean)},
          {"rack_peak_w", watts(power.rack_peak)}};
}

/// Jobs that train on with fewer replicas.
Json replicas_json(const RunAnswer& answer) {
  Json steps = Json::array();
  for (const StepWithout& of : answer.without)
    steps.push_back({{"replicas", of.left},
                     {"micro_batches", of.micro_batches},
                     {"samples", answer.samples_with(of.left)},
                     {"step_time_s", of.step.value()},
                     {"fits", of.fits}});
  const int least = answer.runs.least_replicas * answer.replicas_together;
  return {{"batch", answer.batch == BatchWithout::kept ? "kept" : "smaller"},
          {"samples", answer.global_batch},
          {"least_samples", answer.samples_with(least)},
          {"replicas", answer.replicas},
          {"least_replicas", least},
          {"leave_together", answer.replicas_together},
          {"micro_batches", answer.micro_batches},
          {"hours_with_fewer", figure_json(answer.runs.fewer)},
          {"steps_with_fewer", std::move(steps)}};
}

/// Until the job is stopped, by cause.
Json detection_json(const RunPlan& plan) {
  Json all = Json::object();
  for (const FailureClass& of : plan.failures.classes) all[of.name] = of.detection.value();
  if (!plan.recorded.empty()) all["recorded faults"] = to_seconds(plan.recorded_detection).value();
  return all;
}

/// What was simulated.
Json job_json(const RunAnswer& answer, const std::string& version) {
  return {{"schema", "tessera.run/1"},
          {"tessera_version", version},
          {"scenario", answer.scenario},
          {"gpu", answer.gpu},
          {"gpus", answer.gpus},
          {"nodes", answer.plan.nodes},
          {"spares", answer.plan.spares},
          {"days", answer.days},
          {"seeds", answer.runs.seeds},
          {"first_seed", answer.first_seed},
          {"policy", answer.policy},
          {"failures", answer.failures},
          {"step_time_s", answer.step_time.value()},
          {"tokens_per_s", answer.tokens_per_s},
          {"samples_per_s", answer.samples_per_s},
          {"fits", answer.fits}};
}

Json figures_json(const RunAnswer& answer) {
  const RunStatistics& runs = answer.runs;
  const double share = answer.goodput_share();
  const auto& failure = runs.hours_to_failure;
  return {{"effective_training_time_ratio", runs.effective_ratio.mean},
          {"effective_training_time_ratio_80", interval_json(runs.effective_ratio)},
          {"goodput", runs.effective_ratio.mean * share},
          {"goodput_80", interval_json(runs.effective_ratio, share)},
          {"goodput_tokens_per_s", runs.effective_ratio.mean * answer.tokens_per_s},
          {"mean_time_to_failure_h", time_to_failure_json(failure)},
          {"mean_time_to_failure_h_80", failure ? interval_json(*failure) : Json(nullptr)},
          {"stops", figure_json(runs.stops)},
          {"checkpoint_s", answer.cost.total().value()},
          {"restart_s", to_seconds(answer.plan.restart).value()},
          {"checkpoint", checkpoint_json(answer)},
          {"checkpoint_interval", intervals_json(answer)},
          {"hours", hours_json(runs)},
          {"lost_by_cause", losses_json(runs.causes)},
          {"causes", causes_json(runs.causes)},
          {"node_availability", runs.node_availability.mean},
          {"node_hours_out", runs.node_hours_out.mean}};
}

}  // namespace

std::string json_text(const RunAnswer& answer, const std::string& version) {
  Json all = job_json(answer, version);
  all.update(figures_json(answer));
  if (answer.spares)
    all["spares_advice"] = {{"mean_nodes_out", answer.spares->mean_out},
                            {"spares_for_99_percent", answer.spares->spares}};
  if (answer.plan.elastic || answer.plan.replica_wise)
    all["fewer_replicas"] = replicas_json(answer);
  all["detection_s"] = detection_json(answer.plan);
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  all["energy_mwh"] = or_null(answer.bill.energy_mwh);
  all["power"] = power_json(answer.bill.power);
  all["dollars"] = or_null(answer.bill.dollars);
  if (!answer.bill.price.empty()) all["price"] = answer.bill.price;
  if (answer.goal) all["time_to_tokens"] = goal_json(*answer.goal);
  if (answer.goal && answer.deadline_days > 0) all["time_to_tokens"]["in_time"] = answer.in_time();
  if (answer.trace) all["fault_trace"] = trace_json(*answer.trace);
  all["notes"] = answer.notes;
  all["timeline"] = timeline_json(answer.timeline);
  return all.dump(2) + "\n";
}

}  // namespace tessera
