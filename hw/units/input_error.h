#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace tessera {

/// One thing wrong with what the user gave.
struct Problem {
  std::string where;  ///< file:line:column, a field path, or a command-line option; may be empty
  std::string what;   ///< names the offending value
  std::string hint;   ///< what to do about it; may be empty
  std::vector<std::string> other = {};  ///< field paths that `where` conflicts with

  /// "where: what; hint" on one line.
  std::string text() const;
};

/// Bad input. Thrown once with everything that is wrong, handled once in `main` (exit code 3).
class InputError : public std::runtime_error {
 public:
  explicit InputError(Problem problem);
  explicit InputError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

}  // namespace tessera
