#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/sweep/sweep_spec.h"

namespace tessera {

/// One scenario of a sweep.
struct SweepPoint {
  std::int64_t number = 0;             ///< position in the full grid, the first axis slowest
  std::vector<FieldSetting> settings;  ///< what it changes in the base
  std::vector<std::string> values;     ///< of the sweep's columns, as text
  std::string problem;                 ///< why a derived field has no value; empty if it has
};

/// The points of a sweep by their numbers.
class SweepGrid {
 public:
  /// `source` is made of the spec's base. Throws InputError for a derived field that needs fields
  /// which are only known of a whole scenario.
  SweepGrid(const SweepSpec& spec, const ScenarioSource& source);

  std::int64_t size() const { return spec_.grid_points(); }
  /// Whether the sweep's conditions on axes keep the point. Cheap: nothing is loaded.
  bool keeps(std::int64_t number) const;
  SweepPoint point(std::int64_t number) const;
  /// The conditions on other fields. True where there are none.
  bool keeps(const Scenario& scenario) const;

 private:
  using StepValues = std::vector<std::optional<FieldValue>>;  ///< by field of the axis
  struct Column {
    std::optional<FieldValue> value;
    const YamlNode* node = nullptr;  ///< null for derived fields
  };
  std::vector<Column> axis_columns(std::int64_t number) const;
  std::vector<Column> columns(std::int64_t number) const;
  std::optional<FieldValue> look_up(const std::string& path,
                                    const std::vector<Column>& columns) const;
  std::optional<FieldValue> base_value(const std::string& path) const;
  bool varies(const std::string& path) const;
  bool is_early(const Expression& expression) const;
  bool is_excluded(const std::vector<Column>& columns) const;
  void read_base_fields(const ScenarioSource& source);

  const SweepSpec& spec_;
  std::vector<std::string> paths_;               ///< of the columns
  std::vector<std::vector<StepValues>> values_;  ///< [axis][step]
  std::map<std::string, FieldValue> base_;       ///< fields that no point changes
  std::vector<const Expression*> early_;
  std::vector<const Expression*> late_;
  struct ExcludedValue {
    std::size_t column;
    std::vector<FieldValue> any_of;
  };
  std::vector<std::vector<ExcludedValue>> exclusions_;
};

/// Which points of a grid to run.
struct PointChoice {
  std::optional<std::int64_t> sample;  ///< so many, as a Latin hypercube over the axes
  std::uint64_t seed = 1;
  std::optional<std::int64_t> limit;  ///< the first ones
  int shard = 1;                      ///< 1 to `shards`: every `shards`-th point
  int shards = 1;
};

/// Numbers of the points to run, ascending. Throws InputError for a grid too large to go through.
std::vector<std::int64_t> chosen_points(const SweepGrid& grid, const SweepSpec& spec,
                                        const PointChoice& choice);

}  // namespace tessera
