#pragma once

#include <string>
#include <string_view>

#include "workloads/program/kernel.h"
#include "workloads/program/program.h"

namespace tessera {

/// The words under which tables, JSON and traces show what a program is made of: snake_case, as in
/// the source.
std::string_view label_of(Phase phase);
std::string_view label_of(StreamKind stream);
std::string_view label_of(GroupKind group);
std::string_view label_of(OpKind kind);
std::string_view label_of(KernelKind kind);
std::string_view label_of(GemmLayout layout);

/// "8 * 4096 x 1024 x 512 tn + bias bf16" of a product, "2 * 32/8 x 4096 x 4096 x 128 causal bf16"
/// of attention (batch * heads/kv_heads x queries x keys x head size), else rows x columns; fp32 is
/// not named.
std::string shape_label(const Kernel& kernel);

}  // namespace tessera
