#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/fields/scenario_fields.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Value of a field by its canonical path; empty where it is not known yet.
using FieldLookup = std::function<std::optional<FieldValue>(const std::string& path)>;

/// A formula over the fields of a scenario:
/// "parallelism.tensor * parallelism.data == 8 and cluster.node.gpu.memory >= 80 GiB".
/// Numbers (with units), texts in quotes, paths of fields; or, and, not; == != < <= > >=, in [a,
/// b];
/// + - * / %; min, max, floor, ceil, log2, abs. Comparisons give 1 or 0.
class Expression {
 public:
  /// Throws InputError with the place for what is no formula, names no field or is longer than
  /// 4096 bytes.
  Expression(const std::string& text, const Mark& mark);

  /// Canonical paths, each once, in the order of their first use.
  const std::vector<std::string>& fields() const { return fields_; }
  const std::string& text() const { return text_; }
  const Mark& mark() const { return mark_; }

  /// Empty where `lookup` lacks one of fields(). Throws InputError for a text where a number is
  /// needed, and for a division by zero.
  std::optional<FieldValue> value(const FieldLookup& lookup) const;
  /// The same as a condition. Throws InputError for a text.
  std::optional<bool> holds(const FieldLookup& lookup) const;

 private:
  friend class ExpressionParser;
  enum class Operation : std::uint8_t {
    constant,
    field,
    negate,
    logical_not,
    logical_or,
    logical_and,
    equal,
    different,
    less,
    less_equal,
    greater,
    greater_equal,
    is_in,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    minimum,
    maximum,
    floor,
    ceil,
    log2,
    abs
  };
  struct Node {
    Operation operation = Operation::constant;
    FieldValue constant;                ///< of a constant
    std::size_t field = 0;              ///< of a field: position in fields_
    std::vector<std::size_t> operands;  ///< positions in nodes_
  };

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;
  FieldValue evaluate(const Node& node, const std::vector<FieldValue>& values) const;
  double number(std::size_t node, const std::vector<FieldValue>& values) const;
  FieldValue arithmetic(const Node& node, const std::vector<FieldValue>& values) const;
  bool compare(const Node& node, const std::vector<FieldValue>& values) const;

  std::string text_;
  Mark mark_;
  std::vector<std::string> fields_;
  std::vector<Node> nodes_;
  std::size_t root_ = 0;
};

}  // namespace tessera
