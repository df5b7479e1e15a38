#include "lab/validate/power/power_caps.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "hw/power.h"
#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "lab/validate/row_reader.h"
#include "sim/config/files/csv.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

/// Rows of one job by cap.
using Job = std::map<double, CappedRun>;

class CapReader {
 public:
  explicit CapReader(const CsvTable& table) : table_(table) {}

  std::map<std::string, Job> jobs() {
    std::map<std::string, Job> jobs;
    for (const CsvTable::Row& row : table_.rows) {
      CappedRun run{.where = table_.where(row),
                    .gpu = text(row, "gpu"),
                    .job = text(row, "dataset") + " " + text(row, "model") + " batch " +
                           text(row, "batch") + " " + text(row, "optimizer"),
                    .cap = Watts(number(row, "cap_W")),
                    .free_time = {},
                    .free_power = {},
                    .time = Seconds(number(row, "time_per_epoch_s")),
                    .power = Watts(number(row, "mean_power_W")),
                    .idle = {},
                    .predicted_time = {},
                    .predicted_power = {}};
      jobs[run.gpu + " " + run.job].emplace(run.cap.value(), run);
    }
    return jobs;
  }

 private:
  std::string text(const CsvTable::Row& row, const std::string& column) const {
    const auto at = table_.column(column);
    if (!at)
      throw InputError({table_.file.string() + ":1", "has no column '" + column + "'", "add it"});
    return row.fields[*at];
  }
  double number(const CsvTable::Row& row, const std::string& column) const {
    const std::string field = text(row, column);
    char* end = nullptr;
    const double value = std::strtod(field.c_str(), &end);
    if (end == field.c_str() || *end != '\0' || !(value > 0))
      throw InputError({table_.where(row), column + " = '" + field + "' is no positive number",
                        "correct the row"});
    return value;
  }

  const CsvTable& table_;
};

void predict(const PowerCurve& curve, CappedRun& run) {
  const double clock = clock_under_cap(run.idle, run.free_power, run.cap, curve);
  run.predicted_time = run.free_time / clock;
  run.predicted_power =
      run.idle + std::max(Watts(0), run.free_power - run.idle) * dynamic_power_share(clock, curve);
}

CappedRun predicted(CappedRun run, const CappedRun& free, Watts idle) {
  run.free_time = free.time;
  run.free_power = free.power;
  run.idle = idle;
  predict({}, run);
  return run;
}

/// Sum of the mean absolute errors of time and energy, in percent.
double error_of(const PowerCurve& curve, std::vector<CappedRun>& runs) {
  double sum = 0;
  for (CappedRun& run : runs) {
    predict(curve, run);
    sum += std::abs(run.time_error_pct()) + std::abs(run.energy_error_pct());
  }
  return sum / static_cast<double>(runs.size());
}

PowerCurve fitted_curve(std::vector<CappedRun> runs) {
  PowerCurve best;
  double least = std::numeric_limits<double>::infinity();
  for (const double floor : {0.3, 0.4, 0.5, 0.6, 0.7}) {
    for (const double rise : {3.0, 5.0, 7.0, 9.0, 11.0}) {
      for (const double mean : {0.82, 0.85, 0.88, 0.91, 0.94}) {
        const PowerCurve curve{floor, rise, mean};
        const double error = error_of(curve, runs);
        if (error >= least) continue;
        least = error;
        best = curve;
      }
    }
  }
  return best;
}

std::string line_of(const std::string& gpu, const std::vector<const CappedRun*>& runs) {
  std::vector<double> time, energy;
  for (const CappedRun* run : runs) {
    time.push_back(run->time_error_pct());
    energy.push_back(run->energy_error_pct());
  }
  const ErrorSummary of_time = summarize_errors(time), of_energy = summarize_errors(energy);
  return formatted("%-18s %5d  %7.1f %7.1f %7.1f   %7.1f %7.1f %7.1f\n", gpu.c_str(), of_time.n,
                   of_time.mean_abs_error_pct, of_time.max_abs_error_pct, of_time.bias_pct,
                   of_energy.mean_abs_error_pct, of_energy.max_abs_error_pct, of_energy.bias_pct);
}

}  // namespace

std::vector<CappedRun> predict_capped_runs(const std::filesystem::path& file,
                                           const Catalog& catalog) {
  const CsvTable table = read_csv(file);
  std::vector<CappedRun> runs;
  for (const auto& [name, job] : CapReader(table).jobs()) {
    const CappedRun& free = job.rbegin()->second;
    const Watts idle = idle_power(load_gpu(free.gpu, catalog));
    for (const auto& [cap, run] : job)
      if (cap < free.cap.value()) runs.push_back(predicted(run, free, idle));
  }
  return runs;
}

std::vector<CappedRun> predict_by_other_gpus(std::vector<CappedRun> runs) {
  std::set<std::string> gpus;
  for (const CappedRun& run : runs) gpus.insert(run.gpu);
  for (const std::string& gpu : gpus) {
    std::vector<CappedRun> others;
    for (const CappedRun& run : runs)
      if (run.gpu != gpu) others.push_back(run);
    if (others.empty()) continue;
    const PowerCurve curve = fitted_curve(std::move(others));
    for (CappedRun& run : runs)
      if (run.gpu == gpu) predict(curve, run);
  }
  return runs;
}

namespace {

std::string lines_by_gpu(const std::vector<CappedRun>& runs) {
  std::map<std::string, std::vector<const CappedRun*>> by_gpu;
  std::vector<const CappedRun*> all;
  for (const CappedRun& run : runs) {
    by_gpu[run.gpu].push_back(&run);
    all.push_back(&run);
  }
  std::string text;
  for (const auto& [gpu, of] : by_gpu) text += line_of(gpu, of);
  return text + line_of("all", all);
}

}  // namespace

std::string capped_run_table(const std::vector<CappedRun>& runs) {
  return "training under caps of the board power, from the same job under the highest cap\n"
         "error = predicted / measured - 1; the curve of clock and power is one for all GPUs\n\n"
         "                          time [%]                  energy [%]\n"
         "gpu                 rows     mean     max    bias      mean     max    bias\n" +
         lines_by_gpu(runs) + "\nby a curve that is fitted to the other GPU alone\n" +
         lines_by_gpu(predict_by_other_gpus(runs));
}

}  // namespace tessera
