#include "sim/config/keyed_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/config/suggest.h"

namespace tessera {

void KeyedFileReader::add(const Mark& mark, std::string what, std::string hint) {
  problems_.add(mark, "", std::move(what), std::move(hint));
}

void KeyedFileReader::check_keys(const YamlNode& node, const std::vector<std::string>& known) {
  std::set<std::string> seen;
  for (const YamlEntry& entry : node.entries) {
    if (!seen.insert(entry.key).second) {
      add(entry.mark, entry.key + " stands twice", "keep one");
    } else if (std::ranges::count(known, entry.key) == 0) {
      add(entry.mark, "unknown key " + shown_value(entry.key), suggestion(entry.key, known));
    }
  }
}

const YamlNode* KeyedFileReader::value(const YamlNode& node, const std::string& key) {
  const YamlEntry* entry = node.find(key);
  if (entry == nullptr) return nullptr;
  if (entry->value.kind == YamlNode::Kind::scalar) return &entry->value;
  add(entry->value.mark, key + " is no single value", "write " + key + ": VALUE");
  return nullptr;
}

}  // namespace tessera
