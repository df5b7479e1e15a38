#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/import/shell/shell_words.h"
#include "hw/units/input_error.h"

namespace tessera {

/// Why a command whose program is `words[program]` is none of Megatron-LM though some of its
/// arguments are ("--bf16"): nobody knows the program, and nothing says the size of a model.
/// Nothing where it may be one, or where the program is not told.
std::optional<Problem> problem_of_stranger(const std::vector<ShellWord>& words, std::size_t program,
                                           const std::string& name);

}  // namespace tessera
