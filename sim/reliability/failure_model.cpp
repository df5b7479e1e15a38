#include "sim/reliability/failure_model.h"

#include <cstddef>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kAllComponents.size()> kComponentNames = {
    "gpu", "hbm", "nic", "link", "switch", "host", "power", "software"};

}  // namespace

std::string_view name_of(Component component) {
  return kComponentNames[static_cast<std::size_t>(component)];
}

Component parse_component(std::string_view name) {
  std::string list;
  for (const Component component : kAllComponents) {
    if (name == name_of(component)) return component;
    list += (list.empty() ? "" : ", ") + std::string(name_of(component));
  }
  throw InputError({"", "\"" + std::string(name) + "\" is no component", "use one of " + list});
}

double FailureModel::stops_per_day(int nodes) const {
  double sum = 0;
  for (const FailureClass& of : classes) {
    const bool passes = of.is_slow() && (of.stays || of.repair.value() == 0);
    if (!passes) sum += of.per_node_day * nodes;
  }
  return sum;
}

}  // namespace tessera
