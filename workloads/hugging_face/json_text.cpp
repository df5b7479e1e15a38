#include "workloads/hugging_face/json_text.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tessera {
namespace {

/// Position behind the text in quotes that begins at `begin`.
std::size_t end_of_quoted(std::string_view text, std::size_t begin) {
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

/// Walks over a text; knows in which objects it is.
class KeyLines {
 public:
  explicit KeyLines(std::string_view text) : text_(text) {}

  std::map<std::string, int> read() {
    while (at_ < text_.size()) step();
    return std::move(lines_);
  }

 private:
  static constexpr std::size_t kDeepest = 4;

  void step() {
    const char c = text_[at_];
    if (c == '"') return take_quoted();
    if (c == '\n') ++line_;
    if (c == '{') open(key_);
    if (c == '[') open("");
    if (c == ':') is_value_ = true;
    if (c == ',') is_value_ = false;
    if (c == '}' || c == ']') close();
    ++at_;
  }

  void take_quoted() {
    const std::size_t end = end_of_quoted(text_, at_);
    const std::string_view text = text_.substr(at_, end - at_);
    if (!is_value_ && text.size() >= 2) take_key(text.substr(1, text.size() - 2));
    at_ = end;
  }

  void take_key(std::string_view name) {
    key_ = name;
    const bool is_shallow = depth_ == path_.size() && depth_ <= kDeepest;
    if (!is_shallow) return;
    std::string whole;
    for (std::size_t i = 1; i < path_.size(); ++i) whole += path_[i] + ".";
    lines_.emplace(whole + key_, line_);
  }

  /// Lists, and what is too deep, count; they have no name.
  void open(const std::string& name) {
    const bool is_object = text_[at_] == '{';
    if (is_object && depth_ == path_.size() && depth_ < kDeepest) path_.push_back(name);
    ++depth_;
    is_value_ = false;
  }

  void close() {
    if (depth_ > 0) --depth_;
    if (path_.size() > depth_) path_.pop_back();
    is_value_ = false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;  ///< objects and lists
  int line_ = 1;
  bool is_value_ = false;  ///< what comes next is one
  std::string key_;
  std::vector<std::string> path_;  ///< names of the objects; as many as `depth_` outside of lists
  std::map<std::string, int> lines_;
};

}  // namespace

std::map<std::string, int> lines_of_keys(std::string_view text) {
  return KeyLines(text).read();
}

std::string with_quoted_specials(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kSpecials{"NaN", "-Infinity", "Infinity"};
  std::string quoted;
  quoted.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '"') end = end_of_quoted(text, at);
    std::string_view special;
    for (const std::string_view name : kSpecials) {
      if (text.substr(at).starts_with(name)) special = name;
    }
    if (!special.empty()) end = at + special.size();
    const std::string_view part = text.substr(at, end - at);
    quoted += special.empty() ? std::string(part) : '"' + std::string(part) + '"';
    at = end;
  }
  return quoted;
}

}  // namespace tessera
