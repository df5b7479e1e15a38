#pragma once

#include <string_view>

#include "workloads/kernel.h"
#include "workloads/program.h"

namespace tessera {

/// The words under which tables, JSON and traces show what a program is made of: snake_case, as in
/// the source.
std::string_view label_of(Phase phase);
std::string_view label_of(StreamKind stream);
std::string_view label_of(GroupKind group);
std::string_view label_of(OpKind kind);
std::string_view label_of(KernelKind kind);
std::string_view label_of(GemmLayout layout);

}  // namespace tessera
