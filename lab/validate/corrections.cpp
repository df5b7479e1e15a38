#include "lab/validate/corrections.h"

#include <map>

#include "hw/units/input_error.h"
#include "lab/validate/row_reader.h"

namespace tessera {

std::filesystem::path corrections_beside(const std::filesystem::path& file) {
  return file.parent_path() / (file.stem().string() + "_corrections" + file.extension().string());
}

void AppliedCorrections::add(const AppliedCorrections& other) {
  if (other.file.empty()) return;
  file = file.empty() ? other.file
                      : file.parent_path() /
                            (file.filename().string() + ", " + other.file.filename().string());
  fields.insert(fields.end(), other.fields.begin(), other.fields.end());
}

AppliedCorrections apply_corrections(const std::filesystem::path& file, CsvTable& table) {
  const CsvTable changes = read_csv(file);
  require_columns(changes, {"id", "column", "value"});
  const auto id = table.column("id");
  if (!id)
    throw InputError({file.string(),
                      "corrects rows by their id, and " + table.file.string() + " has no column id",
                      "add the column, or leave the corrections out (--no-corrections)"});
  std::multimap<std::string, CsvTable::Row*> rows;
  for (CsvTable::Row& row : table.rows) rows.emplace(row.fields[*id], &row);
  AppliedCorrections applied{.file = file, .fields = {}};
  std::vector<Problem> problems;
  for (const CsvTable::Row& change : changes.rows) {
    RowReader reader(changes, change, problems);
    const auto column = table.column(reader.text("column"));
    const auto [first, last] = rows.equal_range(reader.text("id"));
    if (!column) reader.complain("column", "name a column of " + table.file.string());
    if (first == last) reader.complain("id", "name a row of " + table.file.string());
    if (!column) continue;
    for (auto row = first; row != last; ++row) {
      std::string& field = row->second->fields[*column];
      applied.fields.push_back({reader.text("id"), reader.text("column"), field,
                                reader.text("value"), reader.text("reason")});
      field = reader.text("value");
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return applied;
}

}  // namespace tessera
