#include "app/import/job/layer_list.h"

#include <cctype>
#include <utility>

namespace tessera {
namespace {

/// sum = term {"+" term}; term = factor {"*" factor}; factor = list | number | "(" sum ")".
class ListReader {
 public:
  explicit ListReader(std::string text) : text_(std::move(text)) {}

  std::optional<std::vector<int>> all() {
    const Value value = sum(0);
    if (failed_ || at_ != text_.size() || !value.is_list) return std::nullopt;
    return value.list;
  }

 private:
  static constexpr std::size_t kMost = 10'000;
  static constexpr int kDeepest = 16;
  struct Value {
    bool is_list = false;
    std::vector<int> list;
    std::size_t number = 0;
  };

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Value fail() {
    failed_ = true;
    return {};
  }
  Value sum(int depth) {
    Value value = term(depth);
    while (!failed_ && take('+')) {
      const Value more = term(depth);
      if (!value.is_list || !more.is_list || value.list.size() + more.list.size() > kMost)
        return fail();
      value.list.insert(value.list.end(), more.list.begin(), more.list.end());
    }
    return value;
  }
  Value term(int depth) {
    Value value = factor(depth);
    while (!failed_ && take('*')) {
      Value other = factor(depth);
      if (!value.is_list) std::swap(value, other);
      if (!value.is_list || other.is_list || value.list.size() * other.number > kMost)
        return fail();
      const std::vector<int> once = value.list;
      value.list.clear();
      for (std::size_t i = 0; i < other.number; ++i)
        value.list.insert(value.list.end(), once.begin(), once.end());
    }
    return value;
  }
  Value factor(int depth) {
    if (depth > kDeepest) return fail();
    if (take('(')) {
      Value value = sum(depth + 1);
      return take(')') ? value : fail();
    }
    if (take('[')) return list();
    Value value;
    value.number = number();
    return value;
  }
  Value list() {
    Value value{.is_list = true, .list = {}, .number = 0};
    while (!failed_ && !take(']')) {
      value.list.push_back(static_cast<int>(number()));
      if (!take(',') && (at_ >= text_.size() || text_[at_] != ']')) return fail();
    }
    return value;
  }
  std::size_t number() {
    std::size_t value = 0, digits = 0;
    for (; at_ < text_.size() && digits < 6 && std::isdigit(static_cast<unsigned char>(text_[at_]));
         ++at_, ++digits)
      value = 10 * value + static_cast<std::size_t>(text_[at_] - '0');
    if (digits == 0) failed_ = true;
    return value;
  }

  std::string text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

std::string without_spaces(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ' && c != '\'' && c != '"') plain += c;
  }
  return plain;
}

}  // namespace

std::optional<std::vector<int>> python_list(const std::string& text) {
  return ListReader(without_spaces(text)).all();
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  const std::string plain = without_spaces(text);
  const bool is_number = !plain.empty() && plain.size() <= 9 &&
                         plain.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) return std::nullopt;
  return std::stoll(plain);
}

std::optional<std::vector<int>> layer_flags(const std::string& text, std::int64_t layers,
                                            bool last) {
  if (const auto every = whole_number(text); every && *every > 0) {
    std::vector<int> flags;
    for (std::int64_t i = 0; i < layers; ++i)
      flags.push_back(last ? ((i + 1) % *every != 0 ? 1 : 0) : (i % *every == 0 ? 1 : 0));
    return flags;
  }
  auto list = python_list(text);
  if (list && static_cast<std::int64_t>(list->size()) != layers) return std::nullopt;
  return list;
}

}  // namespace tessera
