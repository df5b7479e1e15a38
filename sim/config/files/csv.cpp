#include "sim/config/files/csv.h"

#include <algorithm>
#include <string_view>

#include <csv.h>

#include "hw/units/input_error.h"
#include "hw/units/plain_text.h"
#include "hw/units/read_file.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

/// Collects what libcsv reports while it walks over a file.
struct RowCollector {
  std::vector<CsvTable::Row> rows;
  CsvTable::Row current{.line = 1, .fields = {}};
  std::size_t line = 1;

  static void on_field(void* text, std::size_t size, void* self) {
    auto& collector = *static_cast<RowCollector*>(self);
    const std::string field(static_cast<const char*>(text), size);
    collector.line += static_cast<std::size_t>(std::count(field.begin(), field.end(), '\n'));
    collector.current.fields.push_back(field);
  }

  /// `terminator` is the byte that ended the row, or -1 at the end of the file.
  static void on_row(int terminator, void* self) {
    auto& collector = *static_cast<RowCollector*>(self);
    if (!collector.current.fields.empty()) collector.rows.push_back(collector.current);
    collector.line += terminator == '\n';
    collector.current = {.line = collector.line, .fields = {}};
  }
};

/// UTF-8 without the mark that spreadsheets put ahead of it.
std::string read_text(const std::filesystem::path& file) {
  std::string text = read_whole_file(file, "give the path of a CSV file");
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  check_utf8(text, file.string());
  return text;
}

std::vector<CsvTable::Row> parse_rows(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  RowCollector collector;
  csv_parser parser;
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL);
  const std::size_t read = csv_parse(&parser, text.data(), text.size(), RowCollector::on_field,
                                     RowCollector::on_row, &collector);
  const int finish = csv_fini(&parser, RowCollector::on_field, RowCollector::on_row, &collector);
  csv_free(&parser);
  if (read != text.size() || finish != 0) {
    throw InputError({file.string() + ":" + std::to_string(collector.line),
                      "has a quote in the wrong place",
                      "quote whole fields and double the quotes inside"});
  }
  return std::move(collector.rows);
}

}  // namespace

std::optional<std::size_t> CsvTable::column(const std::string& name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

CsvTable read_csv(const std::filesystem::path& file) {
  std::vector<CsvTable::Row> rows = parse_rows(file);
  if (rows.empty()) {
    throw InputError({file.string(), "is empty", "the first line has to name the columns"});
  }
  CsvTable table{.file = file, .columns = rows.front().fields, .rows = {}};
  std::vector<Problem> problems;
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    if (row->fields.size() != table.columns.size()) {
      problems.push_back({table.where(*row),
                          "has " + std::to_string(row->fields.size()) +
                              " fields, the header names " + std::to_string(table.columns.size()),
                          "quote fields that hold a comma"});
    }
    table.rows.push_back(std::move(*row));
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return table;
}

std::string csv_field(const std::string& given) {
  const std::string text = spreadsheet_cell(given);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted(2 * text.size() + 2, '\0');
  quoted.resize(csv_write(quoted.data(), quoted.size(), text.data(), text.size()));
  return quoted;
}

}  // namespace tessera
