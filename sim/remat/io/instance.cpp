#include "sim/remat/io/instance.h"

#include <algorithm>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "sim/remat/io/formats.h"

namespace tessera::remat {
namespace {

nlohmann::json parse(const std::string& text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error);
    const std::size_t byte = syntax ? std::min(syntax->byte, text.size()) : 0;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(byte), '\n');
    throw InputError({.where = file + ":" + std::to_string(line),
                      .what = "is no JSON",
                      .hint = "give a JSON graph, or a DTR log with one object per line"});
  }
}

/// Operator logs are many objects, graphs are one.
bool is_log(const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  return first.find("\"INSTRUCTION\"") != std::string::npos;
}

Instance read_json(const JsonFields& fields, int number) {
  if (fields.has("instances")) return read_golden(fields, number);
  if (fields.has("mem_kib")) return read_monet(fields);
  if (fields.has("nodes")) return read_poet(fields);
  if (fields.has("ops")) return read_operators(fields);
  fields.refuse("", "is no graph that is known", "give the field ops, instances, mem_kib or nodes");
}

}  // namespace

Instance read_instance(const std::filesystem::path& file, int number) {
  const std::string text = read_whole_file(file, "check the path");
  Instance instance;
  if (is_log(text)) {
    instance = read_dtr_log(text, file.string());
  } else {
    const nlohmann::json json = parse(text, file.string());
    instance = read_json(JsonFields(json, file.string(), ""), number);
  }
  if (number < 0 || number >= instance.count)
    throw InputError({.where = file.string(),
                      .what = "has no instance " + std::to_string(number),
                      .hint = "give a number from 0 to " + std::to_string(instance.count - 1)});
  return instance;
}

}  // namespace tessera::remat
