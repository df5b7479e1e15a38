#include "lab/validate/models/operator_runs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "lab/validate/row_reader.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

/// Dimensions from 1 to 10^9; their product stays below this, so that sums of bytes fit.
constexpr double kMostElements = 1e15;

std::optional<Sizes> sizes_of(const Json& list) {
  if (!list.is_array()) return std::nullopt;
  Sizes sizes;
  double elements = 1;
  for (const Json& entry : list) {
    if (!entry.is_number_integer()) return std::nullopt;
    const auto size = entry.get<std::int64_t>();
    elements *= static_cast<double>(size);
    if (size < 1 || elements > kMostElements) return std::nullopt;
    sizes.push_back(size);
  }
  return sizes;
}

/// A Python tuple "(2,3)", "(2,)" or a list "[2,3]".
std::optional<Sizes> tuple(std::string text) {
  std::replace(text.begin(), text.end(), '(', '[');
  std::replace(text.begin(), text.end(), ')', ']');
  const std::size_t comma = text.find(",]");
  if (comma != std::string::npos) text.erase(comma, 1);
  return sizes_of(Json::parse(text, nullptr, false));
}

/// A list of lists "[[2,3],[4]]".
std::optional<std::vector<Sizes>> list_of_sizes(const std::string& text) {
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<Sizes> result;
  for (const Json& entry : list) {
    const auto sizes = sizes_of(entry);
    if (!sizes) return std::nullopt;
    result.push_back(*sizes);
  }
  return result;
}

TimedOperator read_operator(RowReader& reader) {
  TimedOperator timed{
      .where = reader.where(),
      .node = reader.text("node"),
      .op = reader.text("op"),
      .inputs = {},
      .output = {},
      .forward = {},
      .backward = reader.time_or_zero("backward_us", TimeUnit::microseconds),
      .gradient_accumulate = reader.time_or_zero("grad_accumulate_us", TimeUnit::microseconds)};
  const auto inputs = list_of_sizes(reader.text("input_shapes"));
  const auto output = tuple(reader.text("output_shape"));
  const auto forward = reader.time("forward_us", TimeUnit::microseconds);
  if (timed.op.empty()) reader.complain("op", "give a function name, or module:PATH");
  if (!inputs) reader.complain("input_shapes", "write lists of sizes from 1 on: [[4,1024],[1]]");
  if (!output) reader.complain("output_shape", "write sizes from 1 on: (4,1024)");
  if (reader.text("forward_us").empty()) {
    reader.complain("forward_us", "give a time in microseconds above 0");
  }
  if (inputs) timed.inputs = *inputs;
  if (output) timed.output = *output;
  if (forward) timed.forward = *forward;
  return timed;
}

ModelRun read_run(RowReader& reader) {
  ModelRun run{.where = reader.where(), .gpu = reader.text("gpu")};
  run.parallelism = "single";
  run.model = reader.text("model");
  run.mode = reader.text("mode");
  run.seq_len = reader.count("seq_len", 0);
  run.batch = reader.count("batch", 0);
  return run;
}

}  // namespace

std::vector<OperatorRun> read_operator_runs(const std::filesystem::path& file, BadRows bad_rows) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"gpu", "model", "mode", "seq_len", "batch", "node", "op", "input_shapes",
                          "output_shape", "forward_us"});
  std::vector<OperatorRun> runs;
  std::map<std::string, std::size_t> known;
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    std::vector<Problem> of_row;
    RowReader reader(table, row, of_row);
    const ModelRun run = read_run(reader);
    const std::string key = run.gpu + '\n' + run.model + '\n' + run.mode + '\n' +
                            std::to_string(run.seq_len) + ' ' + std::to_string(run.batch);
    const auto [entry, is_new] = known.emplace(key, runs.size());
    if (is_new) runs.push_back({.run = run, .operators = {}});
    OperatorRun& whole = runs[entry->second];
    whole.operators.push_back(read_operator(reader));
    if (!of_row.empty() && whole.run.fault.empty())
      whole.run.fault = line_name(reader.where()) + ": " + reason_of(of_row);
    problems.insert(problems.end(), of_row.begin(), of_row.end());
  }
  if (!problems.empty() && bad_rows == BadRows::refuse) throw InputError(std::move(problems));
  return runs;
}

}  // namespace tessera
