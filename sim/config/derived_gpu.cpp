#include "sim/config/derived_gpu.h"

#include <array>
#include <string_view>

namespace tessera {
namespace {

/// What goes with the SMs that a die has switched on.
constexpr std::array<std::string_view, 9> kOfTheSms{"fp32", "fp32_matrix", "tf32", "bf16", "fp16",
                                                    "fp8",  "int8",        "fp4",  "l2"};

std::string value_of(const YamlNode& section, std::string_view key) {
  const YamlEntry* entry = section.find(key);
  return entry == nullptr ? std::string() : entry->value.text;
}

}  // namespace

std::string figures_of_another_gpu(const YamlNode& base, const YamlNode& changes) {
  const std::string sms = value_of(changes, "sm_count");
  const std::string id = value_of(changes, "id");
  const bool another = !id.empty() && id != value_of(base, "id");
  if (!another || sms.empty() || sms == value_of(base, "sm_count")) return {};
  std::string names;
  for (const std::string_view name : kOfTheSms)
    if (base.find(name) != nullptr && changes.find(name) == nullptr)
      names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace tessera
