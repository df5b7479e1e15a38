#include "predictor/measured/kernel_csv.h"

#include <algorithm>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"

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

std::string read_kernel_table(const std::filesystem::path& file, const std::string& hint) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string text = read_whole_file(file, hint);
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

void check_header(const std::filesystem::path& file, std::string_view header) {
  const auto refuse = [&](const std::string& what, const char* hint) {
    throw InputError({file.string() + ":1", what, hint});
  };
  if (header.find(',') == header.npos && header.find_first_of(";\t") != header.npos)
    refuse("separates its columns by semicolons or tabs", "save it with commas");
  const CsvFields names = split_fields(header);
  const auto end = names.values.begin() + static_cast<std::ptrdiff_t>(names.count);
  for (auto name = names.values.begin(); name != end; ++name)
    if (!name->empty() && std::find(names.values.begin(), name, *name) != name)
      refuse("names the column " + std::string(*name) + " twice", "remove one of them");
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
