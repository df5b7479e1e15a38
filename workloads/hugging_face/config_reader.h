#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "workloads/model_spec.h"

namespace tessera {

/// Where the keys of a file stand: its name, and the line of every dotted path.
struct ConfigPlaces {
  std::string file;
  std::map<std::string, int> lines;

  std::string of(const std::string& path) const {
    const auto line = lines.find(path);
    return line == lines.end() ? file : file + ":" + std::to_string(line->second);
  }
};

/// Takes typed fields out of a JSON object and collects what is wrong with them.
class ConfigReader {
  using json = nlohmann::json;
  static constexpr std::int64_t kLargestDimension = 10'000'000;

 public:
  /// `prefix`: path of the object, with a dot behind it; empty: the whole file. A lenient reader
  /// approximates where others leave_out().
  ConfigReader(const json& object, const ConfigPlaces& places, std::string prefix = "",
               bool lenient = false)
      : object_(object), places_(places), prefix_(std::move(prefix)), lenient_(lenient) {}

  std::int64_t dimension(const char* key, std::int64_t largest = kLargestDimension) {
    if (!has(key)) {
      fail(key, "is missing", "add it, or use a complete config.json");
      return 1;
    }
    return checked_integer(key, largest);
  }
  std::int64_t dimension_or(const char* key, std::int64_t fallback) {
    return has(key) ? checked_integer(key, kLargestDimension) : fallback;
  }
  double probability_or(const char* key, double fallback) {
    if (!has(key)) return fallback;
    const json& value = object_.at(key);
    const double p = value.is_number() ? value.get<double>() : -1;
    if (p >= 0 && p < 1) return p;
    fail(key, "is " + shown(value), "use a probability from 0 to below 1");
    return fallback;
  }
  bool flag_or(const char* key, bool fallback) {
    if (!has(key)) return fallback;
    const json& value = object_.at(key);
    if (value.is_boolean()) return value.get<bool>();
    fail(key, "is " + shown(value), "use true or false");
    return fallback;
  }
  Activation activation_or(const char* key, Activation fallback) {
    if (!has(key)) return fallback;
    static constexpr std::array<std::pair<const char*, Activation>, 7> kNames{
        {{"gelu", Activation::gelu},
         {"gelu_new", Activation::gelu_new},
         {"gelu_fast", Activation::gelu_new},
         {"gelu_pytorch_tanh", Activation::gelu},
         {"relu", Activation::relu},
         {"silu", Activation::silu},
         {"swish", Activation::silu}}};
    const json& value = object_.at(key);
    for (const auto& [name, activation] : kNames) {
      if (value == name) return activation;
    }
    fail(key, "is " + shown(value), "known activations: gelu, gelu_new, relu, silu");
    return fallback;
  }
  std::string text_or(const char* key, const std::string& fallback) {
    const bool is_text = has(key) && object_.at(key).is_string();
    return is_text && !object_.at(key).get<std::string>().empty()
               ? object_.at(key).get<std::string>()
               : fallback;
  }

  /// Whether a field is there; null is nothing. The field counts as read.
  bool has(const char* key) {
    read_.insert(key);
    return object_.contains(key) && !object_.at(key).is_null();
  }
  /// The value of a field, null where there is none. The field counts as read.
  const json& value(const char* key) {
    static const json nothing;
    return has(key) ? object_.at(key) : nothing;
  }
  /// The one of two names of a field that is there; the first where none is.
  const char* name_in_use(const char* first, const char* second) {
    return !has(first) && has(second) ? second : first;
  }
  /// Fields of the object under `key`, of which nothing may be there.
  json object_or_empty(const char* key) {
    if (!has(key)) return json::object();
    if (object_.at(key).is_object()) return object_.at(key);
    fail(key, "is " + shown(object_.at(key)), "use an object");
    return json::object();
  }
  /// A reader of the object under `key`, which has to outlive it.
  ConfigReader inside(const json& object, const std::string& key) const {
    return {object, places_, prefix_ + key + ".", lenient_};
  }
  /// What is wrong, and what is approximated, in an object inside.
  void take_findings(const ConfigReader& inner) {
    problems_.insert(problems_.end(), inner.problems_.begin(), inner.problems_.end());
    approximations_.insert(approximations_.end(), inner.approximations_.begin(),
                           inner.approximations_.end());
    ignored_.insert(ignored_.end(), inner.ignored_.begin(), inner.ignored_.end());
  }

  void fail(const std::string& key, const std::string& what, const std::string& hint) {
    problems_.push_back({places_.of(prefix_ + key), prefix_ + key + " " + what, hint});
  }
  /// `key` says what a step depends on and no family expresses.
  void leave_out(const std::string& key, const std::string& what, const std::string& hint) {
    if (lenient_) return approximate(prefix_ + key + " " + what);
    fail(key, what,
         hint + (hint.empty() ? "" : ", or ") +
             "leave it out by tessera import huggingface --lenient");
  }
  void approximate(const std::string& line) { approximations_.push_back(line); }
  /// `key`, where it says something, is not read by `whose` code: a step does not depend on it.
  void ignore(const char* key, const std::string& whose) {
    const json& given = value(key);
    if (!given.is_null() && given != false)
      ignored_.push_back(prefix_ + key + " (" + whose + " does not read it)");
  }
  void require_divisor(const char* key, std::int64_t divisor, const char* of_key,
                       std::int64_t number) {
    if (number % divisor == 0) return;
    fail(key,
         "= " + std::to_string(divisor) + " does not divide " + of_key + " = " +
             std::to_string(number),
         "check both");
  }
  /// Says that a field inside an object, `path` with dots, was read.
  void note_read(const std::string& path) { read_.insert(path); }
  bool was_read(const std::string& path) const { return read_.contains(path); }
  std::vector<std::string> unread() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object_.items()) {
      if (!read_.contains(key)) keys.push_back(key);
    }
    return keys;
  }
  const std::string& prefix() const { return prefix_; }
  const std::vector<std::string>& approximations() const { return approximations_; }
  const std::vector<std::string>& ignored() const { return ignored_; }
  void finish() && {
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

  static std::string shown(const json& value) {
    if (value.is_structured()) return value.is_array() ? "a list" : "an object";
    constexpr std::size_t kLongest = 40;
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
    return text;
  }

 private:
  std::int64_t checked_integer(const char* key, std::int64_t largest) {
    const json& value = object_.at(key);
    const bool fits = value.is_number_integer() && value >= 1 && value <= largest;
    if (fits) return value.get<std::int64_t>();
    fail(key, "is " + shown(value), "use a whole number from 1 to " + std::to_string(largest));
    return 1;
  }

  const json& object_;
  const ConfigPlaces& places_;
  std::string prefix_;
  bool lenient_ = false;
  std::set<std::string> read_;
  std::vector<Problem> problems_;
  std::vector<std::string> approximations_, ignored_;
};

}  // namespace tessera
