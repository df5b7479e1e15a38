#include "sim/longrun/failure_file.h"

#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/config/keyed_file.h"

namespace tessera {
namespace {

using Kind = YamlNode::Kind;

const std::vector<std::string> kFileKeys = {"name", "source", "gpus_per_node", "node_days",
                                            "failures"};
const std::vector<std::string> kClassKeys = {
    "name",        "component", "events",    "per_1000_node_days", "mtbf", "shape",
    "takes_nodes", "repair",    "detection", "slowdown",           "set",  "found_after",
    "restart",     "planned",   "source"};

constexpr double kMostPerNodeDay = 1e6;

/// Events of what a node has one of for each GPU.
bool comes_with_each_gpu(Component component) {
  return component == Component::gpu || component == Component::hbm ||
         component == Component::nic || component == Component::link;
}

class FailureReader : KeyedFileReader {
 public:
  explicit FailureReader(int gpus_per_node) : gpus_per_node_(gpus_per_node) {}

  FailureModel read(const std::filesystem::path& file) {
    const YamlNode root = read_yaml_file(file);
    if (root.kind != Kind::mapping) {
      add(root.mark, "is no file of failures", "write failures: [{name: gpu, ...}]");
      problems_.throw_if_any();
    }
    check_keys(root, kFileKeys);
    model_.name = file.stem().string();
    if (const YamlNode* name = value(root, "name")) model_.name = name->text;
    described_gpus_ = number(root, "gpus_per_node", 1, 1000).value_or(gpus_per_node_);
    node_days_ = number(root, "node_days", 1e-3, 1e12).value_or(0);
    const YamlEntry* list = root.find("failures");
    if (list == nullptr || list->value.kind != Kind::sequence || list->value.items.empty()) {
      add(list == nullptr ? root.mark : list->value.mark, "has no list of failures",
          "write failures: [{name: gpu, component: gpu, per_1000_node_days: 1.3}]");
    } else {
      for (const YamlNode& item : list->value.items) read_class(item);
    }
    problems_.throw_if_any();
    return std::move(model_);
  }

 private:
  /// What `parse` makes of the value of `key`; problems name the key.
  template <class Parse>
  auto parsed(const YamlNode& node, const std::string& key, Parse parse)
      -> std::optional<decltype(parse(std::string()))> {
    const YamlNode* found = value(node, key);
    if (found == nullptr) return std::nullopt;
    try {
      return parse(found->text);
    } catch (const InputError& error) {
      const Problem& problem = error.problems().front();
      add(found->mark, key + " = " + problem.what, problem.hint);
      return std::nullopt;
    }
  }

  std::optional<double> number(const YamlNode& node, const std::string& key, double least,
                               double most) {
    return parsed(node, key, [&](const std::string& text) {
      const double found = parse_ratio(text);
      if (found >= least && found <= most) return found;
      throw InputError(
          {"", text + " is out of range",
           "give a number from " + std::to_string(least) + " to " + std::to_string(most)});
    });
  }

  void read_class(const YamlNode& item) {
    if (item.kind != Kind::mapping) {
      return add(item.mark, "is no failure", "write {name: gpu, component: gpu, events: 148}");
    }
    check_keys(item, kClassKeys);
    FailureClass of;
    of.component = parsed(item, "component", parse_component).value_or(Component::host);
    of.name = std::string(name_of(of.component));
    if (const YamlNode* name = value(item, "name")) of.name = name->text;
    if (!names_.insert(of.name).second)
      add(item.mark, of.name + " is the name of another failure", "give each its own name:");
    of.per_node_day = events_per_node_day(item, of.component);
    if (!(of.per_node_day <= kMostPerNodeDay))
      add(item.mark, of.name + " happens more than a million times a day on every node",
          "check its rate");
    of.shape = number(item, "shape", 0.2, 20).value_or(1);
    of.takes_nodes = static_cast<int>(number(item, "takes_nodes", 1, 1e6).value_or(1));
    of.repair = parsed(item, "repair", parse_seconds).value_or(Seconds(0));
    of.detection = parsed(item, "detection", parse_seconds).value_or(Seconds(0));
    of.restart = parsed(item, "restart", parse_seconds);
    of.slowdown = number(item, "slowdown", 1, 1000).value_or(1);
    if (const YamlNode* source = value(item, "source")) of.source = source->text;
    of.found_after = parsed(item, "found_after", parse_seconds).value_or(Seconds(0));
    read_state(item, of);
    read_planned(item, of);
    check_slow(item, of);
    model_.classes.push_back(std::move(of));
  }

  void read_state(const YamlNode& item, FailureClass& of) {
    const YamlEntry* entry = item.find("set");
    if (entry == nullptr) return;
    for (const YamlNode& line : entry->value.items) {
      if (line.kind == Kind::scalar) of.state.push_back(line.text);
    }
    if (of.state.empty() || of.state.size() != entry->value.items.size())
      add(entry->value.mark, "set is no list of settings",
          "write set: ['perturbation.gpus=[{ranks: 0, slowdown: 1.5}]']");
    if (item.find("slowdown") != nullptr)
      add(entry->mark, of.name + " has slowdown and set", "keep one: set simulates the slowdown");
  }

  void read_planned(const YamlNode& item, FailureClass& of) {
    const YamlNode* planned = value(item, "planned");
    if (planned == nullptr) return;
    of.announced = planned->text == "true";
    if (planned->text != "true" && planned->text != "false")
      add(planned->mark, "planned = " + shown_value(planned->text) + " is no answer",
          "write true or false");
    if (of.announced && of.repair.value() > 0)
      add(item.mark, "a planned stop takes no node out", "leave repair out, and say restart");
  }

  void check_slow(const YamlNode& item, const FailureClass& of) {
    const bool slow = of.slowdown > 1 || !of.state.empty();
    if (slow && of.detection.value() <= 0)
      add(item.mark, of.name + " slows the job for no time",
          "say detection: how long until it is found");
    if (of.is_silent() && (slow || of.takes_nodes > 1 || of.announced))
      add(item.mark, of.name + " is found late, and slow, planned or of several nodes",
          "describe these as failures of their own");
    if (slow && (of.takes_nodes > 1 || of.announced))
      add(item.mark, of.name + " is slow, and takes several nodes or is planned",
          "describe these as failures of their own");
  }

  double events_per_node_day(const YamlNode& item, Component component) {
    const double scale =
        comes_with_each_gpu(component) ? static_cast<double>(gpus_per_node_) / described_gpus_ : 1;
    const auto events = number(item, "events", 0, 1e12);
    const auto rate = number(item, "per_1000_node_days", 0, 1e9);
    const auto mtbf = parsed(item, "mtbf", parse_seconds);
    const int given = (item.find("events") != nullptr) +
                      (item.find("per_1000_node_days") != nullptr) + (item.find("mtbf") != nullptr);
    if (given != 1) {
      add(item.mark, "has " + std::to_string(given) + " rates",
          "give one of events (with node_days of the file), per_1000_node_days, mtbf (of a node)");
      return 0;
    }
    if (events && node_days_ == 0)
      add(item.mark, "counts events, but the file has no node_days",
          "add node_days: nodes times days in which they happened");
    if (events) return node_days_ > 0 ? scale * *events / node_days_ : 0;
    if (rate) return scale * *rate / 1000;
    if (mtbf && mtbf->value() <= 0)
      add(item.mark, "mtbf is 0", "give the mean time between events");
    return mtbf && mtbf->value() > 0 ? scale * 86'400 / mtbf->value() : 0;
  }

  int gpus_per_node_;
  double described_gpus_ = 0;  ///< of the nodes whose rates the file states
  double node_days_ = 0;
  FailureModel model_;
  std::set<std::string> names_;
};

}  // namespace

FailureModel read_failures(const std::filesystem::path& file, int gpus_per_node) {
  return FailureReader(gpus_per_node).read(file);
}

}  // namespace tessera
