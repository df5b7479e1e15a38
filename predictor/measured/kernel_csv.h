#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// `name` in a folder of measurements, or in its folder kernels/ where it lies there.
std::filesystem::path kernel_file(const std::filesystem::path& folder, const std::string& name);

/// Fields of one CSV line; quotes around a field are removed, doubled quotes inside are kept as is.
struct CsvFields {
  std::array<std::string_view, 64> values;  ///< fields beyond are dropped
  std::size_t count = 0;
};
CsvFields split_fields(std::string_view line);

/// Content of a table of kernels, without the mark that spreadsheets put ahead of UTF-8.
std::string read_kernel_table(const std::filesystem::path& file, const std::string& hint);

/// Throws InputError where `header` separates its columns by anything but commas, or names one
/// twice.
void check_header(const std::filesystem::path& file, std::string_view header);

/// The whole of `text` as a number; empty where it is none.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tessera
