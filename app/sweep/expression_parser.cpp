#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "app/sweep/expression.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxExpressionBytes = 4096;
constexpr int kMaxExpressionDepth = 64;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A number with the unit after it, if one of the dimensions has that unit.
std::optional<double> quantity_of(const std::string& text) {
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bytes_per_second, Dimension::seconds, Dimension::flops,
        Dimension::flops_per_second, Dimension::hertz, Dimension::watts}) {
    try {
      return parse_quantity(text, dimension);
    } catch (const InputError&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace

/// Recursive descent, one function per level of precedence.
class ExpressionParser {
 public:
  explicit ExpressionParser(Expression& target) : target_(target), text_(target.text_) {}

  void parse() {
    if (text_.size() > kMaxExpressionBytes)
      target_.refuse("is longer than 4096 bytes", "write several conditions");
    target_.root_ = disjunction();
    skip_blanks();
    if (at_ < text_.size()) fail("an operator was expected");
  }

 private:
  using Operation = Expression::Operation;
  struct Symbol {
    std::string_view text;
    Operation operation;
  };
  /// Counts the nesting while it lives.
  class Level {
   public:
    explicit Level(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxExpressionDepth) parser_.fail("is nested too deeply");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

  [[noreturn]] void fail(const std::string& what) const {
    target_.refuse(what + " at character " + std::to_string(at_ + 1),
                   "write for instance parallelism.tensor * parallelism.data <= 8");
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view symbol) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    const std::size_t end = at_ + symbol.size();
    const bool word = is_letter(symbol.front());
    if (word && end < text_.size() &&
        (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.'))
      return false;
    at_ = end;
    return true;
  }
  std::optional<Operation> take_one(std::initializer_list<Symbol> symbols) {
    for (const Symbol& symbol : symbols)
      if (take(symbol.text)) return symbol.operation;
    return std::nullopt;
  }

  std::size_t add(Expression::Node node) {
    target_.nodes_.push_back(std::move(node));
    return target_.nodes_.size() - 1;
  }
  std::size_t add(Operation operation, std::vector<std::size_t> operands) {
    Expression::Node node;
    node.operation = operation;
    node.operands = std::move(operands);
    return add(std::move(node));
  }
  std::size_t add_constant(FieldValue value) {
    Expression::Node node;
    node.constant = std::move(value);
    return add(std::move(node));
  }

  std::size_t disjunction() {
    const Level level(*this);
    std::size_t left = conjunction();
    while (take("or") || take("||")) left = add(Operation::logical_or, {left, conjunction()});
    return left;
  }
  std::size_t conjunction() {
    std::size_t left = negation();
    while (take("and") || take("&&")) left = add(Operation::logical_and, {left, negation()});
    return left;
  }
  std::size_t negation() {
    const Level level(*this);
    if (take("not")) return add(Operation::logical_not, {negation()});
    skip_blanks();
    if (peek() == '!' && !text_.substr(at_).starts_with("!=")) {
      ++at_;
      return add(Operation::logical_not, {negation()});
    }
    return comparison();
  }
  std::size_t comparison() {
    const std::size_t left = sum();
    if (take("in")) return membership(left);
    const auto operation = take_one({{"==", Operation::equal},
                                     {"!=", Operation::different},
                                     {"<=", Operation::less_equal},
                                     {">=", Operation::greater_equal},
                                     {"<", Operation::less},
                                     {">", Operation::greater}});
    if (!operation) return left;
    return add(*operation, {left, sum()});
  }
  std::size_t membership(std::size_t left) {
    std::vector<std::size_t> operands = {left};
    if (!take("[")) fail("[ was expected");
    do {
      operands.push_back(sum());
    } while (take(","));
    if (!take("]")) fail("] was expected");
    return add(Operation::is_in, std::move(operands));
  }
  std::size_t sum() {
    std::size_t left = product();
    while (const auto operation = take_one({{"+", Operation::add}, {"-", Operation::subtract}}))
      left = add(*operation, {left, product()});
    return left;
  }
  std::size_t product() {
    std::size_t left = factor();
    while (const auto operation = take_one(
               {{"*", Operation::multiply}, {"/", Operation::divide}, {"%", Operation::modulo}}))
      left = add(*operation, {left, factor()});
    return left;
  }
  std::size_t factor() {
    const Level level(*this);
    if (take("-")) return add(Operation::negate, {factor()});
    if (take("(")) {
      const std::size_t inner = disjunction();
      if (!take(")")) fail(") was expected");
      return inner;
    }
    const char c = peek();
    if (c == '"' || c == '\'') return quoted(c);
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return word();
    fail("a number, a text in quotes or a field was expected");
  }

  std::size_t quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a text is not closed");
    const std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return add_constant(text);
  }

  std::size_t number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) exponent();
    const std::string digits(text_.substr(begin, at_ - begin));
    const std::size_t end = at_;
    const std::string unit = unit_after();
    const bool plain = unit.empty() || unit == "and" || unit == "or" || unit == "in";
    if (plain) at_ = end;
    try {
      if (plain) return add_constant(parse_quantity(digits, Dimension::ratio));
    } catch (const InputError&) {
      fail("\"" + digits + "\" is no number");
    }
    const std::optional<double> value = quantity_of(digits + " " + unit);
    if (!value) fail("\"" + digits + " " + unit + "\" has no unit that is known,");
    return add_constant(*value);
  }
  void exponent() {
    std::size_t end = at_ + 1;
    if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
    if (end >= text_.size() || !is_digit(text_[end])) return;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    at_ = end;
  }
  /// "GiB", "GB/s".
  std::string unit_after() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    const bool per_second = at_ > begin && text_.substr(at_).starts_with("/s") &&
                            (at_ + 2 == text_.size() || !is_letter(text_[at_ + 2]));
    if (per_second) at_ += 2;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::size_t word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
      ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (name == "true" || name == "false") return add_constant(name == "true" ? 1.0 : 0.0);
    if (peek() == '(') return call(name);
    return add_field(name);
  }
  std::size_t call(const std::string& name) {
    constexpr std::array<std::pair<std::string_view, Operation>, 6> kFunctions = {
        {{"min", Operation::minimum},
         {"max", Operation::maximum},
         {"floor", Operation::floor},
         {"ceil", Operation::ceil},
         {"log2", Operation::log2},
         {"abs", Operation::abs}}};
    const auto function =
        std::ranges::find(kFunctions, name, [](const auto& f) { return f.first; });
    if (function == kFunctions.end())
      fail("there is no function " + name + " (min, max, floor, ceil, log2, abs)");
    take("(");
    std::vector<std::size_t> operands = {disjunction()};
    const bool two =
        function->second == Operation::minimum || function->second == Operation::maximum;
    if (two) {
      if (!take(",")) fail(", was expected: " + name + " takes two numbers");
      operands.push_back(disjunction());
    }
    if (!take(")")) fail(") was expected");
    return add(function->second, std::move(operands));
  }
  std::size_t add_field(const std::string& name) {
    std::string path;
    try {
      path = canonical_path(name);
    } catch (const InputError& error) {
      const Problem& problem = error.problems().front();
      target_.refuse(problem.what, problem.hint + "; texts stand in quotes");
    }
    auto found = std::ranges::find(target_.fields_, path);
    if (found == target_.fields_.end()) {
      target_.fields_.push_back(path);
      found = target_.fields_.end() - 1;
    }
    Expression::Node node;
    node.operation = Operation::field;
    node.field = static_cast<std::size_t>(found - target_.fields_.begin());
    return add(std::move(node));
  }

  Expression& target_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Expression::Expression(const std::string& text, const Mark& mark) : text_(text), mark_(mark) {
  ExpressionParser(*this).parse();
}

}  // namespace tessera
