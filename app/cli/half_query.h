#pragma once

#include "app/cli/kernel_query.h"

namespace tessera {

/// kernel_query of fused attention and of grouped products.
KernelQuery attention_query(const KernelOptions& options, const GpuSpec& gpu);
KernelQuery grouped_query(const KernelOptions& options);

}  // namespace tessera
