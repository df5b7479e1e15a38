#include "sim/config/problem_list.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace tessera {
namespace {

constexpr std::size_t kMaxProblems = 100;  ///< more are counted, not printed
constexpr std::size_t kShownBytes = 60;

bool is_within(std::string_view path, std::string_view section) {
  if (!path.starts_with(section)) return false;
  if (section.empty() || path.size() == section.size()) return true;
  return path[section.size()] == '.' || path[section.size()] == '[';
}

bool is_word_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') ||
         std::string_view("._-+/=").find(c) != std::string::npos;
}

/// At most kShownBytes bytes, cut between UTF-8 characters.
std::string shortened(const std::string& value) {
  if (value.size() <= kShownBytes) return value;
  std::size_t length = kShownBytes;
  while (length > 0 && (static_cast<unsigned char>(value[length]) & 0xC0) == 0x80) --length;
  return value.substr(0, length) + "...";
}

}  // namespace

void ProblemList::add(Entry entry, const std::string& path) {
  paths_.push_back(path);
  if (entries_.size() == kMaxProblems) {
    ++omitted_;
  } else {
    entries_.push_back(std::move(entry));
  }
}

void ProblemList::add(const Mark& mark, const std::string& path, std::string what,
                      std::string hint) {
  Problem problem{mark.text(), std::move(what), std::move(hint)};
  add({mark.origin->name, mark.line, mark.column, std::move(problem)}, path);
}

void ProblemList::add(const InputError& error, const std::string& path) {
  for (const Problem& problem : error.problems()) add({problem.where, 0, 0, problem}, path);
}

bool ProblemList::touches(const std::string& path) const {
  return std::any_of(paths_.begin(), paths_.end(), [&](const std::string& reported) {
    return is_within(path, reported) || is_within(reported, path);
  });
}

void ProblemList::throw_if_any() const {
  if (entries_.empty()) return;
  std::map<std::string, std::size_t> file_order;
  for (const Entry& entry : entries_) file_order.try_emplace(entry.file, file_order.size());
  const auto place = [&](const Entry& entry) {
    return std::tuple(file_order.at(entry.file), entry.line, entry.column);
  };
  std::vector<Entry> sorted = entries_;
  std::ranges::stable_sort(sorted, {}, place);
  std::vector<Problem> problems;
  for (Entry& entry : sorted) problems.push_back(std::move(entry.problem));
  if (omitted_ > 0) {
    problems.push_back({"", std::to_string(omitted_) + " more problems", "solve these first"});
  }
  throw InputError(std::move(problems));
}

std::string shown_value(const std::string& value) {
  std::string shown = shortened(value);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  std::replace_if(shown.begin(), shown.end(), is_control, ' ');
  const bool simple = !value.empty() && std::all_of(value.begin(), value.end(), is_word_character);
  return simple ? shown : '"' + shown + '"';
}

}  // namespace tessera
