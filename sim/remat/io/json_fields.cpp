#include "sim/remat/io/json_fields.h"

#include <cmath>
#include <utility>

#include "hw/units/input_error.h"

namespace tessera::remat {

JsonFields::JsonFields(const nlohmann::json& object, std::string file, std::string path)
    : object_(object), file_(std::move(file)), path_(std::move(path)) {
  if (!object_.is_object())
    refuse("", "is no JSON object", "give {...} with the fields of a graph");
}

void JsonFields::refuse(const std::string& field, const std::string& what,
                        const std::string& hint) const {
  std::string where = file_;
  if (!path_.empty()) where += ": " + path_;
  if (!field.empty()) where += (path_.empty() ? ": " : ".") + field;
  throw InputError({.where = where, .what = what, .hint = hint});
}

const nlohmann::json& JsonFields::field(const char* field) const {
  const auto found = object_.find(field);
  if (found == object_.end()) refuse(field, "is missing", "add the field");
  return *found;
}

std::int64_t JsonFields::as_integer(const nlohmann::json& value, const std::string& where) const {
  const double number = as_number(value, where);
  if (number != std::floor(number) || std::abs(number) > 4e18)
    refuse(where, "is " + value.dump() + ", not a whole number", "round it");
  return value.is_number_integer() ? value.get<std::int64_t>() : static_cast<std::int64_t>(number);
}

double JsonFields::as_number(const nlohmann::json& value, const std::string& where) const {
  if (!value.is_number())
    refuse(where, "is " + value.dump().substr(0, 40) + ", not a number", "give a number");
  return value.get<double>();
}

std::int64_t JsonFields::integer(const char* name) const {
  return as_integer(field(name), name);
}

double JsonFields::number(const char* name) const {
  return as_number(field(name), name);
}

bool JsonFields::flag(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() && found->is_boolean() && found->get<bool>();
}

std::string JsonFields::text(const char* name) const {
  const nlohmann::json& value = field(name);
  if (!value.is_string()) refuse(name, "is no text", "give a string");
  return value.get<std::string>();
}

std::vector<std::string> JsonFields::texts(const char* name) const {
  const nlohmann::json& list = field(name);
  if (!list.is_array()) refuse(name, "is no list", "give a list of strings");
  std::vector<std::string> values;
  for (const nlohmann::json& value : list) {
    if (!value.is_string()) refuse(name, "holds what is no text", "give a list of strings");
    values.push_back(value.get<std::string>());
  }
  return values;
}

std::vector<std::int64_t> JsonFields::integers(const char* name) const {
  const nlohmann::json& list = field(name);
  if (!list.is_array()) refuse(name, "is no list", "give [...] with one number per operator");
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < list.size(); ++i)
    values.push_back(as_integer(list[i], name + ("[" + std::to_string(i) + "]")));
  return values;
}

std::vector<double> JsonFields::numbers(const char* name) const {
  const nlohmann::json& list = field(name);
  if (!list.is_array()) refuse(name, "is no list", "give [...] with one number per operator");
  std::vector<double> values;
  for (std::size_t i = 0; i < list.size(); ++i)
    values.push_back(as_number(list[i], name + ("[" + std::to_string(i) + "]")));
  return values;
}

std::vector<std::vector<std::int64_t>> JsonFields::integer_lists(const char* name) const {
  const nlohmann::json& list = field(name);
  if (!list.is_array()) refuse(name, "is no list", "give a list of lists of numbers");
  std::vector<std::vector<std::int64_t>> values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = name + ("[" + std::to_string(i) + "]");
    if (!list[i].is_array()) refuse(where, "is no list", "give a list of numbers");
    values.emplace_back();
    for (const nlohmann::json& value : list[i]) values.back().push_back(as_integer(value, where));
  }
  return values;
}

std::vector<JsonFields> JsonFields::objects(const char* name) const {
  const nlohmann::json& list = field(name);
  if (!list.is_array()) refuse(name, "is no list", "give a list of objects");
  std::vector<JsonFields> values;
  for (std::size_t i = 0; i < list.size(); ++i)
    values.emplace_back(list[i], file_,
                        (path_.empty() ? "" : path_ + ".") + name + "[" + std::to_string(i) + "]");
  return values;
}

}  // namespace tessera::remat
