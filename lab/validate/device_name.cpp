#include "lab/validate/device_name.h"

#include <algorithm>
#include <vector>

namespace tessera {
namespace {

/// Words of letters and digits, in lower case.
std::vector<std::string> lower_words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool other = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper || other) {
      words.back() += upper ? static_cast<char>(c + 32) : c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has_digit(const std::string& word) {
  return word.find_first_of("0123456789") != std::string::npos;
}

/// "a100" of "NVIDIA A100-SXM4-80GB"; empty where no word has a digit.
std::string model_of(const std::vector<std::string>& words) {
  const auto found = std::ranges::find_if(words, has_digit);
  return found == words.end() ? "" : *found;
}

/// "sxm" or "pcie", where a word says it.
std::string form_of(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.starts_with("sxm")) return "sxm";
    if (word.starts_with("pcie")) return "pcie";
  }
  return "";
}

}  // namespace

bool can_be_gpu(const std::string& device, const std::string& id) {
  const auto device_words = lower_words(device);
  const auto id_words = lower_words(id);
  const std::string model = model_of(device_words);
  if (model.empty() || model_of(id_words).empty()) return true;
  if (std::ranges::find(id_words, model) == id_words.end()) return false;
  const std::string form = form_of(device_words);
  const std::string id_form = form_of(id_words);
  return form.empty() || id_form.empty() || form == id_form;
}

}  // namespace tessera
