#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/input_error.h"
#include "hw/units/quantity.h"
#include "lab/validate/bad_rows.h"
#include "sim/config/files/csv.h"

namespace tessera {

/// Throws InputError naming every column of `needed` that the table lacks.
void require_columns(const CsvTable& table, const std::vector<std::string>& needed);

enum class TimeUnit : std::uint8_t { milliseconds, microseconds };

/// The fields of one row by column name; collects what cannot be read.
class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvTable::Row& row, std::vector<Problem>& problems)
      : table_(table), row_(row), problems_(problems) {}

  std::string where() const { return table_.where(row_); }
  /// Empty where the column is absent.
  std::string text(const std::string& column) const;
  /// A count from 1 to 10^9; `missing` where that is above 0 and the field empty or absent.
  std::int64_t count(const std::string& column, std::int64_t missing);
  /// A time above 0; nothing where the field is empty or absent.
  std::optional<Seconds> time(const std::string& column, TimeUnit unit);
  /// A time of 0 or more; nothing where the field is empty or absent.
  std::optional<Seconds> time_or_zero(const std::string& column, TimeUnit unit);

  void complain(const std::string& column, const std::string& hint);

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
  std::vector<Problem>& problems_;
};

/// What `read(row, problems)` makes of each row; `fault` is why it cannot be used, empty where it
/// can. Throws InputError with all faults where bad rows are refused.
template <class Run>
std::vector<Run> read_rows(const CsvTable& table, BadRows bad_rows, auto&& read) {
  std::vector<Run> runs;
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    std::vector<Problem> of_row;
    runs.push_back(read(row, of_row));
    runs.back().fault = reason_of(of_row);
    problems.insert(problems.end(), of_row.begin(), of_row.end());
  }
  if (!problems.empty() && bad_rows == BadRows::refuse) throw InputError(std::move(problems));
  return runs;
}

}  // namespace tessera
