#include "sim/config/fields/field_path.h"

namespace tessera {

std::string joined_path(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> names(1);
  for (const char c : path) {
    if (c == '.') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

}  // namespace tessera
