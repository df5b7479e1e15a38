#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

/// Signed relative errors of predictions, by group.
class ErrorGroups {
 public:
  void add(const std::string& group, double predicted, double measured) {
    errors_[group].push_back(predicted / measured - 1);
  }
  /// "group  n  mean  median  bias" per group, in the order of their names; mean and median of
  /// absolute errors [%].
  std::string table() const;
  /// Mean of absolute errors [%]; 0 for an unknown group.
  double mean(const std::string& group) const;

 private:
  std::map<std::string, std::vector<double>> errors_;
};

/// printf into a string of at most 400 characters.

}  // namespace tessera
