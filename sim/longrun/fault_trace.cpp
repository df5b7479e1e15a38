#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/files/csv.h"
#include "sim/longrun/failure_file.h"

namespace tessera {
namespace {

constexpr double kMostDays = 36'600;
constexpr double kMostNodes = 1e6;

std::size_t needed_column(const CsvTable& table, const char* name) {
  if (const auto column = table.column(name)) return *column;
  throw InputError({table.file.string(), std::string("has no column ") + name,
                    "a record of faults has node, start_day and end_day"});
}

double number_of(const CsvTable& table, const CsvTable::Row& row, std::size_t column, double most) {
  const std::string& text = row.fields[column];
  try {
    const double number = parse_ratio(text);
    if (number <= most) return number;
  } catch (const InputError& error) {
    throw InputError({table.where(row),
                      table.columns[column] + " = " + error.problems().front().what,
                      "write a number"});
  }
  throw InputError({table.where(row), table.columns[column] + " = " + text + " is too large",
                    "give at most " + std::to_string(static_cast<std::int64_t>(most))});
}

Micros date_of(double days) {
  return to_micros(Seconds(days * 86'400));
}

}  // namespace

std::vector<RecordedFault> read_fault_trace(const std::filesystem::path& file, int nodes) {
  const CsvTable table = read_csv(file);
  const std::size_t node = needed_column(table, "node");
  const std::size_t begin = needed_column(table, "start_day");
  const std::size_t end = needed_column(table, "end_day");
  auto cause = table.column("component");
  if (!cause) cause = table.column("description");
  if (table.rows.empty())
    throw InputError({file.string(), "has no rows", "give a line for each fault"});
  std::vector<RecordedFault> faults;
  for (const CsvTable::Row& row : table.rows) {
    RecordedFault fault{.node = static_cast<int>(number_of(table, row, node, kMostNodes)),
                        .cause = cause ? row.fields[*cause] : "fault",
                        .begin = date_of(number_of(table, row, begin, kMostDays)),
                        .end = date_of(number_of(table, row, end, kMostDays))};
    if (fault.end < fault.begin)
      throw InputError({table.where(row), "ends before it starts", "check start_day and end_day"});
    if (fault.node < nodes) faults.push_back(std::move(fault));
  }
  std::ranges::stable_sort(faults, {}, &RecordedFault::begin);
  return faults;
}

}  // namespace tessera
