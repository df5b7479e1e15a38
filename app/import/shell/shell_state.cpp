#include "app/import/shell/shell_state.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace tessera {
namespace {

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}

bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// The names in the text of an arithmetic expression or a command, '$' or not.
void add_names(std::string_view text, std::vector<std::string>& names) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = name_length(text.substr(at));
    if (length > 0) names.emplace_back(text.substr(at, length));
    at += std::max<std::size_t>(length, 1);
  }
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> texts_of(const std::vector<ShellWord>& words) {
  std::vector<std::string> texts;
  for (const ShellWord& word : words) texts.push_back(word.text);
  return texts;
}

std::size_t name_length(std::string_view text) {
  if (text.empty() || !is_name_start(text[0])) return 0;
  std::size_t length = 1;
  while (length < text.size() && is_name_part(text[length])) ++length;
  return length;
}

bool matches_glob(std::string_view text, std::string_view pattern) {
  // The last star may take one more character wherever the rest fails.
  std::size_t t = 0, p = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    const std::size_t close =
        p < pattern.size() && pattern[p] == '[' ? pattern.find(']', p + 2) : std::string_view::npos;
    const bool is_set = close != std::string_view::npos;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (is_set &&
               pattern.substr(p + 1, close - p - 1).find(text[t]) != std::string_view::npos) {
      p = close + 1;
      ++t;
    } else if (p < pattern.size() && !is_set && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_unknown(const std::string& text) {
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] == '`') return true;
    const char next = text[at + 1];
    const bool expands = is_name_part(next) || next == '{' || next == '(' || next == '?';
    if (text[at] == '$' && expands) return true;
  }
  return false;
}

std::vector<std::string> unknown_variables(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] != '$') continue;
    const bool arithmetic = text.compare(at, 3, "$((") == 0;
    const std::size_t start = at + (text[at + 1] == '{' ? 2 : 1);
    const std::string_view rest = std::string_view(text).substr(start);
    std::size_t digits = 0;
    while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
    const std::size_t length = std::max(name_length(rest), digits);
    if (arithmetic)
      add_names(rest.substr(0, rest.find("))")), names);
    else if (length > 0)
      names.emplace_back(rest.substr(0, length));
  }
  std::set<std::string> seen;
  std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
  return names;
}

std::optional<std::vector<std::string>> ShellState::value_of(const std::string& variable) const {
  const auto found = script.variables.find(variable);
  if (found == script.variables.end()) return std::nullopt;
  return found->second;
}

void ShellState::assign(const std::string& variable, std::vector<std::string> values, bool appends,
                        bool is_list) {
  if (settings.defined.contains(variable)) return;
  if (appends && script.undecided.contains(variable)) return;
  const auto old = script.variables.find(variable);
  if (appends && old != script.variables.end()) {
    std::vector<std::string> all = old->second;
    if (is_list || all.empty())
      all.insert(all.end(), values.begin(), values.end());
    else
      all.front() += joined(values);
    values = std::move(all);
  }
  script.undecided.erase(variable);
  script.variables[variable] = std::move(values);
}

void ShellState::make_unknown(const std::string& variable, const std::string& why) {
  if (settings.defined.contains(variable)) return;
  script.variables.erase(variable);
  script.undecided[variable] = why;
}

void ShellBranches::begin(const std::string& why) {
  why_ = why;
  any_ = true;
  state_.script.variables = start_;
  state_.script.undecided = undecided_;
  state_.conditions.push_back(why);
}

void ShellBranches::end() {
  state_.conditions.pop_back();
  const bool ends_script = state_.halt == ShellHalt::script;
  state_.halt = ShellHalt::none;
  if (ends_script) return;
  ends_.push_back(state_.script.variables);
  late_.insert(state_.script.undecided.begin(), state_.script.undecided.end());
}

void ShellBranches::join() {
  if (!any_) return;
  if (ends_.empty()) {
    state_.halt = ShellHalt::script;
    return;
  }
  state_.script.variables = ends_.front();
  state_.script.undecided = late_;
  for (const auto& [name, why] : late_) state_.script.variables.erase(name);
  for (const ShellVariables& end : ends_) {
    for (const auto& [name, values] : end) {
      const bool same = std::all_of(ends_.begin(), ends_.end(), [&](const ShellVariables& other) {
        const auto found = other.find(name);
        return found != other.end() && found->second == values;
      });
      if (!same && !late_.contains(name)) state_.make_unknown(name, why_);
    }
  }
}

}  // namespace tessera
