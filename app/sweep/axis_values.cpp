#include "app/sweep/axis_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "app/sweep/sweep_spec.h"
#include "hw/units/input_error.h"
#include "sim/config/problem_list.h"

namespace tessera {
namespace {

using Kind = YamlNode::Kind;

[[noreturn]] void refuse_axis(std::string what, std::string hint) {
  throw InputError(Problem{"", std::move(what), std::move(hint)});
}

double range_number(const YamlNode& range, const char* key) {
  const YamlEntry* entry = range.find(key);
  const std::string text = entry == nullptr ? "" : entry->value.text;
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size() ||
      !std::isfinite(number)) {
    refuse_axis(std::string(": a range needs a number as ") + key,
                "write {from: 1, to: 8, times: 2} or {from: 1, to: 8, step: 1}");
  }
  return number;
}

/// Without the last digits, which are rounding: 0.1 * 3 is 0.3.
double tidy(double number) {
  std::array<char, 64> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::general, 15);
  std::from_chars(text.data(), end.ptr, number);
  return number;
}

YamlNode number_node(double number, const Mark& mark) {
  YamlNode node;
  node.kind = Kind::scalar;
  node.text = plain_number(tidy(number));
  node.mark = mark;
  return node;
}

std::vector<YamlNode> range_values(const YamlNode& range) {
  for (const YamlEntry& entry : range.entries) {
    if (entry.key != "from" && entry.key != "to" && entry.key != "step" && entry.key != "times")
      refuse_axis(": a range has no " + shown_value(entry.key), "use from, to and step or times");
  }
  const bool grows = range.find("times") != nullptr;
  if (grows == (range.find("step") != nullptr))
    refuse_axis(": a range needs either step or times", "write {from: 1, to: 8, times: 2}");
  const double from = range_number(range, "from");
  const double to = range_number(range, "to");
  const double by = range_number(range, grows ? "times" : "step");
  if (grows ? !(by > 1 && from > 0) : !(by > 0))
    refuse_axis(": a range does not get from " + plain_number(from) + " to " + plain_number(to),
                "use a step above 0, or times above 1 and from above 0");
  std::vector<YamlNode> values;
  // Multiples of the step, not sums: 0.1 ten times is 1. A little room for their rounding.
  const double end = to + (grows ? 1e-12 * to : 1e-9 * by);
  for (std::int64_t i = 0;; ++i) {
    const double number =
        grows ? from * std::pow(by, static_cast<double>(i)) : from + by * static_cast<double>(i);
    if (number > end) break;
    if (i >= kMaxAxisValues) refuse_axis(": a range has over 100000 values", "take longer steps");
    values.push_back(number_node(number, range.mark));
  }
  if (values.empty()) refuse_axis(": a range is empty: from is above to", "swap them");
  return values;
}

}  // namespace

std::string plain_number(double number) {
  std::array<char, 64> text;
  const bool whole = number == std::floor(number) && std::abs(number) < 9e15;
  const auto end = whole ? std::to_chars(text.data(), text.data() + text.size(),
                                         static_cast<std::int64_t>(number))
                         : std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

std::vector<YamlNode> axis_values(const YamlNode& axis) {
  if (axis.kind == Kind::mapping) return range_values(axis);
  if (axis.kind != Kind::sequence || axis.items.empty())
    refuse_axis(" has no values", "write a list [1, 2, 4] or a range {from: 1, to: 4, times: 2}");
  return axis.items;
}

std::string one_line(const YamlNode& value) {
  std::string text;
  switch (value.kind) {
    case Kind::scalar:
      return value.text;
    case Kind::sequence:
      for (const YamlNode& item : value.items) text += (text.empty() ? "" : ", ") + one_line(item);
      return "[" + text + "]";
    case Kind::mapping:
      for (const YamlEntry& entry : value.entries)
        text += (text.empty() ? "" : ", ") + entry.key + ": " + one_line(entry.value);
      return "{" + text + "}";
    default:
      return "null";
  }
}

}  // namespace tessera
