#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/input_error.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {

/// A row that could not be read, with the first reason.
struct BadRow {
  std::string_view line;  ///< the row as it stands in the file
  std::string reason;
};

/// A CSV file of timed kernels, read row by row; problems are collected and thrown together.
class MeasuredTable {
 public:
  /// Reads `path` and finds `columns` in its header; others are ignored. Throws InputError where
  /// the file cannot be read or lacks a column.
  MeasuredTable(const std::filesystem::path& path, std::vector<std::string> columns);
  /// Columns of `optional` that the header lacks read as empty; they follow the others in
  /// position. Rows with problems are kept in `bad_rows` instead of thrown.
  MeasuredTable(const std::filesystem::path& path, std::vector<std::string> columns,
                const std::vector<std::string>& optional);

  MeasuredTable(const MeasuredTable&) = delete;  // fields refer into the text
  MeasuredTable& operator=(const MeasuredTable&) = delete;

  /// Moves to the next row that has as many fields as the header; false at the end of the file, or
  /// after 20 problems.
  bool next();
  /// Field of the current row; `column` is a position in the constructor's `columns`.
  std::string_view text(std::size_t column) const;
  bool has(std::size_t column) const { return positions_[column] < width_; }
  /// A whole number from 1 to 2^40; empty, with a problem noted, otherwise.
  std::optional<std::int64_t> extent(std::size_t column);
  /// The same, where an empty field stands for 0.
  std::optional<std::int64_t> optional_extent(std::size_t column);
  /// Microseconds > 0 as seconds; empty, with a problem noted, otherwise.
  std::optional<double> microseconds(std::size_t column);
  /// The same, where an empty field stands for 0.
  std::optional<double> optional_microseconds(std::size_t column);
  /// Notes what is wrong with the current row.
  void problem(std::string what, std::string hint);
  /// Throws InputError with all problems, if there are any.
  void finish() const;

  const std::vector<BadRow>& bad_rows() const { return bad_; }

  std::uint64_t hash() const { return hash_; }  ///< fnv1a of the file
  /// The current row as it stands in the file.
  std::string_view row() const { return row_; }
  std::string_view header() const { return header_; }
  /// The file, which rows and header refer into.
  const std::shared_ptr<const std::string>& file_text() const { return text_; }

 private:
  std::string_view next_line();
  void find_columns(std::size_t required);

  std::filesystem::path path_;
  std::shared_ptr<const std::string> text_;
  std::string_view header_, row_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> positions_;  ///< of `columns_` in the header
  CsvFields fields_;                    ///< of the current row
  std::size_t width_ = 0, offset_ = 0, line_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<Problem> problems_;
  bool lenient_ = false;  ///< rows with problems go to `bad_`
  std::vector<BadRow> bad_;
};

/// True for a fifth of all shapes, chosen by a hash of `shape`: nothing is fitted to their rows.
bool held_out_shape(std::string_view shape);

}  // namespace tessera
