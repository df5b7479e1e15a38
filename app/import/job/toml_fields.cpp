#include "app/import/job/toml_fields.h"

#include <sstream>

#include <toml++/toml.h>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

std::string scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    return formatted("%.15g", number->get());
  }
  std::ostringstream out;  // dates and times
  out << toml::node_view<const toml::node>(node);
  return out.str();
}

std::string list_text(const toml::array& list) {
  std::string text;
  for (const toml::node& item : list) {
    if (!text.empty()) text += ',';
    text += item.is_value() ? scalar_text(item) : std::string("...");
  }
  return text;
}

void add_table(const toml::table& table, const std::string& prefix, const std::string& file,
               ForeignFields& fields) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      add_table(*inner, name + ".", file, fields);
      continue;
    }
    const toml::array* list = node.as_array();
    fields.add(name, {list != nullptr ? list_text(*list) : scalar_text(node),
                      file + ":" + std::to_string(node.source().begin.line)});
  }
}

}  // namespace

ForeignFields toml_fields(const std::string& text, const std::string& name) {
  try {
    ForeignFields fields;
    add_table(toml::parse(text, name), "", name, fields);
    return fields;
  } catch (const toml::parse_error& error) {
    const std::string place = name + ":" + std::to_string(error.source().begin.line);
    throw InputError(
        {place, "is no TOML: " + std::string(error.description()), "correct the file"});
  }
}

}  // namespace tessera
