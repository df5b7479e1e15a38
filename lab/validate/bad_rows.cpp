#include "lab/validate/bad_rows.h"

#include <algorithm>
#include <sstream>

namespace tessera {

std::string reason_of(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += "; ";
    text += Problem{"", problem.what, problem.hint}.text();
  }
  return text;
}

void refuse_skipped(const std::vector<SkippedRow>& rows) {
  if (rows.empty()) return;
  std::vector<Problem> problems;
  for (const SkippedRow& row : rows)
    problems.push_back({row.where, row.reason, "correct the row, or leave --strict out"});
  throw InputError(std::move(problems));
}

std::string counted_rows(const std::string& verdict, const RowsByReason& rows) {
  constexpr std::size_t kNamed = 5;
  std::string text;
  for (const auto& [reason, ids] : rows) {
    std::string names;
    for (std::size_t i = 0; i < std::min(kNamed, ids.size()); ++i)
      names += (names.empty() ? "" : ", ") + ids[i];
    if (ids.size() > kNamed) names += " and " + std::to_string(ids.size() - kNamed) + " more";
    text += verdict + " " + std::to_string(ids.size()) + (ids.size() == 1 ? " row: " : " rows: ") +
            reason + " (" + names + ")\n";
  }
  return text;
}

std::string skipped_lines(const std::vector<SkippedRow>& rows) {
  RowsByReason by_reason;
  for (const SkippedRow& row : rows) by_reason[row.reason].push_back(row.id);
  return counted_rows("skipped", by_reason);
}

std::string without_place(const std::string& reason, const std::string& where) {
  const std::string place = where + ": ";
  std::istringstream lines(reason);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!text.empty()) text += "; ";
    text += line.starts_with(place) ? line.substr(place.size()) : line;
  }
  return text;
}

std::string line_name(const std::string& where) {
  return "line " + where.substr(where.rfind(':') + 1);
}

}  // namespace tessera
