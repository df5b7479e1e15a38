#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands/run/run_options.h"
#include "app/shell/parsed_option.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

constexpr std::size_t kMostVariants = 10'000;

using Setter = std::function<void(RunOptions&, const std::string&)>;

Setter text_of(std::string RunOptions::*field) {
  return [=](RunOptions& options, const std::string& value) { options.*field = value; };
}

/// A number from `least` to `most`, whole where the field is.
template <class Number>
Setter number_of(Number RunOptions::*field, double least, double most) {
  return [=](RunOptions& options, const std::string& text) {
    const double given = parsed_option("--vary", text, parse_ratio);
    const auto number = static_cast<Number>(std::clamp(given, least, most));
    if (static_cast<double>(number) != given)
      throw InputError({"--vary", "has " + text, "give a number that the option itself takes"});
    options.*field = number;
  };
}

Setter word_of(std::string RunOptions::*field, const std::string& name,
               const std::vector<std::string>& words) {
  return [=](RunOptions& options, const std::string& value) {
    if (std::ranges::find(words, value) == words.end())
      throw InputError({"--vary", name + " is " + value, "give one of " + listed(words)});
    options.*field = value;
  };
}

/// What may vary: options whose values do not change the step.
const std::map<std::string, Setter>& varied_options() {
  using Run = RunOptions;
  static const std::map<std::string, Setter> kSetters = {
      {"spares", number_of(&Run::spares, 0, 1e6)},
      {"repair-crews", number_of(&Run::repair_crews, 0, 1e6)},
      {"failures-per-1000-node-days", number_of(&Run::per_1000_node_days, 0, 1e9)},
      {"failures", text_of(&Run::failures)},
      {"checkpoint-interval", text_of(&Run::interval)},
      {"memory-interval", text_of(&Run::memory_interval)},
      {"local-interval", text_of(&Run::local_interval)},
      {"incremental-share", number_of(&Run::incremental_share, 1e-6, 1)},
      {"full-every", number_of(&Run::full_every, 1, 1e6)},
      {"storage-bandwidth", text_of(&Run::storage_bandwidth)},
      {"restart", text_of(&Run::restart)},
      {"repair", text_of(&Run::repair)},
      {"detection", text_of(&Run::detection)},
      {"batch", word_of(&Run::batch, "batch", {"kept", "smaller"})},
      {"stragglers", word_of(&Run::stragglers, "stragglers", {"evict", "keep"})},
      {"least-replicas", number_of(&Run::least_replicas, 1, 1e7)},
      {"collective-timeout", text_of(&Run::collective_timeout)},
      {"heartbeat", text_of(&Run::heartbeat)},
      {"progress-steps", number_of(&Run::progress_steps, 0, 1e6)},
      {"policy", word_of(&Run::policy, "policy", {"restart", "elastic", "replica-wise"})},
  };
  return kSetters;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// "spares=0,16,32".
std::pair<std::string, std::vector<std::string>> axis_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!varied_options().contains(name)) {
    std::vector<std::string> known;
    for (const auto& [option, setter] : varied_options()) known.push_back(option);
    throw InputError({"--vary", name + " is nothing that can vary", suggestion(name, known)});
  }
  if (equals == std::string::npos || equals + 1 == text.size())
    throw InputError({"--vary", "is " + text, "give values, as " + name + "=A,B,C"});
  return {name, split_at_commas(text.substr(equals + 1))};
}

}  // namespace

std::vector<RunVariant> run_variants(const RunOptions& options) {
  std::vector<RunVariant> variants = {{{}, options}};
  for (const std::string& text : options.vary) {
    const auto [name, values] = axis_of(text);
    if (variants.size() * values.size() > kMostVariants)
      throw InputError({"--vary", "makes more than 10,000 runs", "give fewer values"});
    std::vector<RunVariant> next;
    for (const RunVariant& variant : variants) {
      for (const std::string& value : values) {
        next.push_back(variant);
        next.back().settings.emplace_back(name, value);
        varied_options().at(name)(next.back().options, value);
      }
    }
    variants = std::move(next);
  }
  return variants;
}

}  // namespace tessera
