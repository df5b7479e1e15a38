#include "predictor/measured/kernel_csv.h"

#include <algorithm>

namespace tessera {
namespace {

std::size_t field_end(std::string_view line, std::size_t begin) {
  if (begin < line.size() && line[begin] == '"') {
    std::size_t quote = line.find('"', begin + 1);
    while (quote != std::string_view::npos && quote + 1 < line.size() && line[quote + 1] == '"')
      quote = line.find('"', quote + 2);
    if (quote == std::string_view::npos) return line.size();
    begin = quote;
  }
  return std::min(line.find(',', begin), line.size());
}

}  // namespace

std::filesystem::path kernel_file(const std::filesystem::path& folder, const std::string& name) {
  const auto nested = folder / "kernels" / name;
  return std::filesystem::exists(nested) ? nested : folder / name;
}

CsvFields split_fields(std::string_view line) {
  CsvFields fields;
  for (std::size_t begin = 0; begin <= line.size() && fields.count < fields.values.size();) {
    const std::size_t end = field_end(line, begin);
    std::string_view value = line.substr(begin, end - begin);
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    fields.values[fields.count++] = value;
    begin = end + 1;
  }
  return fields;
}

}  // namespace tessera
