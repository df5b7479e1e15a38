#include <array>

#include "hw/units/input_error.h"
#include "sim/remat/baselines/baselines.h"
#include "sim/remat/libra_planner.h"
#include "sim/remat/planner.h"
#include "sim/remat/tessera/tessera_planner.h"

namespace tessera::remat {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Planner> (*make)();
};

template <class Type>
std::unique_ptr<Planner> make() {
  return std::make_unique<Type>();
}

constexpr std::array kPlanners{Entry{"tessera", make<TesseraPlanner>},
                               Entry{"libra", make<LibraPlanner>},
                               Entry{"none", make<NonePlanner>},
                               Entry{"chen_sqrt", make<ChenSqrtPlanner>},
                               Entry{"chen_greedy", make<ChenGreedyPlanner>},
                               Entry{"rotor", make<RotorPlanner>},
                               Entry{"knapsack", make<KnapsackPlanner>},
                               Entry{"dtr", make<DtrPlanner>},
                               Entry{"capuchin", make<CapuchinPlanner>},
                               Entry{"belady", make<BeladyPlanner>},
                               Entry{"exact", make<ExactPlanner>}};

}  // namespace

const std::vector<std::string>& planner_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Entry& entry : kPlanners) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

std::unique_ptr<Planner> make_planner(std::string_view name) {
  std::string known;
  for (const Entry& entry : kPlanners) {
    if (name == entry.name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw InputError({.where = "planner",
                    .what = "'" + std::string(name) + "' is unknown",
                    .hint = "use one of " + known});
}

}  // namespace tessera::remat
