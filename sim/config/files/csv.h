#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// A CSV file (RFC 4180: fields may be quoted, "" is a quote) whose first line names the columns.
struct CsvTable {
  struct Row {
    std::size_t line = 0;  ///< in the file, from 1
    std::vector<std::string> fields;
  };

  std::filesystem::path file;
  std::vector<std::string> columns;
  std::vector<Row> rows;  ///< each with as many fields as there are columns

  std::optional<std::size_t> column(const std::string& name) const;
  std::string where(const Row& row) const { return file.string() + ":" + std::to_string(row.line); }
};

/// Throws InputError for a file that is missing, empty, not UTF-8, or has a row with too many or
/// too few fields.
CsvTable read_csv(const std::filesystem::path& file);

/// `text` as a field: quoted where it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

}  // namespace tessera
