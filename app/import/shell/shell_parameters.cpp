#include "app/import/shell/shell_parameters.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "app/import/shell/shell_arithmetic.h"

namespace tessera {
namespace {

using Values = std::optional<std::vector<std::string>>;
using Expand = std::function<std::string(const std::string&)>;

/// ${A:-b} and its like; nothing where `change` is another one.
std::optional<Values> with_default(const Values& value, std::string_view change,
                                   const Expand& expanded) {
  const bool or_empty = change.starts_with(':');
  const std::string_view rest = change.substr(or_empty ? 1 : 0);
  if (rest.empty() || std::string_view("-=+?").find(rest[0]) == std::string_view::npos)
    return std::nullopt;
  const bool there = value && !(or_empty && joined(*value).empty());
  const std::string other(rest.substr(1));
  if (rest[0] == '+') return Values({there ? expanded(other) : ""});
  if (there) return value;
  if (rest[0] == '?') return Values();
  return Values({expanded(other)});
}

std::string without_end(const std::string& text, const std::string& pattern, bool front,
                        bool longest) {
  std::string best = text;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::size_t size = longest ? text.size() - cut : cut;
    const std::string part = front ? text.substr(0, size) : text.substr(text.size() - size);
    if (!matches_glob(part, pattern)) continue;
    return front ? text.substr(size) : text.substr(0, text.size() - size);
  }
  return best;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to,
                     bool all) {
  std::string result;
  std::size_t at = 0;
  while (!from.empty()) {
    const std::size_t found = text.find(from, at);
    if (found == std::string::npos) break;
    result += text.substr(at, found - at) + to;
    at = found + from.size();
    if (!all) break;
  }
  return result + text.substr(at);
}

std::string in_case(std::string text, bool upper, bool all) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    c = static_cast<char>(upper ? std::toupper(byte) : std::tolower(byte));
    if (!all) break;
  }
  return text;
}

/// ${A:start:length} of a text.
Values part_of(const std::string& text, std::string_view places) {
  const auto number = [](const std::string& word) {
    return shell_arithmetic(word, [](const std::string&) { return std::string(); });
  };
  const std::size_t colon = places.find(':');
  const auto start = number(std::string(places.substr(0, colon)));
  if (!start) return std::nullopt;
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t from = std::clamp<std::int64_t>(*start < 0 ? size + *start : *start, 0, size);
  std::int64_t to = size;
  if (colon != std::string_view::npos) {
    const auto length = number(std::string(places.substr(colon + 1)));
    if (!length || *length > size)
      return length ? Values({text.substr(std::size_t(from))}) : Values();
    to = std::clamp<std::int64_t>(*length < 0 ? size + *length : from + *length, from, size);
  }
  return Values({text.substr(std::size_t(from), std::size_t(to - from))});
}

}  // namespace

std::string element_name(const std::string& variable, const std::string& key,
                         const ShellState& state) {
  const bool is_number = shell_arithmetic(key, [&](const std::string& name) {
                           return joined(state.value_of(name).value_or(std::vector<std::string>{}));
                         }).has_value();
  if (!is_number || state.script.variables.contains(variable + "[" + key + "]"))
    return variable + "[" + key + "]";
  const auto place = shell_arithmetic(key, [&](const std::string& name) {
    return joined(state.value_of(name).value_or(std::vector<std::string>{}));
  });
  return variable + "[" + std::to_string(*place) + "]";
}

std::optional<std::vector<std::string>> element_of(const std::string& element,
                                                   const ShellState& state) {
  if (const auto value = state.value_of(element)) return value;
  const std::size_t open = element.find('[');
  const auto list = state.value_of(element.substr(0, open));
  const auto place = shell_arithmetic(element.substr(open + 1, element.size() - open - 2),
                                      [](const std::string&) { return std::string(); });
  if (!list || !place) return std::nullopt;
  const auto size = static_cast<std::int64_t>(list->size());
  const std::int64_t at = *place < 0 ? size + *place : *place;
  if (at < 0 || at >= size) return std::nullopt;
  return std::vector<std::string>{(*list)[static_cast<std::size_t>(at)]};
}

std::optional<std::vector<std::string>> changed_value(
    const std::optional<std::vector<std::string>>& value, std::string_view change,
    const std::function<std::string(const std::string&)>& expanded) {
  if (change.empty()) return value;
  if (auto other = with_default(value, change, expanded)) return *other;
  if (!value) return std::nullopt;
  const std::string text = joined(*value);
  const bool twice = change.size() > 1 && change[0] == change[1];
  const std::string rest(change.substr(twice ? 2 : 1));
  if (change[0] == '#' || change[0] == '%')
    return Values({without_end(text, expanded(rest), change[0] == '#', twice)});
  if (change[0] == '^' || change[0] == ',') return Values({in_case(text, change[0] == '^', twice)});
  if (change[0] == '/') {
    const std::size_t slash = rest.find('/');
    const std::string to = slash == std::string::npos ? "" : expanded(rest.substr(slash + 1));
    return Values({replaced(text, expanded(rest.substr(0, slash)), to, twice)});
  }
  if (change[0] == ':') return part_of(text, change.substr(1));
  return std::nullopt;
}

}  // namespace tessera
