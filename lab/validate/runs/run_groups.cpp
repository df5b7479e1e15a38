#include "lab/validate/runs/run_groups.h"

#include <map>
#include <utility>

namespace tessera {
namespace {

/// Whether the job ran, as far as the row says.
std::optional<bool> did_run(const TrainingRun& run) {
  if (run.outcome == RunOutcome::out_of_memory) return false;
  if (run.outcome == RunOutcome::ran || run.step_time || run.peak_memory_gib) return true;
  return std::nullopt;
}

/// "one GPU", "tp", "tp+dp", ...
std::string parallelism_of(const ParallelLayout& layout) {
  std::string text;
  const auto add = [&](int size, const char* name) {
    if (size > 1) text += (text.empty() ? "" : "+") + std::string(name);
  };
  add(layout.tensor, "tp");
  add(layout.pipeline, "pp");
  add(layout.data, "dp");
  return text.empty() ? "one GPU" : text;
}

bool is_one_node(const TrainingRun& run) {
  return run.n_gpus <= run.gpus_per_node;
}

std::string size_of(const TrainingRun& run) {
  if (run.n_gpus == 1) return "1 GPU";
  if (is_one_node(run)) return "2 to 8 GPUs, one node";
  return run.n_gpus <= 64 ? "up to 64 GPUs" : "more than 64 GPUs";
}

std::string mfu_of(double mfu) {
  constexpr double kHigh = 0.30, kLow = 0.15;
  if (mfu >= kHigh) return "30 % and more";
  return mfu >= kLow ? "15 to 30 %" : "below 15 %";
}

constexpr double kSound = 0.7;  ///< of the promised all-reduce

/// Between nodes, as far as the job measured it.
std::string fabric_of(const TrainingRunScore& row) {
  if (is_one_node(row.run)) return "one node";
  if (!row.fabric_share) return "not measured";
  constexpr double kHalf = 0.35, kTenth = 0.1;
  if (*row.fabric_share >= kSound) return "70 % and more of the promised";
  if (*row.fabric_share >= kHalf) return "35 to 70 % of the promised";
  return *row.fabric_share >= kTenth ? "10 to 35 % of the promised" : "below 10 % of the promised";
}

/// Of jobs that timed their all-reduce.
bool is_sound(const TrainingRunScore& row) {
  if (row.run.all_reduce.value() <= 0) return false;
  return is_one_node(row.run) || row.fabric_share.value_or(0) >= kSound;
}

std::string tensor_group_of(const TrainingRun& run) {
  if (run.layout.tensor == 1) return "1";
  return run.layout.tensor <= run.gpus_per_node ? "inside a node" : "over nodes";
}

/// By column, then by value: numbers by size, all else as text.
struct GroupOrder {
  using Group = std::pair<std::string, std::string>;
  static bool is_number(const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  }
  bool operator()(const Group& a, const Group& b) const {
    const bool numbers = is_number(a.second) && is_number(b.second);
    if (a.first != b.first || !numbers || a.second.size() == b.second.size()) return a < b;
    return a.second.size() < b.second.size();
  }
};

}  // namespace

ScoredError scored_error(const TrainingRunScore& row) {
  ScoredError error{.error_pct = *row.error_pct, .covered = {}};
  if (row.interval) error.covered = row.interval->hold(row.run.step_time->value());
  return error;
}

std::string source_name(const TrainingRun& run) {
  return run.source.empty() ? "(no source)" : run.source;
}

void judge(const TrainingRunScore& row, FitVerdicts& verdicts) {
  const auto ran = did_run(row.run);
  if (!row.fits || !ran) return;
  if (*ran) {
    ++verdicts.ran;
    verdicts.ran_found += *row.fits ? 1 : 0;
  } else {
    ++verdicts.out_of_memory;
    verdicts.out_of_memory_found += *row.fits ? 0 : 1;
  }
  if (!row.memory_error_pct) return;
  constexpr double kLess = 0.95;
  ++verdicts.peaks;
  verdicts.fit_in_less += *row.simulated_peak_gib <= kLess * *row.run.peak_memory_gib ? 1 : 0;
}

std::vector<ErrorGroup> group_errors(const std::vector<TrainingRunScore>& rows) {
  std::map<GroupOrder::Group, std::vector<ScoredError>, GroupOrder> errors;
  for (const TrainingRunScore& row : rows) {
    if (!row.error_pct) continue;
    const ScoredError error = scored_error(row);
    const TrainingRun& run = row.run;
    errors[{"gpu", run.gpu}].push_back(error);
    errors[{"framework", run.framework}].push_back(error);
    errors[{"precision", run.precision}].push_back(error);
    errors[{"parallelism", parallelism_of(run.layout)}].push_back(error);
    errors[{"size", size_of(run)}].push_back(error);
    errors[{"profile", row.profile}].push_back(error);
    errors[{"source", source_name(run)}].push_back(error);
    if (row.mfu) errors[{"mfu", mfu_of(*row.mfu)}].push_back(error);
    if (row.mfu && is_sound(row))
      errors[{"mfu on a sound fabric", mfu_of(*row.mfu)}].push_back(error);
    errors[{"fabric", fabric_of(row)}].push_back(error);
    errors[{"tensor", tensor_group_of(run)}].push_back(error);
    errors[{"stages", std::to_string(run.layout.pipeline)}].push_back(error);
  }
  std::vector<ErrorGroup> groups;
  for (auto& [name, values] : errors)
    groups.push_back({name.first, name.second, summarize_scored(values)});
  return groups;
}

std::vector<VerdictGroup> group_verdicts(const std::vector<TrainingRunScore>& rows) {
  std::map<std::string, FitVerdicts> verdicts;
  int out_of_memory = 0;
  for (const TrainingRunScore& row : rows) {
    if (!row.fits || !did_run(row.run)) continue;
    out_of_memory += *did_run(row.run) ? 0 : 1;
    judge(row, verdicts[row.run.model]);
  }
  std::vector<VerdictGroup> groups;
  if (out_of_memory == 0 || verdicts.size() < 2) return groups;
  for (const auto& [model, of_model] : verdicts) groups.push_back({model, of_model});
  return groups;
}

}  // namespace tessera
