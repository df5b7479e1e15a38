#include "app/sweep/expression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hw/units/input_error.h"

namespace tessera {

void Expression::refuse(const std::string& what, const std::string& hint) const {
  throw InputError(Problem{mark_.text(), "\"" + text_ + "\": " + what, hint});
}

std::optional<FieldValue> Expression::value(const FieldLookup& lookup) const {
  std::vector<FieldValue> values;
  values.reserve(fields_.size());
  for (const std::string& path : fields_) {
    std::optional<FieldValue> value = lookup(path);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return evaluate(nodes_[root_], values);
}

std::optional<bool> Expression::holds(const FieldLookup& lookup) const {
  const std::optional<FieldValue> result = value(lookup);
  if (!result) return std::nullopt;
  if (const double* number = std::get_if<double>(&*result)) return *number != 0;
  refuse("is a text, not a condition", "compare it: field == \"text\"");
}

double Expression::number(std::size_t node, const std::vector<FieldValue>& values) const {
  const FieldValue value = evaluate(nodes_[node], values);
  if (const double* number = std::get_if<double>(&value)) return *number;
  refuse("\"" + std::get<std::string>(value) + "\" is no number", "compare texts with == or !=");
}

FieldValue Expression::evaluate(const Node& node, const std::vector<FieldValue>& values) const {
  const auto condition = [&](std::size_t i) { return number(node.operands[i], values) != 0; };
  switch (node.operation) {
    case Operation::constant:
      return node.constant;
    case Operation::field:
      return values[node.field];
    case Operation::logical_or:
      return condition(0) || condition(1) ? 1.0 : 0.0;
    case Operation::logical_and:
      return condition(0) && condition(1) ? 1.0 : 0.0;
    case Operation::logical_not:
      return condition(0) ? 0.0 : 1.0;
    case Operation::equal:
    case Operation::different:
    case Operation::less:
    case Operation::less_equal:
    case Operation::greater:
    case Operation::greater_equal:
    case Operation::is_in:
      return compare(node, values) ? 1.0 : 0.0;
    default:
      return arithmetic(node, values);
  }
}

bool Expression::compare(const Node& node, const std::vector<FieldValue>& values) const {
  if (node.operation == Operation::is_in || node.operation == Operation::equal ||
      node.operation == Operation::different) {
    const FieldValue left = evaluate(nodes_[node.operands.front()], values);
    const bool equal =
        std::any_of(node.operands.begin() + 1, node.operands.end(),
                    [&](std::size_t operand) { return evaluate(nodes_[operand], values) == left; });
    return node.operation == Operation::different ? !equal : equal;
  }
  const double left = number(node.operands[0], values);
  const double right = number(node.operands[1], values);
  switch (node.operation) {
    case Operation::less:
      return left < right;
    case Operation::less_equal:
      return left <= right;
    case Operation::greater:
      return left > right;
    default:
      return left >= right;
  }
}

FieldValue Expression::arithmetic(const Node& node, const std::vector<FieldValue>& values) const {
  const double left = number(node.operands[0], values);
  const double right = node.operands.size() > 1 ? number(node.operands[1], values) : 0;
  const bool divides = node.operation == Operation::divide || node.operation == Operation::modulo;
  if (divides && right == 0) refuse("divides by zero", "rule that out in a condition before: and");
  switch (node.operation) {
    case Operation::negate:
      return -left;
    case Operation::add:
      return left + right;
    case Operation::subtract:
      return left - right;
    case Operation::multiply:
      return left * right;
    case Operation::divide:
      return left / right;
    case Operation::modulo:
      return std::fmod(left, right);
    case Operation::minimum:
      return std::min(left, right);
    case Operation::maximum:
      return std::max(left, right);
    case Operation::floor:
      return std::floor(left);
    case Operation::ceil:
      return std::ceil(left);
    case Operation::log2:
      if (left <= 0) refuse("takes the logarithm of " + std::to_string(left), "keep it above 0");
      return std::log2(left);
    default:
      return std::abs(left);
  }
}

}  // namespace tessera
