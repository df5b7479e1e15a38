#include "lab/fit/tensor/measured_table.h"

#include <algorithm>
#include <cmath>

#include "hw/units/fnv1a.h"
#include "predictor/measured/measurements.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxProblems = 20;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr double kMaxMicroseconds = 1e9;

std::string read_whole(const std::filesystem::path& path) {
  return read_kernel_table(path, "give the folder that holds the file");
}

}  // namespace

MeasuredTable::MeasuredTable(const std::filesystem::path& path, std::vector<std::string> columns)
    : path_(path),
      text_(std::make_shared<const std::string>(read_whole(path))),
      columns_(std::move(columns)),
      hash_(fnv1a(*text_)) {
  find_columns(columns_.size());
}

MeasuredTable::MeasuredTable(const std::filesystem::path& path, std::vector<std::string> columns,
                             const std::vector<std::string>& optional)
    : path_(path),
      text_(std::make_shared<const std::string>(read_whole(path))),
      columns_(std::move(columns)),
      hash_(fnv1a(*text_)) {
  const std::size_t required = columns_.size();
  columns_.insert(columns_.end(), optional.begin(), optional.end());
  find_columns(required);
  lenient_ = true;
}

void MeasuredTable::find_columns(std::size_t required) {
  header_ = next_line();
  check_header(path_, header_);
  const CsvFields header = split_fields(header_);
  const auto end = header.values.begin() + static_cast<std::ptrdiff_t>(header.count);
  width_ = header.count;
  for (const std::string& column : columns_) {
    const auto found = std::find(header.values.begin(), end, column);
    positions_.push_back(static_cast<std::size_t>(found - header.values.begin()));
    if (found == end && positions_.size() <= required)
      problem("column " + column + " is missing",
              "docs/validation.md has the columns of every kind of table");
  }
  finish();
}

std::string_view MeasuredTable::next_line() {
  ++line_;
  const std::size_t end = std::min(text_->find('\n', offset_), text_->size());
  std::string_view line = std::string_view(*text_).substr(offset_, end - offset_);
  offset_ = std::min(end + 1, text_->size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool MeasuredTable::next() {
  while (offset_ < text_->size() && problems_.size() < kMaxProblems) {
    const std::string_view line = next_line();
    if (line.empty()) continue;
    row_ = line;
    fields_ = split_fields(line);
    if (fields_.count == width_) return true;
    problem(
        std::to_string(fields_.count) + " fields where the header has " + std::to_string(width_),
        "write every column; leave a field empty where nothing is known");
  }
  return false;
}

std::string_view MeasuredTable::text(std::size_t column) const {
  return has(column) ? fields_.values[positions_[column]] : std::string_view();
}

std::optional<std::int64_t> MeasuredTable::extent(std::size_t column) {
  const auto value = parse_number<std::int64_t>(text(column));
  if (value && *value > 0 && *value <= kMaxExtent) return value;
  problem(columns_[column] + " = '" + std::string(text(column)) + "' is not a size",
          "a whole number from 1 to 2^40");
  return std::nullopt;
}

std::optional<std::int64_t> MeasuredTable::optional_extent(std::size_t column) {
  if (text(column).empty()) return 0;
  return extent(column);
}

std::optional<double> MeasuredTable::microseconds(std::size_t column) {
  const auto value = parse_number<double>(text(column));
  if (value && *value > 0 && *value <= kMaxMicroseconds) return *value * 1e-6;
  problem(columns_[column] + " = '" + std::string(text(column)) + "' is not a duration",
          "microseconds, more than 0");
  return std::nullopt;
}

std::optional<double> MeasuredTable::optional_microseconds(std::size_t column) {
  if (text(column).empty()) return 0;
  return microseconds(column);
}

void MeasuredTable::problem(std::string what, std::string hint) {
  if (lenient_) {
    const bool known = !bad_.empty() && bad_.back().line.data() == row_.data();
    if (!known) bad_.push_back({row_, what + "; " + hint});
    return;
  }
  problems_.push_back({.where = path_.string() + ":" + std::to_string(line_),
                       .what = std::move(what),
                       .hint = std::move(hint)});
}

void MeasuredTable::finish() const {
  if (!problems_.empty()) throw InputError(problems_);
}

bool held_out_shape(std::string_view shape) {
  constexpr std::uint64_t kFolds = 5;
  return fnv1a(shape) % kFolds == 0;
}

}  // namespace tessera
