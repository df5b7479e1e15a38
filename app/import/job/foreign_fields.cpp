#include "app/import/job/foreign_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "hw/units/lower_case.h"

namespace tessera {
namespace {

bool is_unset(const std::string& text) {
  return text.empty() || text == "auto" || text == "null" || text == "None" || text == "none";
}

std::optional<double> parsed(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

void collect(const YamlNode& node, const std::string& name, bool keeps_empty,
             ForeignFields& fields) {
  if (node.kind == YamlNode::Kind::mapping) {
    if (keeps_empty && node.entries.empty() && !name.empty())
      fields.add(name, {"{}", node.mark.text()});
    for (const YamlEntry& entry : node.entries)
      collect(entry.value, name.empty() ? entry.key : name + "." + entry.key, keeps_empty, fields);
    return;
  }
  std::string text = node.text;
  for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + item.text;
  fields.add(name, {text, node.mark.text(), node.kind == YamlNode::Kind::null});
}

}  // namespace

std::optional<std::string> ForeignFields::text(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end() || is_unset(found->second.text)) return std::nullopt;
  read_[name] = true;
  return found->second.text;
}

std::optional<std::string> ForeignFields::word(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  read_[name] = true;
  return found->second.text;
}

bool ForeignFields::is_auto(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.text != "auto") return false;
  read_[name] = true;
  return true;
}

std::optional<std::int64_t> ForeignFields::integer(const std::string& name, std::int64_t least) {
  constexpr double kMost = 1e15;  // whole in a double
  const auto given = number(name);
  if (!given) return std::nullopt;
  if (*given == std::floor(*given) && *given >= static_cast<double>(least) && *given <= kMost)
    return static_cast<std::int64_t>(*given);
  refuse(name, "is " + values_.at(name).text,
         "use a whole number, at least " + std::to_string(least));
  return std::nullopt;
}

std::optional<double> ForeignFields::number(const std::string& name) {
  const auto given = text(name);
  if (!given) return std::nullopt;
  const auto value = parsed(*given);
  if (!value) refuse_word(name, "use a number");
  return value;
}

bool ForeignFields::flag(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return false;
  read_[name] = true;
  const std::string text = lower_case(found->second.text);
  const auto is_one_of = [&](const auto& words) {
    return std::ranges::find(words, text) != std::end(words);
  };
  // As argparse of Hugging Face and YAML have them.
  static constexpr std::string_view kYes[] = {"", "true", "t", "1", "yes", "y", "on"};
  static constexpr std::string_view kNo[] = {"false", "f", "0", "no", "n", "off"};
  if (found->second.is_null) return false;
  if (is_one_of(kYes)) return true;
  if (!is_one_of(kNo) && !is_unset(found->second.text)) refuse_word(name, "use true or false");
  return false;
}

void ForeignFields::refuse_word(const std::string& name, const std::string& hint) {
  const std::string& text = values_.at(name).text;
  const bool is_variable = text.find('$') != std::string::npos;
  const std::string what = name + " is " + shortened(text);
  if (std::ranges::find(problems_, what, &Problem::what) != problems_.end()) return;
  refuse(name, "is " + shortened(text),
         is_variable ? "the file does not set it; add --define NAME=VALUE" : hint);
}

void ForeignFields::refuse(const std::string& name, const std::string& what,
                           const std::string& hint) {
  const auto found = values_.find(name);
  problems_.push_back({found == values_.end() ? "" : found->second.where, name + " " + what, hint});
}

std::vector<std::string> ForeignFields::unread() const {
  std::vector<std::string> lines;
  for (const auto& [name, value] : values_) {
    if (read_.contains(name)) continue;
    lines.push_back(value.text.empty() ? name : name + " = " + shortened(value.text));
  }
  return lines;
}

std::vector<std::string> ForeignFields::unread_names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) {
    if (!read_.contains(name)) names.push_back(name);
  }
  return names;
}

void ForeignFields::finish() const {
  if (!problems_.empty()) throw InputError(problems_);
}

/// JSON is YAML but for tabs between values.
YamlNode foreign_tree(std::string text, const std::string& name) {
  std::ranges::replace(text, '\t', ' ');
  return parse_yaml(text, std::make_shared<Origin>(Origin{name, "", true}));
}

ForeignFields fields_of(const YamlNode& tree, bool keeps_empty) {
  ForeignFields fields;
  collect(tree, "", keeps_empty, fields);
  return fields;
}

}  // namespace tessera
