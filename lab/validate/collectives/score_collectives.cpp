#include "lab/validate/collectives/score_collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hw/units/input_error.h"
#include "lab/validate/collectives/collective_cluster.h"
#include "lab/validate/collectives/collective_fit.h"
#include "sim/collectives/calibration_fit.h"

namespace tessera {
namespace {

constexpr Bytes kBand(4'000'000);

/// NVLS adds floating-point numbers, not bytes.
bool reduces_in_switch(const CollectiveRun& run) {
  return run.dtype.find("int8") == std::string::npos;
}

std::string sweep_of(const CollectiveRun& run) {
  std::string sweep;
  for (const auto& [column, value] : run.columns) {
    const bool varies = column == "bytes" || column == "time_us" || column == "busbw_GBps";
    if (!varies) sweep += value + '\n';
  }
  return sweep;
}

class Planner {
 public:
  explicit Planner(const Catalog& catalog) : topologies_(catalog) {}

  PlannedRun plan(const CollectiveRun& run, std::size_t row) {
    const Topology& topology = topologies_.of(run);
    const CollectiveCall call{
        .kind = run.collective, .bytes = run.bytes, .reduces_in_switch = reduces_in_switch(run)};
    const std::vector<int> ranks = ranks_of_run(run, topology.cluster());
    return {row,          plan_collective(topology, call, ranks),
            run.measured, run.launch,
            run.ranks,    sweep_of(run)};
  }

 private:
  RunTopologies topologies_;
};

void predict(const PlannedRun& run, Seconds predicted, std::vector<ScoredCollective>& rows) {
  ScoredCollective& row = rows[run.row];
  row.predicted = predicted;
  row.error_pct = 100 * (predicted / run.measured - 1);
  row.interval = collective_interval(predicted, row.run.bytes);
  const NcclExpectation& choice = run.plan.ways.front().choice;
  row.algorithm = choice.algorithm;
  row.protocol = choice.protocol;
}

bool is_named(const CollectiveRun& run, const CollectiveScoring& scoring) {
  return std::ranges::all_of(scoring.calibrate_on, [&](const auto& condition) {
    return run.field(condition.first) == condition.second;
  });
}

void check_conditions(const std::vector<CollectiveRun>& runs, const CollectiveScoring& scoring) {
  if (!scoring.calibrate) return;
  for (const auto& condition : scoring.calibrate_on) {
    const std::string& column = condition.first;
    const auto has_column = [&](const auto& entry) { return entry.first == column; };
    const bool known = !runs.empty() && std::ranges::any_of(runs.front().columns, has_column);
    if (!known)
      throw InputError({"--calibrate-on", "no column \"" + column + "\" in the file",
                        "name a column and a value, as system=NAME"});
  }
  const bool any =
      std::ranges::any_of(runs, [&](const CollectiveRun& run) { return is_named(run, scoring); });
  if (!any)
    throw InputError({"--calibrate-on", "no row is like that", "compare with the file's values"});
}

/// Predicts the sweep's rows of one size from its other rows.
void predict_left_out_size(const std::vector<const PlannedRun*>& sweep, Bytes size,
                           const CollectiveConstants& constants,
                           std::vector<ScoredCollective>& rows) {
  std::vector<TimedCollective> others;
  for (const PlannedRun* run : sweep) {
    if (run->plan.call.bytes != size) others.push_back({run->plan, run->measured});
  }
  if (others.empty()) return;
  const CollectiveTuning tuning(constants, {fit_group(others, constants)});
  for (const PlannedRun* run : sweep) {
    if (run->plan.call.bytes != size) continue;
    predict(*run, time_alone(run->plan, tuning), rows);
    rows[run->row].calibrated = true;
  }
}

void leave_sizes_out(const std::vector<PlannedRun>& runs, const CollectiveConstants& constants,
                     std::vector<ScoredCollective>& rows) {
  std::map<std::string, std::vector<const PlannedRun*>> sweeps;
  for (const PlannedRun& run : runs) sweeps[run.sweep].push_back(&run);
  for (const auto& [name, sweep] : sweeps) {
    std::set<Bytes> sizes;
    for (const PlannedRun* run : sweep) sizes.insert(run->plan.call.bytes);
    for (const Bytes size : sizes) predict_left_out_size(sweep, size, constants, rows);
  }
}

/// Fits the constants once per group of rows, to the rows of `fitting` outside of it.
void leave_groups_out(const std::vector<PlannedRun>& all, const std::vector<PlannedRun>& fitting,
                      bool by_gpu, std::vector<ScoredCollective>& rows) {
  const auto group_of = [&](const PlannedRun& run) {
    const CollectiveRun& row = rows[run.row].run;
    return by_gpu ? row.gpu : row.system;
  };
  std::set<std::string> groups;
  for (const PlannedRun& run : all) groups.insert(group_of(run));
  for (const std::string& group : groups) {
    std::vector<PlannedRun> others;
    for (const PlannedRun& run : fitting) {
      if (group_of(run) != group) others.push_back(run);
    }
    const FittedConstants fitted = fit_constants(others, constants_before_fit());
    for (const PlannedRun& run : all) {
      if (group_of(run) != group) continue;
      predict(run, predicted_time(run, fitted.constants, fitted.launch), rows);
      rows[run.row].calibrated = true;
    }
  }
}

std::vector<std::pair<std::string, double>> listed(const FittedConstants& fitted) {
  std::vector<std::pair<std::string, double>> list;
  for (const ConstantName& constant : kConstantNames)
    list.emplace_back(constant.name, fitted.constants.*constant.value);
  list.emplace_back("launch mpi, us", fitted.launch.mpi.value() * 1e6);
  list.emplace_back("launch torch, us", fitted.launch.torch.value() * 1e6);
  list.emplace_back("launch kineto floor, us", fitted.launch.kineto_floor.value() * 1e6);
  list.emplace_back("launch of a GPU by one thread, us",
                    fitted.launch.launch_of_a_gpu.value() * 1e6);
  list.emplace_back("mean |log error|", fitted.mean_log_error);
  return list;
}

ScoredError scored_error(const ScoredCollective& row) {
  return {row.error_pct, row.interval.hold(row.run.measured.value())};
}

/// Errors of the rows by the value that `key` has; rows with an empty one are left out.
template <class Key>
void add_groups(const std::vector<ScoredCollective>& rows, const std::string& by, Key key,
                std::vector<ErrorGroup>& groups) {
  std::map<std::string, std::vector<ScoredError>> errors;
  for (const ScoredCollective& row : rows) {
    if (!row.skipped.empty() || key(row).empty()) continue;
    errors[key(row)].push_back(scored_error(row));
  }
  for (const auto& [value, list] : errors) groups.push_back({by, value, summarize_scored(list)});
}

/// Bus bandwidth at the largest size of each sweep: error of the rate, so of the inverse time.
void add_plateaus(const std::vector<ScoredCollective>& rows, std::vector<ErrorGroup>& groups) {
  constexpr Bytes kPlateau(64'000'000);
  std::map<std::string, const ScoredCollective*> largest;
  for (const ScoredCollective& row : rows) {
    if (!row.skipped.empty() || row.run.bytes < kPlateau) continue;
    const ScoredCollective*& best = largest[sweep_of(row.run)];
    if (best == nullptr || row.run.bytes > best->run.bytes) best = &row;
  }
  std::map<std::string, std::vector<double>> errors;
  for (const auto& [sweep, row] : largest) {
    const double error = 100 * (row->run.measured / row->predicted - 1);
    errors[row->run.system].push_back(error);
    const std::string& confidence = row->run.field("confidence");
    if (!confidence.empty()) errors["all of confidence " + confidence].push_back(error);
  }
  for (auto& [system, list] : errors)
    groups.push_back({"plateau bandwidth", system, summarize_errors(std::move(list))});
}

std::vector<SkippedRow> skipped_rows(const std::vector<ScoredCollective>& rows) {
  std::vector<SkippedRow> skipped;
  for (const ScoredCollective& row : rows) {
    if (!row.skipped.empty())
      skipped.push_back({line_name(row.run.where), row.run.where, row.skipped});
  }
  return skipped;
}

void summarize(CollectiveValidation& validation) {
  std::vector<ScoredError> errors;
  for (const ScoredCollective& row : validation.rows) {
    if (row.skipped.empty()) errors.push_back(scored_error(row));
  }
  validation.summary = summarize_scored(errors);
  const auto band = [](const ScoredCollective& row) { return size_band(row.run.bytes); };
  const auto system = [](const ScoredCollective& row) { return row.run.system; };
  auto& groups = validation.groups;
  add_groups(validation.rows, "band", band, groups);
  add_groups(
      validation.rows, "confidence",
      [](const ScoredCollective& row) { return row.run.field("confidence"); }, groups);
  add_groups(
      validation.rows, "confidence and band",
      [&](const ScoredCollective& row) { return row.run.field("confidence") + ", " + band(row); },
      groups);
  add_groups(
      validation.rows, "collective",
      [](const ScoredCollective& row) { return row.run.field("collective"); }, groups);
  add_groups(
      validation.rows, "gpu", [](const ScoredCollective& row) { return row.run.gpu; }, groups);
  add_groups(validation.rows, "system", system, groups);
  add_groups(
      validation.rows, "system and band",
      [&](const ScoredCollective& row) { return system(row) + ", " + band(row); }, groups);
  add_plateaus(validation.rows, groups);
}

CollectiveConstants constants_of(ConstantsOf which) {
  if (which == ConstantsOf::nccl) return nccl_constants();
  return which == ConstantsOf::unfitted ? constants_before_fit() : CollectiveConstants();
}

std::string basis_of(const CollectiveScoring& scoring) {
  const std::string constants =
      scoring.constants == ConstantsOf::nccl ? "catalog and NCCL's own constants"
      : scoring.constants == ConstantsOf::unfitted
          ? "catalog, NCCL's rules and constants that no measurement has set"
          : "catalog, NCCL's rules and the shipped constants";
  if (!scoring.calibrate) return constants + "; nothing of this file";
  switch (scoring.leave_out) {
    case LeaveOut::size:
      return constants + "; named sweeps calibrated, the predicted size left out";
    case LeaveOut::system:
      return "catalog, NCCL's rules and constants fitted to the named rows of other systems";
    case LeaveOut::gpu:
      return "catalog, NCCL's rules and constants fitted to the named rows of other GPUs";
  }
  return constants;
}

}  // namespace

Bounds collective_interval(Seconds predicted, Bytes bytes) {
  const double width = bytes < kBand ? kMissOfASmallCollective : 0.14;
  return {predicted.value() * std::exp(-width), predicted.value() * std::exp(width)};
}

std::string size_band(Bytes bytes) {
  return bytes < kBand ? "below 4 MB" : "4 MB and more";
}

CollectiveValidation score_collectives(const std::vector<CollectiveRun>& runs,
                                       const CollectiveScoring& scoring, const Catalog& catalog) {
  check_conditions(runs, scoring);
  CollectiveValidation validation{.basis = basis_of(scoring)};
  const CollectiveConstants constants = constants_of(scoring.constants);
  Planner planner(catalog);
  std::vector<PlannedRun> all, named;
  for (const CollectiveRun& run : runs) {
    validation.rows.push_back({.run = run, .skipped = run.fault});
    if (!run.fault.empty()) continue;
    try {
      all.push_back(planner.plan(run, validation.rows.size() - 1));
      if (scoring.calibrate && is_named(run, scoring)) named.push_back(all.back());
    } catch (const InputError& error) {
      validation.rows.back().skipped = without_place(error.problems().front().text(), run.where);
    }
  }
  for (const PlannedRun& run : all)
    predict(run, predicted_time(run, constants, LaunchStyles()), validation.rows);
  const bool by_size = scoring.leave_out == LeaveOut::size;
  if (scoring.calibrate && by_size) leave_sizes_out(named, constants, validation.rows);
  if (scoring.calibrate && !by_size) {
    leave_groups_out(all, named, scoring.leave_out == LeaveOut::gpu, validation.rows);
    validation.fitted_constants = listed(fit_constants(named, constants_before_fit()));
  }
  summarize(validation);
  validation.skipped = skipped_rows(validation.rows);
  return validation;
}

}  // namespace tessera
