#include "app/import/shell/shell_arithmetic.h"

#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

namespace tessera {
namespace {

using Value = std::optional<std::int64_t>;

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > 63) return std::nullopt;
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  }
  return result;
}

Value divided(std::int64_t left, std::string_view op, std::int64_t right) {
  const bool is_undefined =
      right == 0 || (left == std::numeric_limits<std::int64_t>::min() && right == -1);
  if (is_undefined) return std::nullopt;
  return op == "/" ? left / right : left % right;
}

Value compared(std::int64_t left, std::string_view op, std::int64_t right) {
  if (op == "==") return left == right;
  if (op == "!=") return left != right;
  if (op == "<=") return left <= right;
  if (op == ">=") return left >= right;
  if (op == "<") return left < right;
  if (op == ">") return left > right;
  if (op == "&&") return left != 0 && right != 0;
  return left != 0 || right != 0;
}

Value combined(Value left, std::string_view op, Value right) {
  if (!left || !right) return std::nullopt;
  std::int64_t result = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(*left, *right, &result);
  else if (op == "-")
    overflow = __builtin_sub_overflow(*left, *right, &result);
  else if (op == "*")
    overflow = __builtin_mul_overflow(*left, *right, &result);
  else if (op == "**")
    return power(*left, *right);
  else if (op == "/" || op == "%")
    return divided(*left, op, *right);
  else
    return compared(*left, op, *right);
  return overflow ? std::nullopt : Value(result);
}

/// Operators of two operands by precedence, weakest first; of one level, longest first.
const std::array<std::vector<std::string_view>, 7> kLevels{
    {{"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}, {"**"}}};

/// Recursive descent.
class Arithmetic {
 public:
  Arithmetic(const std::string& text,
             const std::function<std::string(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  Value whole() {
    const Value value = choice();
    return next() == '\0' ? value : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool takes(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  Value choice() {
    const Value condition = binary(0);
    if (!takes('?')) return condition;
    const Value first = nested([this] { return choice(); });
    if (!takes(':')) return std::nullopt;
    const Value second = nested([this] { return choice(); });
    if (!condition) return std::nullopt;
    return *condition != 0 ? first : second;
  }

  std::string_view operator_at(std::size_t level) {
    next();
    for (const std::string_view op : kLevels[level]) {
      if (text_.compare(at_, op.size(), op) == 0) return op;
    }
    return {};
  }

  Value binary(std::size_t level) {
    if (level == kLevels.size()) return unary();
    Value value = binary(level + 1);
    for (auto op = operator_at(level); !op.empty(); op = operator_at(level)) {
      at_ += op.size();
      value = combined(value, op, binary(level + 1));
    }
    return value;
  }

  template <class Read>
  Value nested(Read read) {
    constexpr int kMostNesting = 64;
    if (depth_ >= kMostNesting) return std::nullopt;
    ++depth_;
    const Value value = read();
    --depth_;
    return value;
  }

  Value unary() {
    if (takes('-')) return combined(0, "-", nested([this] { return unary(); }));
    if (takes('+')) return nested([this] { return unary(); });
    if (takes('!')) {
      const Value value = nested([this] { return unary(); });
      return value ? Value(*value == 0) : std::nullopt;
    }
    if (!takes('(')) return atom();
    const Value value = nested([this] { return choice(); });
    return takes(')') ? value : std::nullopt;
  }

  Value atom() {
    std::string word;
    for (next(); at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool is_part = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      if (is_part)
        word += c;
      else if (c != '$' && c != '{' && c != '}' && c != '"')
        break;
    }
    if (word.empty()) return std::nullopt;
    const bool is_number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    return number(is_number ? word : value_of_(word));
  }

  static Value number(const std::string& text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end ? Value(value) : std::nullopt;
  }

  const std::string& text_;
  const std::function<std::string(const std::string&)>& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(
    const std::string& text, const std::function<std::string(const std::string&)>& value_of) {
  return Arithmetic(text, value_of).whole();
}

}  // namespace tessera
