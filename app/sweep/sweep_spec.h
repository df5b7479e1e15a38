#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/sweep/expression.h"
#include "sim/config/catalog.h"
#include "sim/config/scenario_source.h"

namespace tessera {

/// Fields that change together: one, or those of a zip. `values[i]` is what they are at step i.
struct SweepAxis {
  std::vector<std::string> paths;             ///< canonical
  std::vector<std::vector<YamlNode>> values;  ///< [step][field]
};

/// A field that follows from the axes.
struct DerivedSetting {
  std::string path;  ///< canonical
  Expression formula;
};

/// Points whose fields all have one of these values are left out.
struct SweepExclusion {
  std::vector<std::string> paths;             ///< canonical, each an axis or derived
  std::vector<std::vector<YamlNode>> values;  ///< [field][any of]
};

/// The file of `tessera sweep`: a scenario and what varies in it.
struct SweepSpec {
  std::string name;
  YamlNode base;       ///< fields of the scenario to start from
  std::string source;  ///< its title
  std::vector<FieldSetting> settings;
  std::vector<SweepAxis> axes;
  std::vector<DerivedSetting> derived;
  std::vector<Expression> conditions;
  std::vector<SweepExclusion> exclusions;

  /// Paths that differ from point to point, in the order of the file: axes, then derived.
  std::vector<std::string> columns() const;
  /// Points of the full grid. At most kMaxGridPoints.
  std::int64_t grid_points() const;
};

constexpr std::int64_t kMaxGridPoints = 1'000'000'000'000;
constexpr std::int64_t kMaxAxisValues = 100'000;

/// Reads a sweep. Throws InputError with every problem as file:line:column.
SweepSpec read_sweep(const std::filesystem::path& file, const Catalog& catalog);

}  // namespace tessera
