#pragma once

#include <string>
#include <vector>

#include "workloads/hugging_face/config_reader.h"

namespace tessera {

/// Judges what no reader has asked for: leaves out what a step depends on, and what is not known,
/// by name. Returns the rest, which changes nothing. Under `tower` unknown keys are the tower's.
std::vector<std::string> judge_rest(ConfigReader& in, bool tower = false);

}  // namespace tessera
