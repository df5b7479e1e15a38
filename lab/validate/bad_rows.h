#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hw/units/input_error.h"

namespace tessera {

/// What becomes of a row that cannot be used.
enum class BadRows : std::uint8_t {
  refuse,  ///< it ends the run
  skip,    ///< it is listed with its reason
};

/// A row that was left out.
struct SkippedRow {
  std::string id;     ///< as written; "line 7" where the row has none
  std::string where;  ///< file:line
  std::string reason;
};

/// "flash_attention = '2'; give 0 or 1; ..." without the places, which the row has.
std::string reason_of(const std::vector<Problem>& problems);

/// Throws InputError with every reason where a row was skipped.
void refuse_skipped(const std::vector<SkippedRow>& rows);

/// Ids of rows by what is said of them.
using RowsByReason = std::map<std::string, std::vector<std::string>>;
/// "skipped 7 rows: REASON (a, b, c, d, e and 2 more)", a line per reason.
std::string counted_rows(const std::string& verdict, const RowsByReason& rows);

/// Skipped rows for a person: a line per reason with their number and the first of them.
std::string skipped_lines(const std::vector<SkippedRow>& rows);

/// `reason` in one line, without the place "file:line: " that its lines may begin with.
std::string without_place(const std::string& reason, const std::string& where);

/// "line 7" of "runs.csv:7".
std::string line_name(const std::string& where);

}  // namespace tessera
