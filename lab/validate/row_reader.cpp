#include "lab/validate/row_reader.h"

#include <charconv>
#include <cmath>

namespace tessera {
namespace {

double seconds_per(TimeUnit unit) {
  return unit == TimeUnit::milliseconds ? 1e-3 : 1e-6;
}

std::string name_of(TimeUnit unit) {
  return unit == TimeUnit::milliseconds ? "milliseconds" : "microseconds";
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The whole field as a number; nothing for anything else.
template <class Number>
std::optional<Number> parse(const std::string& field) {
  Number value{};
  const char* last = field.data() + field.size();
  const auto [end, error] = std::from_chars(field.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace

void require_columns(const CsvTable& table, const std::vector<std::string>& needed) {
  std::vector<Problem> problems;
  for (const std::string& name : needed) {
    if (table.column(name)) continue;
    problems.push_back(
        {table.file.string() + ":1", "has no column " + name, "needed: " + joined(needed)});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::string RowReader::text(const std::string& column) const {
  const auto index = table_.column(column);
  return index ? row_.fields[*index] : std::string();
}

std::int64_t RowReader::count(const std::string& column, std::int64_t missing) {
  const std::string field = text(column);
  if (field.empty() && missing > 0) return missing;
  const auto value = parse<std::int64_t>(field);
  if (value && *value >= 1 && *value <= 1'000'000'000) return *value;
  complain(column, "give a whole number from 1 to 1000000000");
  return 1;
}

std::optional<Seconds> RowReader::time(const std::string& column, TimeUnit unit) {
  const auto value = time_or_zero(column, unit);
  if (!value || value->value() > 0) return value;
  complain(column, "give a time in " + name_of(unit) + " above 0, or leave it empty");
  return std::nullopt;
}

std::optional<Seconds> RowReader::time_or_zero(const std::string& column, TimeUnit unit) {
  const std::string field = text(column);
  if (field.empty()) return std::nullopt;
  const auto value = parse<double>(field);
  if (value && std::isfinite(*value) && *value >= 0) return Seconds(*value * seconds_per(unit));
  complain(column, "give a time in " + name_of(unit) + ", not negative, or leave it empty");
  return std::nullopt;
}

void RowReader::complain(const std::string& column, const std::string& hint) {
  problems_.push_back({where(), column + " = '" + text(column) + "'", hint});
}

}  // namespace tessera
