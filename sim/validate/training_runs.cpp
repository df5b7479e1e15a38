#include "sim/validate/training_runs.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/validate/csv.h"

namespace tessera {
namespace {

constexpr std::array kTrainingColumns{
    "gpu",   "n_gpus",  "precision", "family", "layers", "hidden",       "heads",      "ffn",
    "vocab", "seq_len", "tp",        "pp",     "dp",     "global_batch", "step_time_s"};

void require_training_columns(const CsvTable& table) {
  std::vector<Problem> problems;
  for (const char* name : kTrainingColumns) {
    if (table.column(name)) continue;
    problems.push_back({table.file.string() + ":1", std::string("has no column ") + name,
                        "the format is that of measurements/training_runs.csv"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

class TrainingRowReader {
 public:
  TrainingRowReader(const CsvTable& table, const CsvTable::Row& row, std::vector<Problem>& problems)
      : table_(table), row_(row), problems_(problems) {}

  std::string text(const std::string& column) const {
    const auto index = table_.column(column);
    return index ? row_.fields[*index] : std::string();
  }

  /// A count from 1 to 10^9; `missing` (if above 0) where the field is empty.
  std::int64_t count(const std::string& column, std::int64_t missing = 0) const {
    const std::string field = text(column);
    if (field.empty() && missing > 0) return missing;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = error == std::errc() && end == field.data() + field.size();
    if (whole && value >= 1 && value <= 1'000'000'000) return value;
    complain(column, "give a whole number from 1 to 1000000000");
    return 1;
  }

  Seconds seconds(const std::string& column) const {
    const std::string field = text(column);
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = error == std::errc() && end == field.data() + field.size();
    if (whole && std::isfinite(value) && value > 0) return Seconds(value);
    complain(column, "give a time in seconds above 0");
    return Seconds(1);
  }

 private:
  void complain(const std::string& column, const char* hint) const {
    problems_.push_back({table_.where(row_), column + " = '" + text(column) + "'", hint});
  }

  const CsvTable& table_;
  const CsvTable::Row& row_;
  std::vector<Problem>& problems_;
};

/// A column with the values that the simulation can express; an empty field always can be.
struct Expressible {
  const char* column;
  std::set<std::string> values;
};
const std::array<Expressible, 12> kExpressible{{{"precision", {"fp32"}},
                                                {"family", {"gpt", "bert"}},
                                                {"gated_mlp", {"0"}},
                                                {"experts", {"0", "1"}},
                                                {"virtual_stages", {"1"}},
                                                {"cp", {"1"}},
                                                {"ep", {"1"}},
                                                {"sequence_parallel", {"0"}},
                                                {"zero_stage", {"0"}},
                                                {"recompute", {"none"}},
                                                {"flash_attention", {"0"}},
                                                {"optimizer", {"adam", "adamw", "Adam", "AdamW"}}}};

/// Why the row cannot be simulated; empty if it can.
std::string obstacle(const TrainingRowReader& row) {
  if (row.text("precision").empty()) return "precision is not stated";
  if (row.text("step_time_s").empty()) return "it has no step_time_s";
  for (const auto& [column, values] : kExpressible) {
    const std::string value = row.text(column);
    if (value.empty() || values.contains(value)) continue;
    const bool precision = std::string(column) == "precision";
    return std::string(column) + " = " + value +
           (precision ? ": the kernel model is fp32 only" : " is not simulated");
  }
  return {};
}

TrainingRun read_training_run(const CsvTable& table, const CsvTable::Row& fields,
                              std::vector<Problem>& problems) {
  const TrainingRowReader row(table, fields, problems);
  TrainingRun run{.where = table.where(fields), .id = row.text("id"), .gpu = row.text("gpu")};
  run.n_gpus = static_cast<int>(row.count("n_gpus"));
  run.gpus_per_node = static_cast<int>(row.count("gpus_per_node", run.n_gpus));
  run.framework = row.text("framework");
  run.precision = row.text("precision");
  run.model = row.text("model");
  run.family = row.text("family");
  run.layers = row.count("layers");
  run.hidden = row.count("hidden");
  run.heads = row.count("heads");
  run.ffn = row.count("ffn", 4 * run.hidden);
  run.vocab = row.count("vocab");
  run.sequence_length = row.count("seq_len");
  run.layout = {.tensor = static_cast<int>(row.count("tp", 1)),
                .pipeline = static_cast<int>(row.count("pp", 1)),
                .data = static_cast<int>(row.count("dp", 1))};
  run.global_batch = row.count("global_batch");
  run.micro_batch =
      row.count("micro_batch", std::max<std::int64_t>(1, run.global_batch / run.layout.data));
  run.step_time = row.seconds("step_time_s");
  return run;
}

std::string whole_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

[[noreturn]] void refuse_empty(const TrainingRuns& read, const CsvTable& table,
                               const std::string& gpu) {
  if (table.rows.empty())
    throw InputError({read.file.string(), "holds no row", "measure one with tools/collect"});
  if (read.skipped.empty()) {
    std::set<std::string> ids;
    for (const auto& row : table.rows) ids.insert(row.fields[*table.column("gpu")]);
    std::string others;
    for (const std::string& id : ids) others += (others.empty() ? "" : ", ") + id;
    throw InputError({read.file.string(), "holds no row of " + gpu, "it holds " + others});
  }
  std::vector<Problem> problems;
  for (const SkippedRun& run : read.skipped)
    problems.push_back({run.where, "cannot be used: " + run.reason, ""});
  throw InputError(std::move(problems));
}

}  // namespace

TrainingRuns read_training_runs(const std::filesystem::path& file, const std::string& gpu) {
  const CsvTable table = read_csv(file);
  require_training_columns(table);
  TrainingRuns read{.file = file, .text = whole_text(file)};
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    const TrainingRowReader reader(table, row, problems);
    if (reader.text("gpu") != gpu) {
      ++read.other_gpus;
    } else if (std::string reason = obstacle(reader); !reason.empty()) {
      read.skipped.push_back({table.where(row), std::move(reason)});
    } else {
      read.runs.push_back(read_training_run(table, row, problems));
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  if (read.runs.empty()) refuse_empty(read, table, gpu);
  return read;
}

}  // namespace tessera
