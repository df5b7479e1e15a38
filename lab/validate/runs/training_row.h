#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "lab/validate/runs/row_rules.h"

namespace tessera {

/// The fields of one row of a file of measured steps; collects what cannot be read.
class TrainingRowReader {
 public:
  TrainingRowReader(const RowFields& fields, std::string where, std::vector<Problem>& problems)
      : fields_(fields), where_(std::move(where)), problems_(problems) {}

  const std::string& where() const { return where_; }
  const RowFields& fields() const { return fields_; }
  /// Empty where nothing is stated.
  std::string text(const std::string& column) const;
  /// Whether the row states something in the column.
  bool states(const std::string& column) const { return !text(column).empty(); }
  /// A count from 1 to 10^9; `missing` (if above 0) where the field is empty.
  std::int64_t count(const std::string& column, std::int64_t missing = 0) const;
  /// A count; 0 where nothing or 0 is stated.
  std::int64_t size(const std::string& column) const;
  /// A number above 0, at most 10^12.
  double positive(const std::string& column) const;
  /// 1 or 0; none where the field is empty.
  std::optional<bool> flag(const std::string& column) const;
  /// The words between blanks.
  std::vector<std::string> words(const std::string& column) const;

  /// Once of each field.
  void complain(const std::string& column, const char* hint) const;

 private:
  const RowFields& fields_;
  std::string where_;
  std::vector<Problem>& problems_;
};

}  // namespace tessera
