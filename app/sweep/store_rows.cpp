#include "app/sweep/store_rows.h"

#include <array>

#include "app/sweep/content_hash.h"

namespace tessera {
namespace {

constexpr std::array<const char*, 4> kOutcomeNames = {"ok", "invalid", "failed", "timeout"};

PointOutcome outcome_called(const std::string& name) {
  for (std::size_t i = 0; i < kOutcomeNames.size(); ++i)
    if (name == kOutcomeNames[i]) return static_cast<PointOutcome>(i);
  return PointOutcome::failed;
}

}  // namespace

std::string name_of(PointOutcome outcome) {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}

StoredResultRow StoredResultRow::at(const Statement& query, int first) {
  StoredResultRow row;
  row.outcome = query.text(first + 1);
  row.result = {query.text(first), outcome_called(row.outcome), query.text(first + 2),
                query.real(first + 3)};
  row.hash = query.text(first + 4);
  return row;
}

std::string StoredResultRow::right_hash() const {
  ContentHash content;
  content.add(result.key).add(outcome).add(result.answer).add(result.wall_s);
  return content.hexadecimal();
}

StoredPointRow StoredPointRow::at(const Statement& query) {
  return {query.integer(0), query.text(1), query.text(2), query.text(3), query.text(4)};
}

std::string StoredPointRow::right_hash() const {
  return ContentHash().add(number).add(fields).add(key).add(reason).hexadecimal();
}

}  // namespace tessera
