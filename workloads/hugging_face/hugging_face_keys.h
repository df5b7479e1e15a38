#pragma once

#include <string>
#include <vector>

#include "workloads/hugging_face/config_reader.h"

namespace tessera {

/// Judges what no reader has asked for: leaves out what a step depends on, and what is not known,
/// by name. Returns the rest, which changes nothing. Under `tower` unknown keys are the tower's.
std::vector<std::string> judge_rest(ConfigReader& in, bool tower = false);

/// Tokens that attention of some layer looks back at, 0: all. `by_default`: whether a file that
/// has a window and no use_sliding_window means it.
std::int64_t window_of(ConfigReader& in, std::int64_t layers, bool by_default);

}  // namespace tessera
