#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Named values of another program's configuration. It knows which of them were asked for, so that
/// the rest can be listed, and collects what is wrong with those that were.
class ForeignFields {
 public:
  struct Value {
    std::string text;
    std::string where;     ///< "file:line"
    bool is_null = false;  ///< a key without a value, where a switch without one means yes
  };

  /// The last value of a name counts.
  void add(const std::string& name, Value value) { values_[name] = std::move(value); }

  /// Whether `name` is there; it does not count as asked for.
  bool has(const std::string& name) const { return values_.contains(name); }
  /// Whether its value is "auto": whoever runs the program decides. It counts as asked for.
  bool is_auto(const std::string& name);
  /// Nothing where the name is missing, its value empty, null or "auto".
  std::optional<std::string> text(const std::string& name);
  /// As it stands there, where "none" and "auto" are words like others. It counts as asked for.
  std::optional<std::string> word(const std::string& name);
  /// A whole number from `least` on; 5e8 is one. Anything else is a problem.
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least = 1);
  std::optional<double> number(const std::string& name);
  /// Counts it as asked for, whatever it says.
  void take(const std::string& name) {
    if (has(name)) read_[name] = true;
  }
  /// Of a switch: there without a value, or with one that means yes. What means neither yes nor no
  /// is a problem.
  bool flag(const std::string& name);
  /// Adds a problem at the place of `name`.
  void refuse(const std::string& name, const std::string& what, const std::string& hint);

  const std::map<std::string, Value>& values() const { return values_; }
  /// Whether `name` was asked for.
  bool was_read(const std::string& name) const { return read_.contains(name); }

  const std::vector<Problem>& problems() const { return problems_; }
  void add_problem(Problem problem) { problems_.push_back(std::move(problem)); }

  /// "name = value" of each that was not asked for, in order of names; values of "auto" too.
  std::vector<std::string> unread() const;
  /// Names of those that were not asked for.
  std::vector<std::string> unread_names() const;
  /// Throws InputError where there are problems.
  void finish() const;

 private:
  /// A value of another kind than the one that was asked for, once.
  void refuse_word(const std::string& name, const std::string& hint);

  std::map<std::string, Value> values_;
  std::map<std::string, bool> read_;
  std::vector<Problem> problems_;
};

/// JSON or YAML of another program; `name` stands for the file. Throws InputError where it is
/// neither.
YamlNode foreign_tree(std::string text, const std::string& name);

/// The scalars of a tree under dotted names: "zero_optimization.stage". Lists are one value each.
/// `keeps_empty`: mappings that hold nothing are "{}", where that means more than their absence.
ForeignFields fields_of(const YamlNode& tree, bool keeps_empty = false);

/// A key that says what is not simulated, unless it has its usual value, in lower case.
struct UsualValue {
  std::string_view key;
  std::string_view usual;
  const char* what;
};

}  // namespace tessera
