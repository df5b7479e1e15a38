#include "app/sweep/sweep_grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/sweep/axis_values.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

/// Whether one of two paths is the other, or a section around it.
bool overlaps(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
}

/// What stands at `path`, as text where its meaning is not known.
FieldValue known_value(const std::string& path, const YamlNode& node) {
  return value_at(path, node).value_or(FieldValue(one_line(node)));
}

YamlNode derived_node(const FieldValue& value, const Mark& mark) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.mark = mark;
  const double* number = std::get_if<double>(&value);
  node.text = number != nullptr ? plain_number(*number) : std::get<std::string>(value);
  return node;
}

}  // namespace

SweepGrid::SweepGrid(const SweepSpec& spec, const ScenarioSource& source)
    : spec_(spec), paths_(spec.columns()) {
  for (const SweepAxis& axis : spec.axes) {
    std::vector<StepValues>& steps = values_.emplace_back();
    for (const std::vector<YamlNode>& step : axis.values) {
      StepValues& values = steps.emplace_back();
      for (std::size_t i = 0; i < step.size(); ++i)
        values.push_back(value_at(axis.paths[i], step[i]));
    }
  }
  read_base_fields(source);
  for (const DerivedSetting& setting : spec.derived) {
    if (!is_early(setting.formula))
      throw InputError(Problem{setting.formula.mark().text(),
                               setting.path + " is derived from fields that are not axes",
                               "use axes, and fields that no axis changes"});
  }
  for (const Expression& condition : spec.conditions)
    (is_early(condition) ? early_ : late_).push_back(&condition);
  for (const SweepExclusion& exclusion : spec.exclusions) {
    std::vector<ExcludedValue>& excluded = exclusions_.emplace_back();
    for (std::size_t i = 0; i < exclusion.paths.size(); ++i) {
      const auto column = std::ranges::find(paths_, exclusion.paths[i]) - paths_.begin();
      ExcludedValue& value =
          excluded.emplace_back(ExcludedValue{static_cast<std::size_t>(column), {}});
      for (const YamlNode& node : exclusion.values[i])
        value.any_of.push_back(known_value(exclusion.paths[i], node));
    }
  }
}

bool SweepGrid::varies(const std::string& path) const {
  return std::ranges::any_of(paths_, [&](const auto& column) { return overlaps(path, column); });
}

/// A base that is no valid scenario by itself has no fields to look up; then conditions wait for
/// the points.
void SweepGrid::read_base_fields(const ScenarioSource& source) {
  std::vector<std::string> wanted;
  const auto want = [&](const Expression& expression) {
    for (const std::string& path : expression.fields())
      if (!varies(path) && !follows_from_others(path)) wanted.push_back(path);
  };
  for (const DerivedSetting& setting : spec_.derived) want(setting.formula);
  for (const Expression& condition : spec_.conditions) want(condition);
  if (wanted.empty()) return;
  for (const FieldSetting& setting : spec_.settings)
    if (const auto value = value_at(setting.path, setting.value))
      base_.emplace(setting.path, *value);
  try {
    const ScenarioFields fields(source.with(spec_.settings));
    for (const std::string& path : wanted)
      if (const auto value = fields.at(path)) base_.emplace(path, *value);
  } catch (const InputError&) {
    return;
  }
}

bool SweepGrid::is_early(const Expression& expression) const {
  return std::ranges::all_of(expression.fields(), [&](const std::string& path) {
    return std::ranges::count(paths_, path) > 0 || (!varies(path) && base_.contains(path));
  });
}

std::vector<SweepGrid::Column> SweepGrid::axis_columns(std::int64_t number) const {
  std::vector<Column> columns;
  std::int64_t below = size();
  for (std::size_t axis = 0; axis < values_.size(); ++axis) {
    const auto steps = static_cast<std::int64_t>(values_[axis].size());
    below /= steps;
    const auto step = static_cast<std::size_t>(number / below % steps);
    const StepValues& values = values_[axis][step];
    for (std::size_t i = 0; i < values.size(); ++i)
      columns.push_back({values[i], &spec_.axes[axis].values[step][i]});
  }
  return columns;
}

std::optional<FieldValue> SweepGrid::look_up(const std::string& path,
                                             const std::vector<Column>& columns) const {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (paths_[i] == path) return columns[i].value;
  const auto base = base_.find(path);
  return base == base_.end() ? std::nullopt : std::optional(base->second);
}

std::vector<SweepGrid::Column> SweepGrid::columns(std::int64_t number) const {
  std::vector<Column> columns = axis_columns(number);
  for (const DerivedSetting& setting : spec_.derived) {
    const auto look = [&](const std::string& path) { return look_up(path, columns); };
    Column column;
    column.value = setting.formula.value(look);
    columns.push_back(std::move(column));
  }
  return columns;
}

bool SweepGrid::is_excluded(const std::vector<Column>& columns) const {
  const auto has = [&](const ExcludedValue& excluded) {
    const Column& column = columns[excluded.column];
    const FieldValue value = column.value.value_or(
        FieldValue(column.node == nullptr ? std::string() : one_line(*column.node)));
    return std::ranges::count(excluded.any_of, value) > 0;
  };
  return std::ranges::any_of(
      exclusions_, [&](const auto& exclusion) { return std::ranges::all_of(exclusion, has); });
}

bool SweepGrid::keeps(std::int64_t number) const {
  const std::vector<Column> all = columns(number);
  const auto look = [&](const std::string& path) { return look_up(path, all); };
  for (const Expression* condition : early_)
    if (!condition->holds(look).value_or(true)) return false;
  return !is_excluded(all);
}

SweepPoint SweepGrid::point(std::int64_t number) const {
  SweepPoint point{.number = number, .settings = spec_.settings};
  const std::vector<Column> all = columns(number);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].node != nullptr) {
      point.values.push_back(one_line(*all[i].node));
      point.settings.push_back({paths_[i], *all[i].node});
      continue;
    }
    const Expression& formula = spec_.derived[i - (all.size() - spec_.derived.size())].formula;
    const FieldValue value = all[i].value.value_or(FieldValue(std::string()));
    const double* derived = std::get_if<double>(&value);
    const bool broken =
        derived != nullptr && holds_whole_numbers(paths_[i]) && *derived != std::floor(*derived);
    if (!all[i].value) point.problem = paths_[i] + " cannot be derived: an axis has no such value";
    if (broken) point.problem = paths_[i] + " = " + plain_number(*derived) + " is no whole number";
    const YamlNode node = derived_node(value, formula.mark());
    point.values.push_back(node.text);
    point.settings.push_back({paths_[i], node});
  }
  return point;
}

bool SweepGrid::keeps(const Scenario& scenario) const {
  if (late_.empty()) return true;
  const ScenarioFields fields(scenario);
  const auto look = [&](const std::string& path) { return fields.at(path); };
  return std::ranges::all_of(
      late_, [&](const Expression* condition) { return condition->holds(look).value_or(false); });
}

}  // namespace tessera
