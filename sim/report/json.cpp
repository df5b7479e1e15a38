#include "sim/report/json.h"

#include <nlohmann/json.hpp>

#include "sim/report/analysis/rank_list.h"
#include "sim/report/definitions.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "tessera.result/1";

ordered_json optional_number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

double share_of(Seconds part, Seconds step_time) {
  return step_time.value() > 0 ? part / step_time : 0.0;
}

ordered_json provenance_json(const StepReport& report, const Provenance& provenance) {
  return {{"tessera_version", provenance.tessera_version},
          {"predictor", provenance.predictor},
          {"model", provenance.model},
          {"mode", provenance.mode},
          {"framework", provenance.framework},
          {"recompute", provenance.recompute},
          {"gpu", report.gpu},
          {"gpus", report.gpus()},
          {"tensor", report.layout.tensor},
          {"pipeline", report.layout.pipeline},
          {"data", report.layout.data},
          {"micro_batches", report.micro_batches},
          {"link_notes", provenance.link_notes},
          {"precision", name_of(report.precision)},
          {"peak_flops_per_gpu", report.peak_per_gpu.value()}};
}

ordered_json predictor_json(const Provenance& provenance) {
  return {{"form", provenance.predictor},
          {"mode", provenance.predictor_mode},
          {"effect", provenance.predictor_effect},
          {"notes", provenance.predictor_notes}};
}

ordered_json counted_json(const CountedFlops& counted) {
  return {{"precision", name_of(counted.precision)},
          {"other_precisions_share", counted.other_precisions},
          {"winograd_share", counted.winograd}};
}

ordered_json breakdown_json(const StepReport& report) {
  ordered_json breakdown = ordered_json::object();
  for (const TimeCategory category : time_categories()) {
    const Seconds time = report.breakdown[category];
    breakdown[std::string(label_of(category))] = {{"seconds", time.value()},
                                                  {"share", share_of(time, report.step_time)}};
  }
  return breakdown;
}

ordered_json kernel_kinds_json(const StepReport& report) {
  ordered_json kinds = ordered_json::array();
  for (const KernelKindTime& entry : report.kernel_kinds) {
    kinds.push_back({{"kind", label_of(entry.kind)},
                     {"seconds", entry.time.value()},
                     {"share", share_of(entry.time, report.step_time)},
                     {"launches", entry.launches}});
  }
  return kinds;
}

ordered_json segments_json(const StepReport& report) {
  ordered_json segments = ordered_json::array();
  for (const SegmentTime& entry : report.segments) {
    segments.push_back({{"name", entry.name},
                        {"phase", label_of(entry.phase)},
                        {"seconds", entry.time.value()},
                        {"share", share_of(entry.time, report.step_time)},
                        {"runs", entry.runs}});
  }
  return segments;
}

ordered_json memory_json(const MemoryReport& memory) {
  ordered_json ranks = ordered_json::array();
  for (const RankMemory& rank : memory.per_rank) {
    ranks.push_back({{"rank", rank.rank},
                     {"stands_for", rank.stands_for},
                     {"stage", rank.stage},
                     {"static_bytes", rank.static_bytes.value()},
                     {"peak_bytes", rank.peak.value()},
                     {"reserved_bytes", rank.reserved.value()},
                     {"device_bytes", rank.device.value()},
                     {"headroom_bytes", rank.headroom.value()},
                     {"fits", rank.fits}});
  }
  return {{"peak_bytes", memory.peak.value()},
          {"allocated_bytes", memory.peak.value()},
          {"reserved_bytes", memory.reserved.value()},
          {"context_bytes", memory.context.value()},
          {"nccl_bytes", memory.communicators.value()},
          {"device_bytes", memory.device.value()},
          {"capacity_bytes", memory.capacity.value()},
          {"fits", memory.fits},
          {"pressure_copies", memory.pressure_copies},
          {"pressure_bytes", memory.pressure_bytes.value()},
          {"pressure_reruns", memory.pressure_reruns},
          {"pressure_rerun_s", memory.pressure_rerun_time.value()},
          {"per_rank", std::move(ranks)}};
}

ordered_json energy_json(const StepReport& report) {
  if (!report.energy) return nullptr;
  const StepEnergy& energy = *report.energy;
  const double tokens = report.tokens_per_s * report.step_time.value();
  const double samples = report.samples_per_s * report.step_time.value();
  const auto each = [&](double of) {
    return of > 0 ? ordered_json(energy.facility_j / of) : ordered_json(nullptr);
  };
  const auto watts = [](Watts power) {
    return power.value() > 0 ? ordered_json(power.value()) : ordered_json(nullptr);
  };
  return {{"gpus_j", energy.gpus_j},
          {"hosts_j", energy.hosts_j > 0 ? ordered_json(energy.hosts_j) : ordered_json(nullptr)},
          {"host_power_confirmed",
           energy.hosts_j > 0 ? ordered_json(energy.host_is_confirmed) : ordered_json(nullptr)},
          {"switches_j",
           energy.switches_j > 0 ? ordered_json(energy.switches_j) : ordered_json(nullptr)},
          {"facility_j", energy.facility_j},
          {"j_per_token", each(tokens)},
          {"j_per_sample", each(samples)},
          {"mean_gpu_w", energy.mean_gpu.value()},
          {"node_mean_w", energy.node_mean.value()},
          {"node_peak_w", energy.node_peak.value()},
          {"rack_mean_w", watts(energy.rack_mean)},
          {"rack_peak_w", watts(energy.rack_peak)},
          {"clock", energy.clock}};
}

ordered_json straggler_json(const StepReport& report) {
  if (!report.straggler) return nullptr;
  return {{"rank", report.straggler->rank},
          {"waited_gpu_s", report.straggler->waited.value()},
          {"longest_wait_s", report.straggler->longest.value()}};
}

ordered_json folding_json(const StepReport& report) {
  ordered_json refused = ordered_json::array();
  for (const FoldRefusal& refusal : report.folding.refused) {
    refused.push_back({{"fold", refusal.fold}, {"reason", refusal.reason}});
  }
  ordered_json classes = ordered_json::array();
  for (const RankClass& ranks : rank_classes(report.folding)) {
    classes.push_back({{"rank", ranks.rank},
                       {"stands_for", ranks.ranks.size()},
                       {"ranks", rank_list(ranks.ranks)}});
  }
  return {{"simulated_ranks", report.by_rank.size()},
          {"classes", std::move(classes)},
          {"refused", std::move(refused)}};
}

ordered_json interval_json(const StepReport& report) {
  if (!report.interval) return nullptr;
  return {{"level", 0.8},
          {"low_s", report.interval->time.low.value()},
          {"high_s", report.interval->time.high.value()},
          {"gpu_log_sd", report.interval->kernels.gpu},
          {"shape_log_sd", report.interval->kernels.shape}};
}

ordered_json extrapolated_json(const StepReport& report) {
  ordered_json entries = ordered_json::array();
  for (const ExtrapolatedKernels& kernels : report.extrapolated)
    entries.push_back({{"kind", label_of(kernels.kind)},
                       {"input", kernels.input},
                       {"factor", kernels.factor},
                       {"share", kernels.share}});
  return entries;
}

ordered_json definitions_json() {
  return {{"step_time_interval", definitions::kInterval},
          {"mfu", definitions::kMfu},
          {"counted_flops.winograd_share", definitions::kWinograd},
          {"hfu", definitions::kHfu},
          {"bubble_fraction", definitions::kBubbleFraction},
          {"exposed_communication_s", definitions::kExposedCommunication},
          {"exposed_copies_s", definitions::kExposedCopies},
          {"breakdown", definitions::kBreakdown},
          {"breakdown.host", definitions::kHost},
          {"energy", definitions::kEnergy},
          {"memory.peak_bytes", definitions::kPeakMemory},
          {"memory.fits", definitions::kFits}};
}

}  // namespace

std::string json_text(const StepReport& report, const Provenance& provenance,
                      const RunTiming& timing) {
  ordered_json result{
      {"schema", kSchema},
      {"scenario", provenance.scenario},
      {"approximations", provenance.approximations},
      {"step_time_s", report.step_time.value()},
      {"step_time_interval", interval_json(report)},
      {"tokens_per_s", report.tokens_per_s},
      {"tokens_per_s_per_gpu", report.tokens_per_s_per_gpu},
      {"samples_per_s", report.samples_per_s},
      {"mfu", optional_number(report.mfu)},
      {"hfu", optional_number(report.hfu)},
      {"counted_flops", counted_json(report.counted)},
      {"bubble_fraction", report.bubble_fraction},
      {"exposed_communication_s", report.breakdown.exposed_communication().value()},
      {"exposed_copies_s", report.breakdown.exposed_copies().value()},
      {"breakdown", breakdown_json(report)},
      {"kernel_kinds", kernel_kinds_json(report)},
      {"segments", segments_json(report)},
      {"extrapolated_share", report.extrapolated_share()},
      {"extrapolated", extrapolated_json(report)},
      {"parameters",
       {{"total", provenance.parameters.total}, {"active", provenance.parameters.active}}},
      {"notes", provenance.notes},
      {"memory", memory_json(report.memory)},
      {"energy", energy_json(report)},
      {"straggler", straggler_json(report)},
      {"folding", folding_json(report)},
      {"predictor", predictor_json(provenance)},
      {"provenance", provenance_json(report, provenance)},
      {"definitions", definitions_json()}};
  for (const auto& [name, time] : timing) result["timing_s"][name] = time.value();
  // Names come from the user's files; what is not UTF-8 in them must not make the result
  // unreadable.
  return result.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace tessera
