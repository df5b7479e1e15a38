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

/// A number from `least` to `most`, whole where `Number` is.
template <class Number>
Number number_in(const std::string& text, double least, double most) {
  const double number = parsed_option("--vary", text, parse_ratio);
  if (number < least || number > most || static_cast<double>(static_cast<Number>(number)) != number)
    throw InputError({"--vary", "has " + text, "give a number that the option itself takes"});
  return static_cast<Number>(number);
}

using Setter = std::function<void(RunOptions&, const std::string&)>;

/// What may vary: options whose values do not change the step.
const std::map<std::string, Setter>& varied_options() {
  static const std::map<std::string, Setter> kSetters = {
      {"spares", [](RunOptions& o, const std::string& v) { o.spares = number_in<int>(v, 0, 1e6); }},
      {"repair-crews",
       [](RunOptions& o, const std::string& v) { o.repair_crews = number_in<int>(v, 0, 1e6); }},
      {"failures-per-1000-node-days",
       [](RunOptions& o, const std::string& v) {
         o.per_1000_node_days = number_in<double>(v, 0, 1e9);
       }},
      {"failures", [](RunOptions& o, const std::string& v) { o.failures = v; }},
      {"checkpoint-interval", [](RunOptions& o, const std::string& v) { o.interval = v; }},
      {"memory-interval", [](RunOptions& o, const std::string& v) { o.memory_interval = v; }},
      {"local-interval", [](RunOptions& o, const std::string& v) { o.local_interval = v; }},
      {"incremental-share",
       [](RunOptions& o, const std::string& v) {
         o.incremental_share = number_in<double>(v, 1e-6, 1);
       }},
      {"full-every",
       [](RunOptions& o, const std::string& v) { o.full_every = number_in<int>(v, 1, 1e6); }},
      {"storage-bandwidth", [](RunOptions& o, const std::string& v) { o.storage_bandwidth = v; }},
      {"restart", [](RunOptions& o, const std::string& v) { o.restart = v; }},
      {"repair", [](RunOptions& o, const std::string& v) { o.repair = v; }},
      {"detection", [](RunOptions& o, const std::string& v) { o.detection = v; }},
      {"batch",
       [](RunOptions& o, const std::string& v) {
         if (v != "kept" && v != "smaller")
           throw InputError({"--vary", "batch is " + v, "give kept or smaller"});
         o.batch = v;
       }},
      {"stragglers",
       [](RunOptions& o, const std::string& v) {
         if (v != "evict" && v != "keep")
           throw InputError({"--vary", "stragglers is " + v, "give evict or keep"});
         o.stragglers = v;
       }},
      {"least-replicas",
       [](RunOptions& o, const std::string& v) { o.least_replicas = number_in<int>(v, 1, 1e7); }},
      {"collective-timeout", [](RunOptions& o, const std::string& v) { o.collective_timeout = v; }},
      {"heartbeat", [](RunOptions& o, const std::string& v) { o.heartbeat = v; }},
      {"progress-steps",
       [](RunOptions& o, const std::string& v) {
         o.progress_steps = number_in<double>(v, 0, 1e6);
       }},
      {"policy",
       [](RunOptions& o, const std::string& v) {
         if (v != "restart" && v != "elastic" && v != "replica-wise")
           throw InputError({"--vary", "policy is " + v, "give restart, elastic or replica-wise"});
         o.policy = v;
       }},
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
