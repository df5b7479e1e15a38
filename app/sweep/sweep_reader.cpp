#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "app/sweep/axis_values.h"
#include "app/sweep/sweep_spec.h"
#include "hw/units/input_error.h"
#include "sim/config/problem_list.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Kind = YamlNode::Kind;

const std::vector<std::string> kSweepKeys = {"name", "base",   "set",   "axes",
                                             "zip",  "derive", "where", "exclude"};

class SweepReader {
 public:
  explicit SweepReader(const Catalog& catalog) : catalog_(catalog) {}

  SweepSpec read(const fs::path& file) {
    const YamlNode root = read_yaml_file(file);
    spec_.name = file.stem().string();
    if (root.kind != Kind::mapping) {
      add(root.mark, "is no sweep", "write base: and axes:, see docs/sweeps.md");
      problems_.throw_if_any();
    }
    check_keys(root);
    if (const YamlEntry* entry = root.find("name")) read_name(entry->value);
    read_base(root);
    if (const YamlEntry* entry = root.find("set")) read_settings(entry->value);
    if (const YamlEntry* entry = root.find("axes")) read_axes(entry->value);
    if (const YamlEntry* entry = root.find("zip")) read_zips(entry->value);
    if (const YamlEntry* entry = root.find("derive")) read_derived(entry->value);
    if (const YamlEntry* entry = root.find("where")) read_conditions(entry->value);
    if (const YamlEntry* entry = root.find("exclude")) read_exclusions(entry->value);
    if (problems_.empty() && spec_.axes.empty())
      add(root.mark, "varies nothing", "write axes: {path: [values]}");
    check_size(root.mark);
    problems_.throw_if_any();
    return std::move(spec_);
  }

 private:
  void add(const Mark& mark, std::string what, std::string hint) {
    problems_.add(mark, "", std::move(what), std::move(hint));
  }

  void check_keys(const YamlNode& root) {
    std::set<std::string> seen;
    for (const YamlEntry& entry : root.entries) {
      if (!seen.insert(entry.key).second) {
        add(entry.mark, entry.key + " stands twice", "keep one");
      } else if (std::ranges::count(kSweepKeys, entry.key) == 0) {
        add(entry.mark, "unknown key " + shown_value(entry.key), suggestion(entry.key, kSweepKeys));
      }
    }
  }

  void read_name(const YamlNode& value) {
    if (value.kind == Kind::scalar && !value.text.empty()) {
      spec_.name = value.text;
    } else {
      add(value.mark, "name is no text", "write name: my-sweep");
    }
  }

  void read_base(const YamlNode& root) {
    const YamlEntry* entry = root.find("base");
    if (entry == nullptr) {
      add(root.mark, "has no base", "name the scenario to start from: base: ID or FILE");
      return;
    }
    const YamlNode& value = entry->value;
    if (value.kind == Kind::mapping) {
      spec_.base = value;
      spec_.source = spec_.name;
    } else if (value.kind == Kind::scalar) {
      read_base_file(value);
    } else {
      add(value.mark, "base is no scenario", "name an id or a file, or write its fields");
    }
  }

  void read_base_file(const YamlNode& value) {
    const bool is_id = catalog_.has(CatalogKind::scenarios, value.text);
    const bool named = value.text.find('/') != std::string::npos || value.text.ends_with(".yaml") ||
                       value.text.ends_with(".yml");
    if (!is_id && !named) {
      add(value.mark, "base = " + shown_value(value.text) + " is not in configs/scenarios",
          suggestion(value.text, catalog_.ids(CatalogKind::scenarios)));
      return;
    }
    const fs::path file = is_id ? catalog_.file(CatalogKind::scenarios, value.text)
                                : value.mark.origin->directory / value.text;
    try {
      spec_.base = read_yaml_file(file);
      spec_.source = file.stem().string();
    } catch (const InputError& error) {
      problems_.add(error, "");
    }
  }

  /// The canonical path of a key; empty with a problem for one that is no field, or taken.
  std::string path_of(const YamlEntry& entry) {
    try {
      std::string path = canonical_path(entry.key);
      for (const std::string& other : taken_) {
        if (path != other && !path.starts_with(other + ".") && !other.starts_with(path + "."))
          continue;
        const std::string which = path == other ? " is given twice" : " overlaps with " + other;
        add(entry.mark, path + which, "let one axis set both with zip:");
        return "";
      }
      taken_.push_back(path);
      return path;
    } catch (const InputError& error) {
      const Problem& problem = error.problems().front();
      add(entry.mark, problem.what, problem.hint);
      return "";
    }
  }

  bool is_mapping(const YamlNode& value, const std::string& key) {
    if (value.kind == Kind::mapping) return true;
    add(value.mark, key + " is no mapping", "write " + key + ": {path: ...}");
    return false;
  }

  void read_settings(const YamlNode& value) {
    if (!is_mapping(value, "set")) return;
    for (const YamlEntry& entry : value.entries) {
      // An axis below a fixed section is fine: the axis comes later and wins.
      try {
        spec_.settings.push_back({canonical_path(entry.key), entry.value});
      } catch (const InputError& error) {
        add(entry.mark, error.problems().front().what, error.problems().front().hint);
      }
    }
  }

  void read_axes(const YamlNode& value) {
    if (!is_mapping(value, "axes")) return;
    for (const YamlEntry& entry : value.entries) {
      SweepAxis axis;
      axis.paths = {path_of(entry)};
      for (YamlNode& node : values_of(entry)) axis.values.push_back({std::move(node)});
      if (!axis.paths.front().empty() && !axis.values.empty())
        spec_.axes.push_back(std::move(axis));
    }
  }

  std::vector<YamlNode> values_of(const YamlEntry& entry) {
    try {
      return axis_values(entry.value);
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems())
        add(entry.value.mark, entry.key + problem.what, problem.hint);
      return {};
    }
  }

  void read_zips(const YamlNode& value) {
    const bool one = value.kind == Kind::mapping;
    if (!one && value.kind != Kind::sequence) {
      add(value.mark, "zip is no list", "write zip: [{path: [..], path: [..]}]");
      return;
    }
    const std::vector<YamlNode> groups = one ? std::vector{value} : value.items;
    for (const YamlNode& group : groups)
      if (is_mapping(group, "zip")) read_zip(group);
  }

  void read_zip(const YamlNode& group) {
    SweepAxis axis;
    for (const YamlEntry& entry : group.entries) {
      const std::string path = path_of(entry);
      const std::vector<YamlNode> values = values_of(entry);
      if (path.empty() || values.empty()) continue;
      if (!axis.paths.empty() && values.size() != axis.values.size()) {
        add(entry.value.mark,
            path + " has " + std::to_string(values.size()) + " values, " + axis.paths.front() +
                " has " + std::to_string(axis.values.size()),
            "fields of a zip have equally many");
        continue;
      }
      axis.values.resize(values.size());
      axis.paths.push_back(path);
      for (std::size_t i = 0; i < values.size(); ++i) axis.values[i].push_back(values[i]);
    }
    if (!axis.paths.empty()) spec_.axes.push_back(std::move(axis));
  }

  void add_expression_problem(const InputError& error) { problems_.add(error, ""); }

  void read_derived(const YamlNode& value) {
    if (!is_mapping(value, "derive")) return;
    for (const YamlEntry& entry : value.entries) {
      const std::string path = path_of(entry);
      if (entry.value.kind != Kind::scalar) {
        add(entry.value.mark, entry.key + " is no formula",
            "write " + entry.key + ": 8 / parallelism.tensor");
        continue;
      }
      try {
        Expression formula(entry.value.text, entry.value.mark);
        if (!path.empty()) spec_.derived.push_back({path, std::move(formula)});
      } catch (const InputError& error) {
        add_expression_problem(error);
      }
    }
  }

  void read_conditions(const YamlNode& value) {
    const std::vector<YamlNode> items =
        value.kind == Kind::sequence ? value.items : std::vector{value};
    for (const YamlNode& item : items) {
      if (item.kind != Kind::scalar) {
        add(item.mark, "where is no condition", "write where: [parallelism.tensor <= 8]");
        continue;
      }
      try {
        spec_.conditions.emplace_back(item.text, item.mark);
      } catch (const InputError& error) {
        add_expression_problem(error);
      }
    }
  }

  void read_exclusions(const YamlNode& value) {
    if (value.kind != Kind::sequence) {
      add(value.mark, "exclude is no list", "write exclude: [{path: value, path: value}]");
      return;
    }
    for (const YamlNode& item : value.items)
      if (is_mapping(item, "exclude")) read_exclusion(item);
  }

  void read_exclusion(const YamlNode& item) {
    const std::vector<std::string> columns = spec_.columns();
    SweepExclusion exclusion;
    for (const YamlEntry& entry : item.entries) {
      std::string path;
      try {
        path = canonical_path(entry.key);
      } catch (const InputError& error) {
        add(entry.mark, error.problems().front().what, error.problems().front().hint);
        continue;
      }
      if (std::ranges::count(columns, path) == 0) {
        add(entry.mark, path + " is no axis", "exclude compares axes; use where: for other fields");
        continue;
      }
      exclusion.paths.push_back(path);
      exclusion.values.push_back(entry.value.kind == Kind::sequence ? entry.value.items
                                                                    : std::vector{entry.value});
    }
    if (!exclusion.paths.empty()) spec_.exclusions.push_back(std::move(exclusion));
  }

  void check_size(const Mark& mark) {
    double points = 1;
    for (const SweepAxis& axis : spec_.axes) points *= static_cast<double>(axis.values.size());
    if (points > static_cast<double>(kMaxGridPoints))
      add(mark, "has more than 10^12 points", "make the axes shorter");
  }

  const Catalog& catalog_;
  SweepSpec spec_;
  ProblemList problems_;
  std::vector<std::string> taken_;
};

}  // namespace

std::vector<std::string> SweepSpec::columns() const {
  std::vector<std::string> columns;
  for (const SweepAxis& axis : axes)
    columns.insert(columns.end(), axis.paths.begin(), axis.paths.end());
  for (const DerivedSetting& setting : derived) columns.push_back(setting.path);
  return columns;
}

std::int64_t SweepSpec::grid_points() const {
  std::int64_t points = 1;
  for (const SweepAxis& axis : axes) points *= static_cast<std::int64_t>(axis.values.size());
  return points;
}

SweepSpec read_sweep(const fs::path& file, const Catalog& catalog) {
  return SweepReader(catalog).read(file);
}

}  // namespace tessera
