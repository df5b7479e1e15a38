#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"

namespace tessera {

/// Collects what is wrong with a description.
class Findings {
 public:
  void require(bool holds, std::string where, std::string what, std::string hint) {
    if (holds) return;
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }

  void require_positive(double value, const std::string& where) {
    require(value > 0, where, where + " is missing or zero", "give a value above zero");
  }

  void require_at_least(int value, int least, const std::string& where) {
    require(value >= least, where, where + " = " + std::to_string(value),
            "use " + std::to_string(least) + " or more");
  }

  void require_share(double value, const std::string& where) {
    require(value > 0 && value <= 1, where, where + " = " + std::to_string(value),
            "use a share of the line rate, above 0 and up to 1");
  }

  void add_below(const std::string& prefix, std::vector<Problem> problems) {
    for (Problem& problem : problems) {
      problem.where = prefix + "." + problem.where;
      problems_.push_back(std::move(problem));
    }
  }

  bool empty() const { return problems_.empty(); }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

}  // namespace tessera
