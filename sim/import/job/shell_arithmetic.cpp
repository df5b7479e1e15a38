#include "sim/import/job/shell_arithmetic.h"

#include <cctype>
#include <charconv>
#include <limits>

namespace tessera {
namespace {

using Value = std::optional<std::int64_t>;

Value combined(Value left, char op, Value right) {
  if (!left || !right) return std::nullopt;
  std::int64_t result = 0;
  bool overflow = false;
  if (op == '+') overflow = __builtin_add_overflow(*left, *right, &result);
  if (op == '-') overflow = __builtin_sub_overflow(*left, *right, &result);
  if (op == '*') overflow = __builtin_mul_overflow(*left, *right, &result);
  if (op == '/' || op == '%') {
    const bool is_undefined =
        *right == 0 || (*left == std::numeric_limits<std::int64_t>::min() && *right == -1);
    if (is_undefined) return std::nullopt;
    result = op == '/' ? *left / *right : *left % *right;
  }
  return overflow ? std::nullopt : Value(result);
}

/// Recursive descent, a method per level of precedence.
class Arithmetic {
 public:
  Arithmetic(const std::string& text,
             const std::function<std::string(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  Value whole() {
    const Value value = sum();
    return next() == '\0' ? value : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Value sum() {
    Value value = product();
    while (next() == '+' || next() == '-') {
      const char op = text_[at_++];
      value = combined(value, op, product());
    }
    return value;
  }

  Value product() {
    Value value = operand();
    while (next() == '*' || next() == '/' || next() == '%') {
      const char op = text_[at_++];
      value = combined(value, op, operand());
    }
    return value;
  }

  Value operand() {
    constexpr int kMostNesting = 64;
    if (next() == '(' && depth_ < kMostNesting) {
      ++at_;
      ++depth_;
      const Value value = sum();
      --depth_;
      if (next() != ')') return std::nullopt;
      ++at_;
      return value;
    }
    return atom();
  }

  Value atom() {
    std::string word;
    for (next(); at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool is_part = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      if (is_part)
        word += c;
      else if (c != '$' && c != '{' && c != '}')
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
