#include "lab/validate/runs/training_row.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace tessera {
namespace {

/// The whole of `field` as a number; nothing for anything else.
template <class Number>
std::optional<Number> number_of(const std::string& field) {
  Number value{};
  const char* last = field.data() + field.size();
  const auto [end, error] = std::from_chars(field.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace

std::string TrainingRowReader::text(const std::string& column) const {
  const auto found = fields_.find(column);
  return found == fields_.end() ? std::string() : found->second;
}

std::int64_t TrainingRowReader::count(const std::string& column, std::int64_t missing) const {
  const std::string field = text(column);
  if (field.empty() && missing > 0) return missing;
  const auto value = number_of<std::int64_t>(field);
  if (value && *value >= 1 && *value <= 1'000'000'000) return *value;
  complain(column, "give a whole number from 1 to 1000000000");
  return 1;
}

std::int64_t TrainingRowReader::size(const std::string& column) const {
  return states(column) && text(column) != "0" ? count(column) : 0;
}

double TrainingRowReader::positive(const std::string& column) const {
  constexpr double kMost = 1e12;  // beyond any time, rate or size of these columns
  const auto value = number_of<double>(text(column));
  if (value && *value > 0 && *value <= kMost) return *value;
  complain(column, "give a number above 0, at most 1e12");
  return 1;
}

std::optional<bool> TrainingRowReader::flag(const std::string& column) const {
  const std::string field = text(column);
  if (field.empty()) return std::nullopt;
  if (field != "0" && field != "1") complain(column, "give 0 or 1");
  return field == "1";
}

std::vector<std::string> TrainingRowReader::words(const std::string& column) const {
  std::istringstream stream(text(column));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void TrainingRowReader::complain(const std::string& column, const char* hint) const {
  const std::string what = column + " = '" + text(column) + "'";
  const bool known = std::ranges::any_of(problems_, [&](const Problem& problem) {
    return problem.where == where_ && problem.what == what;
  });
  if (!known) problems_.push_back({where_, what, hint});
}

}  // namespace tessera
