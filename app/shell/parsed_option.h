#pragma once

#include <string>

#include "hw/units/input_error.h"

namespace tessera {

/// What a text after an option stands for; complaints name the option.
template <class Parse>
auto parsed_option(const char* option, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const InputError& error) {
    Problem problem = error.problems().front();
    problem.where = option;
    throw InputError(problem);
  }
}

}  // namespace tessera
