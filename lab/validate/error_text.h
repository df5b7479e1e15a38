#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lab/validate/bad_rows.h"
#include "lab/validate/error_summary.h"

namespace tessera {

/// How wide a table may be: files and pipes get every column, terminals those that fit into 80.
enum class TableWidth { all_columns, terminal };

/// "-" where there is no value.
std::string figure_cell(const std::optional<double>& value, const char* format);

/// "gpu V100   n  12   mean |error| ..." or that there is nothing to compare.
std::string error_line(const std::string& name, const ErrorSummary& errors);

/// Errors of no rows are unknown (null), not zero.
nlohmann::ordered_json error_json(const ErrorSummary& errors);
nlohmann::ordered_json error_json(const ErrorGroup& group);

/// [{"id", "where", "reason"}, ...].
nlohmann::ordered_json skipped_json(const std::vector<SkippedRow>& rows);

}  // namespace tessera
