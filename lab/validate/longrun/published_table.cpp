#include "lab/validate/longrun/published_table.h"

#include <cstdlib>

#include "hw/units/input_error.h"

namespace tessera {

const std::string& PublishedTable::text(const CsvTable::Row& row, const std::string& column) const {
  const auto at = table_.column(column);
  if (!at)
    throw InputError({table_.file.string() + ":1", "has no column '" + column + "'", "add it"});
  return row.fields[*at];
}

double PublishedTable::number(const CsvTable::Row& row, const std::string& column) const {
  const std::string& field = text(row, column);
  char* end = nullptr;
  const double value = std::strtod(field.c_str(), &end);
  if (end == field.c_str() || *end != '\0')
    throw InputError(
        {table_.where(row), column + " = '" + field + "' is no number", "correct the row"});
  return value;
}

const CsvTable::Row& PublishedTable::find(const std::string& column, const std::string& value,
                                          const std::string& other,
                                          const std::string& other_value) const {
  for (const CsvTable::Row& row : rows())
    if (text(row, column) == value && text(row, other) == other_value) return row;
  throw InputError(
      {table_.file.string(),
       "has no row with " + column + " = " + value + " and " + other + " = " + other_value,
       "add it"});
}

}  // namespace tessera
