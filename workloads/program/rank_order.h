#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "workloads/program/program.h"

namespace tessera {

/// Order from text like Megatron's "tp-cp-ep-dp-pp"; every dimension once. Empty for other text.
std::optional<RankOrder> parse_rank_order(std::string_view text);
std::string text_of(const RankOrder& order);

}  // namespace tessera
