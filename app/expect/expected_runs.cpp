#include "app/expect/expected_runs.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/config/files/csv.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class RunReader {
 public:
  RunReader(const CsvTable& table, const std::vector<std::string>& overrides,
            const Catalog& catalog)
      : table_(table), overrides_(overrides), catalog_(catalog) {}

  std::vector<ExpectedRun> runs() && {
    check_columns();
    std::vector<ExpectedRun> runs;
    for (const CsvTable::Row& row : table_.rows) runs.push_back(run_of(row));
    if (table_.rows.empty())
      problems_.push_back({table_.file.string(), "has no rows", "give a line for each run"});
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return runs;
  }

 private:
  void check_columns() {
    std::vector<std::string> known = {"scenario", "settings", "step_time_s"};
    for (const TimeCategory category : time_categories()) known.push_back(phase_column(category));
    for (const std::string& column : table_.columns) {
      if (std::ranges::find(known, column) != known.end()) continue;
      problems_.push_back({table_.file.string() + ":1", "column '" + column + "' is unknown",
                           "use scenario, settings, step_time_s and what --record writes"});
    }
    for (const char* needed : {"scenario", "step_time_s"})
      if (!table_.column(needed))
        problems_.push_back(
            {table_.file.string() + ":1", "has no column '" + std::string(needed) + "'", "add it"});
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

  std::string field(const CsvTable::Row& row, const std::string& column) const {
    const auto at = table_.column(column);
    return at ? row.fields[*at] : "";
  }

  /// Nothing where the field is empty.
  std::optional<Seconds> time_in(const CsvTable::Row& row, const std::string& column, bool zero) {
    const std::string text = field(row, column);
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && (value > 0 || (zero && value == 0)) && value < 1e9) return Seconds(value);
    problems_.push_back(
        {table_.where(row), column + " = '" + text + "' is no time", "give seconds, as 0.153"});
    return std::nullopt;
  }

  std::optional<TimeBreakdown> phases_in(const CsvTable::Row& row) {
    std::optional<TimeBreakdown> phases;
    for (const TimeCategory category : time_categories()) {
      const auto time = time_in(row, phase_column(category), true);
      if (!time) continue;
      if (!phases) phases.emplace();
      (*phases)[category] = *time;
    }
    return phases;
  }

  ExpectedRun run_of(const CsvTable::Row& row) {
    ExpectedRun run{.where = table_.where(row),
                    .scenario = field(row, "scenario"),
                    .settings = field(row, "settings"),
                    .step = {},
                    .step_time = time_in(row, "step_time_s", false),
                    .phases = phases_in(row)};
    std::vector<std::string> settings = words_of(run.settings);
    settings.insert(settings.end(), overrides_.begin(), overrides_.end());
    try {
      run.step = load_scenario(run.scenario, settings, catalog_);
    } catch (const InputError& error) {
      for (Problem problem : error.problems()) {
        problem.where = run.where + ": " + problem.where;
        problems_.push_back(std::move(problem));
      }
    }
    return run;
  }

  const CsvTable& table_;
  const std::vector<std::string>& overrides_;
  const Catalog& catalog_;
  std::vector<Problem> problems_;
};

}  // namespace

std::string phase_column(TimeCategory category) {
  return std::string(label_of(category)) + "_s";
}

std::vector<ExpectedRun> read_expected_runs(const std::filesystem::path& file,
                                            const std::vector<std::string>& overrides,
                                            const Catalog& catalog) {
  const CsvTable table = read_csv(file);
  return RunReader(table, overrides, catalog).runs();
}

}  // namespace tessera
