#include "sim/validate/model_runs.h"

#include <array>
#include <charconv>
#include <cmath>

#include "hw/units/input_error.h"
#include "sim/validate/csv.h"

namespace tessera {
namespace {

constexpr std::array<const char*, 8> kNeeded{"gpu",  "n_gpus",  "parallelism", "model",
                                             "mode", "seq_len", "batch",       "step_ms"};

void require_columns(const CsvTable& table) {
  std::vector<Problem> problems;
  for (const char* name : kNeeded) {
    if (table.column(name)) continue;
    problems.push_back({table.file.string() + ":1", std::string("has no column ") + name,
                        "needed: gpu, n_gpus, parallelism, model, mode, seq_len, batch, step_ms"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// The fields of one row by column name; collects what cannot be read.
class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvTable::Row& row, std::vector<Problem>& problems)
      : table_(table), row_(row), problems_(problems) {}

  std::string text(const std::string& column) const {
    const auto index = table_.column(column);
    return index ? row_.fields[*index] : std::string();
  }

  /// A count from 1 to 10^9; `missing` where the column is absent or the field empty.
  std::int64_t count(const std::string& column, std::int64_t missing) {
    const std::string field = text(column);
    if (field.empty() && missing > 0) return missing;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = error == std::errc() && end == field.data() + field.size();
    if (whole && value >= 1 && value <= 1'000'000'000) return value;
    complain(column, "give a whole number from 1 to 1000000000");
    return 1;
  }

  /// A positive time; nothing where the field is empty.
  std::optional<Seconds> milliseconds(const std::string& column) {
    const std::string field = text(column);
    if (field.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = error == std::errc() && end == field.data() + field.size();
    if (whole && std::isfinite(value) && value > 0) return Seconds(value * 1e-3);
    complain(column, "give a time in milliseconds above 0, or leave it empty");
    return std::nullopt;
  }

  void complain(const std::string& column, const std::string& hint) {
    problems_.push_back({table_.where(row_), column + " = '" + text(column) + "'", hint});
  }

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
  std::vector<Problem>& problems_;
};

/// "single", or sizes behind tp, pp and dp in any order: "dp4", "tp2pp2". Nothing for anything
/// else.
std::optional<ParallelLayout> layout_of(const std::string& text) {
  ParallelLayout layout;
  if (text == "single") return layout;
  std::size_t position = 0;
  while (position + 2 < text.size()) {
    const std::string kind = text.substr(position, 2);
    int* size = kind == "tp"   ? &layout.tensor
                : kind == "pp" ? &layout.pipeline
                : kind == "dp" ? &layout.data
                               : nullptr;
    if (!size) return std::nullopt;
    const char* begin = text.data() + position + 2;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), *size);
    if (error != std::errc() || *size < 1) return std::nullopt;
    position = static_cast<std::size_t>(end - text.data());
  }
  if (text.empty() || position != text.size()) return std::nullopt;
  return layout;
}

ModelRun read_run(const CsvTable& table, const CsvTable::Row& row, std::vector<Problem>& problems) {
  RowReader reader(table, row, problems);
  ModelRun run{.where = table.where(row), .gpu = reader.text("gpu")};
  run.n_gpus = static_cast<int>(reader.count("n_gpus", 1));
  run.parallelism = reader.text("parallelism");
  run.micro_batches = static_cast<int>(reader.count("micro_batches", 1));
  run.model = reader.text("model");
  run.mode = reader.text("mode");
  run.seq_len = reader.count("seq_len", 0);
  run.batch = reader.count("batch", 0);
  run.measured = reader.milliseconds("step_ms");
  run.published_prediction = reader.milliseconds("neusight_step_ms");
  const auto layout = layout_of(run.parallelism);
  if (layout) run.layout = *layout;
  if (!layout) reader.complain("parallelism", "write single, or sizes such as dp4, tp2pp2");
  return run;
}

}  // namespace

std::vector<ModelRun> read_model_runs(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table);
  std::vector<ModelRun> runs;
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) runs.push_back(read_run(table, row, problems));
  if (!problems.empty()) throw InputError(std::move(problems));
  return runs;
}

}  // namespace tessera
