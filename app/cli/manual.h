#pragma once

#include <string>

#include "app/shell/command_tree.h"

namespace tessera {

/// The manual page of the program (section 1) in roff, with the macros of man(7). It carries no
/// date: equal programs give equal bytes.
std::string manual_page(const CommandNode& program, const std::string& version);

}  // namespace tessera
