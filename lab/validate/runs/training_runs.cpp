#include "lab/validate/runs/training_runs.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "lab/validate/runs/framework_aliases.h"
#include "lab/validate/runs/row_settings.h"
#include "lab/validate/runs/scenario_rows.h"
#include "lab/validate/runs/training_row.h"
#include "lab/validate/runs/training_row_columns.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

constexpr std::array kTrainingColumns{"gpu",     "n_gpus",       "precision",  "family",
                                      "layers",  "hidden",       "heads",      "vocab",
                                      "seq_len", "global_batch", "step_time_s"};

void require_training_columns(const CsvTable& table) {
  std::vector<Problem> problems;
  for (const char* name : kTrainingColumns) {
    if (table.column(name)) continue;
    problems.push_back({table.file.string() + ":1", std::string("has no column ") + name,
                        "add it, or name the scenario that was measured in a column scenario "
                        "(docs/validation.md)"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

Recompute recompute_of(const std::string& word) {
  if (word == "full") return Recompute::full;
  return word == "selective" ? Recompute::selective : Recompute::none;
}

void keep_rows(const RowFilter& filter, CsvTable& table) {
  const auto index = table.column(filter.column);
  if (!index)
    throw InputError({table.file.string() + ":1", "has no column " + filter.column,
                      "filter by one of its columns"});
  std::erase_if(table.rows, [&](const CsvTable::Row& row) {
    const std::string& field = row.fields[*index];
    return std::ranges::none_of(filter.values, [&](const std::string& value) {
      return filter.part ? field.find(value) != std::string::npos : field == value;
    });
  });
}

SkippedRun skipped_run(const TrainingRowReader& row, std::string reason) {
  SkippedRun skipped{row.where(), row.text("id"), row.text("gpu"), std::move(reason)};
  skipped.source = source_of(row);
  skipped.framework = row.text("framework");
  skipped.precision = row.text("precision");
  skipped.model = row.text("model");
  skipped.measured = !row.text("step_time_s").empty();
  return skipped;
}

/// The micro-batch per data-parallel rank: as stated, or as the number of micro-batches says, or
/// all at once.
std::int64_t micro_batch_of(const TrainingRowReader& row, const TrainingRun& run) {
  const std::int64_t per_rank = std::max<std::int64_t>(1, run.global_batch / run.layout.data);
  const std::int64_t parts = row.count("micro_batches", 1);
  const auto micro_batch = row.count("micro_batch", std::max<std::int64_t>(1, per_rank / parts));
  if (row.states("micro_batches") && micro_batch * parts * run.layout.data != run.global_batch)
    row.complain("micro_batches",
                 "micro_batch * micro_batches * dp is not the global batch: correct one of them");
  return micro_batch;
}

/// GPUs of a rack that share NVLink are one node.
void read_domain(const TrainingRowReader& row, TrainingRun& run) {
  run.node_has_nvlink = row.text("nvlink") != "no";
  if (!row.states("nvlink_domain")) return;
  const auto domain = static_cast<int>(row.count("nvlink_domain"));
  if (domain >= run.n_gpus) run.gpus_per_node = run.n_gpus;
  if (domain < run.gpus_per_node && domain < run.n_gpus)
    row.complain("nvlink_domain", "a node of gpus_per_node GPUs is in one domain");
  if (domain < run.n_gpus && domain >= 2 * run.gpus_per_node)
    row.complain("nvlink_domain", "several nodes share NVLink: give gpus_per_node of the domain");
}

void read_machine(const TrainingRowReader& row, TrainingRun& run) {
  run.n_gpus = static_cast<int>(row.count("n_gpus"));
  run.gpus_per_node = static_cast<int>(row.count("gpus_per_node", run.n_gpus));
  if (row.states("inter_node_GBps_per_gpu"))
    run.inter_node = BytesPerSecond(1e9 * row.positive("inter_node_GBps_per_gpu"));
  if (row.states("all_reduce_GBps"))
    run.all_reduce = BytesPerSecond(1e9 * row.positive("all_reduce_GBps"));
  if (row.states("all_gather_GBps"))
    run.all_gather = BytesPerSecond(1e9 * row.positive("all_gather_GBps"));
  read_domain(row, run);
}

/// What rows are listed and grouped by.
void read_facts(const TrainingRowReader& row, TrainingRun& run) {
  run.precision = row.text("precision");
  run.model = row.text("model");
  if (row.text("family") != kImageFamily) {
    run.layers = row.count("layers");
    run.hidden = row.count("hidden");
    run.sequence_length = row.count("seq_len");
  }
  run.layout = layout_of_row(row);
  run.global_batch = row.count("global_batch");
  run.micro_batch = micro_batch_of(row, run);
  run.recompute = recompute_of(row.text("recompute"));
}

TrainingRun read_training_run(const TrainingRowReader& row, const RowMeaning& meaning,
                              const RowRules& rules) {
  TrainingRun run{
      .where = row.where(), .id = row.text("id"), .source = source_of(row), .gpu = row.text("gpu")};
  run.framework = row.text("framework");
  run.year = year_in(row.text("date"));
  read_machine(row, run);
  read_facts(row, run);
  read_measured_figures(row, run);
  run.fields = meaning.fields;
  if (row.states("ddp_bucket_MB")) {
    constexpr double kMiB = 1 << 20;
    run.bucket = Bytes(static_cast<std::int64_t>(kMiB * row.positive("ddp_bucket_MB")));
  }
  run.said = settings_of_row(row, meaning, rules);
  run.settings = row.words("settings");
  run.approximations = meaning.approximations;
  return run;
}

AppliedCorrections correct(const TrainingRunReading& reading, CsvTable& table) {
  if (!reading.correct) return {};
  const std::filesystem::path beside = corrections_beside(table.file);
  if (!reading.corrections && !std::filesystem::exists(beside)) return {};
  return apply_corrections(reading.corrections.value_or(beside), table);
}

[[noreturn]] void refuse_empty(const TrainingRuns& steps, const TrainingRuns& all,
                               const std::string& gpu) {
  if (steps.skipped.empty()) {
    std::set<std::string> ids;
    for (const TrainingRun& run : all.runs) ids.insert(run.gpu);
    for (const SkippedRun& run : all.skipped) ids.insert(run.gpu);
    std::string others;
    for (const std::string& id : ids) others += (others.empty() ? "" : ", ") + id;
    throw InputError({steps.file.string(), "holds no row of " + gpu, "it holds " + others});
  }
  std::vector<Problem> problems;
  for (const SkippedRun& run : steps.skipped)
    problems.push_back({run.where, "cannot be used: " + run.reason, ""});
  throw InputError(std::move(problems));
}

}  // namespace

void read_measured_figures(const TrainingRowReader& row, TrainingRun& run) {
  if (row.states("step_time_s")) run.step_time = Seconds(row.positive("step_time_s"));
  if (row.states("peak_memory_GiB")) {
    run.peak_memory_gib = row.positive("peak_memory_GiB");
    run.memory_metric = row.text("memory_metric");
  }
  if (row.text("memory_rank") == "0") run.peak_rank = PeakRank::first;
  if (row.text("memory_rank") == "last") run.peak_rank = PeakRank::last;
  if (row.text("outcome") == "ok") run.outcome = RunOutcome::ran;
  if (row.text("outcome") == "oom") run.outcome = RunOutcome::out_of_memory;
}

std::string source_of(const TrainingRowReader& row) {
  const std::string source = row.text("source");
  return source.substr(0, source.find(' '));
}

RowFilter parse_row_filter(const std::string& text) {
  const std::size_t sign = text.find_first_of("=~");
  RowFilter filter{.column = text.substr(0, sign)};
  filter.part = sign != std::string::npos && text[sign] == '~';
  for (std::size_t begin = sign; begin != std::string::npos;) {
    const std::size_t end = text.find(',', begin + 1);
    filter.values.push_back(text.substr(begin + 1, end - begin - 1));
    begin = end;
  }
  if (filter.column.empty() || filter.values.empty())
    throw InputError(
        {"--only " + text, "is no filter", "write column=value, column=a,b or column~part"});
  return filter;
}

namespace {

/// Puts the row among those that can be used or those that cannot; what is wrong in it into
/// `problems`.
void add_row(const RowFields& stated, const std::string& where, const RowRules& rules,
             const TrainingRunReading& reading, TrainingRuns& read,
             std::vector<Problem>& problems) {
  const RowMeaning meaning = rules.meaning_of(stated);
  std::vector<Problem> of_row;
  const TrainingRowReader reader(meaning.fields, where, of_row);
  const TrainingRowReader as_written(stated, where, of_row);
  std::string reason = obstacle_of(as_written, meaning, rules, reading.ignored);
  std::optional<TrainingRun> run;
  if (reason.empty()) run = read_training_run(reader, meaning, rules);
  if (!of_row.empty() && reading.bad_rows == BadRows::skip) reason = reason_of(of_row);
  problems.insert(problems.end(), of_row.begin(), of_row.end());
  if (reason.empty())
    read.runs.push_back(std::move(*run));
  else
    read.skipped.push_back(skipped_run(reader, std::move(reason)));
}

void add_job_rows(const CsvTable& table, const RowRules& rules, const TrainingRunReading& reading,
                  TrainingRuns& read, std::vector<Problem>& problems) {
  for (const CsvTable::Row& row : table.rows)
    add_row(stated_fields(table, row), table.where(row), rules, reading, read, problems);
}

/// `ignored` is for columns that nobody knows.
void refuse_known_columns(const std::vector<std::string>& ignored, const RowRules& rules) {
  std::vector<Problem> problems;
  for (const std::string& column : ignored) {
    if (!rules.knows(column)) continue;
    problems.push_back({"--ignore " + column, "is a column that is read: ignoring changes nothing",
                        "leave it out, or take figures out with --corrections (an empty value)"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

TrainingRuns read_training_runs(const std::filesystem::path& file, const RowRules& rules,
                                const TrainingRunReading& reading) {
  refuse_known_columns(reading.ignored, rules);
  CsvTable table = read_csv(file);
  const bool by_scenario = reading.catalog && names_scenarios(table);
  if (!by_scenario) require_training_columns(table);
  TrainingRuns read{.file = file, .text = read_whole_file(file, "give the path of a CSV file")};
  read.corrections = correct(reading, table);
  for (const RowFilter& filter : reading.filters) keep_rows(filter, table);
  if (table.rows.empty())
    throw InputError({file.string(), reading.filters.empty() ? "holds no row" : "holds no such row",
                      reading.filters.empty() ? "measure one with tools/collect" : "relax --only"});
  std::vector<Problem> problems;
  if (by_scenario)
    add_scenario_rows(table, reading, read, problems);
  else
    add_job_rows(table, rules, reading, read, problems);
  if (!problems.empty() && reading.bad_rows == BadRows::refuse)
    throw InputError(std::move(problems));
  return read;
}

TrainingRuns together(std::vector<TrainingRuns> files) {
  TrainingRuns all = std::move(files.front());
  std::set<std::filesystem::path> seen{all.file};
  for (TrainingRuns& next : std::span(files).subspan(1)) {
    if (!seen.insert(next.file).second)
      throw InputError({next.file.string(), "stands twice", "name each file once"});
    all.text += next.text;
    all.runs.insert(all.runs.end(), next.runs.begin(), next.runs.end());
    all.skipped.insert(all.skipped.end(), next.skipped.begin(), next.skipped.end());
    all.corrections.add(next.corrections);
  }
  return all;
}

void leave_out_times(TrainingRuns& runs) {
  for (TrainingRun& run : runs.runs) {
    if (run.step_time) run.outcome = RunOutcome::ran;
    run.step_time.reset();
  }
  for (SkippedRun& run : runs.skipped) run.measured = false;
}

TrainingRuns read_timed_steps(const std::filesystem::path& file, const RowRules& rules,
                              const std::string& gpu, const TrainingRunReading& reading) {
  const TrainingRuns all = read_training_runs(file, rules, reading);
  TrainingRuns steps{.file = all.file, .text = all.text};
  steps.corrections = all.corrections;
  for (const SkippedRun& run : all.skipped) {
    if (run.gpu == gpu) steps.skipped.push_back(run);
  }
  for (const TrainingRun& run : all.runs) {
    if (run.gpu != gpu) continue;
    if (!run.step_time) {
      steps.skipped.push_back({run.where, run.id, run.gpu, "it has no step_time_s"});
    } else {
      steps.runs.push_back(run);
    }
  }
  if (steps.runs.empty()) refuse_empty(steps, all, gpu);
  steps.left_out = static_cast<std::int64_t>(all.runs.size() + all.skipped.size() -
                                             steps.runs.size() - steps.skipped.size());
  return steps;
}

}  // namespace tessera
