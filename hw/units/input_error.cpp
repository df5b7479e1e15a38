#include "hw/units/input_error.h"

#include <utility>

namespace tessera {
namespace {

std::string joined_text(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.text();
  }
  return text;
}

}  // namespace

std::string Problem::text() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += "; " + hint;
  return text;
}

InputError::InputError(Problem problem) : InputError(std::vector{std::move(problem)}) {}

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(joined_text(problems)), problems_(std::move(problems)) {}

}  // namespace tessera
