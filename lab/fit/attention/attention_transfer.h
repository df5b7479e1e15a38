#pragma once

#include <string>
#include <vector>

#include "lab/fit/attention/attention_training.h"

namespace tessera {

/// What the form fitted on one GPU says of another, FlashAttention-2 on A100 and FlashAttention-3
/// on H100, both ways, as text: share of peak copied, and adapted to a few calls.
std::string attention_transfer(const std::vector<AttentionGroup>& groups);

}  // namespace tessera
