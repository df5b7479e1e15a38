#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units/input_error.h"
#include "sim/config/files/yaml_tree.h"

namespace tessera {

/// Collects what is wrong with a configuration, so that all of it is reported at once: file by file
/// in the order of their first problems, each from top to bottom.
class ProblemList {
 public:
  /// `path` is the field that the problem is about ("training.mode"); it may be empty.
  void add(const Mark& mark, const std::string& path, std::string what, std::string hint);
  void add(const InputError& error, const std::string& path);

  bool empty() const { return entries_.empty(); }
  /// Whether `path`, a section around it or a field in it is the subject of a problem.
  bool touches(const std::string& path) const;
  /// Throws InputError with every problem, if there is one.
  void throw_if_any() const;

 private:
  struct Entry {
    std::string file;
    int line = 0;
    int column = 0;
    Problem problem;
  };
  void add(Entry entry, const std::string& path);

  std::vector<Entry> entries_;
  std::vector<std::string> paths_;
  std::int64_t omitted_ = 0;
};

/// `value` as messages quote it: shortened to 60 bytes, quotes around what is no simple word.
std::string shown_value(const std::string& value);

}  // namespace tessera
