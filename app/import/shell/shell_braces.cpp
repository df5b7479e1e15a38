// ${NAME} and its like.
#include <algorithm>

#include "app/import/shell/shell_parameters.h"
#include "app/import/shell/shell_reader.h"

namespace tessera {
namespace {

/// Digits at the start of `text`, up to four.
std::size_t digits_of(const std::string& text) {
  std::size_t digits = 0;
  while (digits < std::min<std::size_t>(text.size(), 4) && text[digits] >= '0' &&
         text[digits] <= '9')
    ++digits;
  return digits;
}

}  // namespace

/// Which variable `body` names; what changes its value stands behind `length` characters.
ShellReader::Named ShellReader::named_in(const std::string& body) {
  Named named;
  const std::size_t digits = digits_of(body);
  named.length = name_length(body);
  named.variable = body.substr(0, named.length);
  if (named.length == 0 && digits > 0 && body[0] != '0') {
    const std::size_t place = std::stoul(body.substr(0, digits));
    named.length = digits;
    if (place <= state_.arguments.size())
      named.value = {state_.arguments[place - 1]};
    else if (!state_.settings.arguments.empty())
      named.value = {""};
    return named;
  }
  if (body == "@" || body == "*") {
    named.value = state_.arguments;
    named.is_list = true;
    named.is_one = body == "*";
    named.length = 1;
    return named;
  }
  const std::size_t close = body.find(']', named.length);
  const bool has_key =
      named.length < body.size() && body[named.length] == '[' && close != std::string::npos;
  if (!has_key) {
    named.value = state_.value_of(named.variable);
    return named;
  }
  const std::string key = body.substr(named.length + 1, close - named.length - 1);
  named.is_list = key == "@" || key == "*";
  named.is_one = key == "*";
  if (!named.is_list) named.variable = element_name(named.variable, expanded(key), state_);
  named.length = close + 1;
  named.value =
      named.is_list ? state_.value_of(named.variable) : element_of(named.variable, state_);
  return named;
}

/// ${NAME}, ${NAME[@]}, ${NAME[key]}, ${#NAME}, and what changes a value (shell_parameters.h).
ShellReader::Expansion ShellReader::read_braces() {
  take();
  const std::string inside = bracketed('{', '}');
  const std::string original = "${" + inside + "}";
  if (!runs()) return {{""}, true};
  const bool counts = inside.starts_with('#') && inside.size() > 1;
  const std::string body = inside.substr(counts || inside.starts_with('!') ? 1 : 0);
  Named named = named_in(body);
  std::optional<std::vector<std::string>>& value = named.value;
  const bool undecided = state_.script.undecided.contains(named.variable);
  if (inside.starts_with('!') || (undecided && !value)) return {{original}, false};
  if (counts) {
    if (!value) return {{original}, false};
    const std::size_t size = named.is_list ? value->size() : joined(*value).size();
    return {{std::to_string(size)}, true};
  }
  if (value && value->size() > 1 && !named.is_list) value = {value->front()};
  if (value) count(joined(*value));
  const std::string_view change = std::string_view(body).substr(named.length);
  const auto changed =
      changed_value(value, change, [this](const std::string& text) { return expanded(text); });
  if (!changed) return {{original}, false};
  const bool assigns = change.starts_with('=') || change.starts_with(":=");
  if (assigns && (!value || joined(*value).empty())) state_.assign(named.variable, *changed);
  return {*changed, true, named.is_one};
}

}  // namespace tessera
