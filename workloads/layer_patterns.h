#pragma once

#include <cstdint>
#include <string>

#include "workloads/model_spec.h"

namespace tessera {

// Which layers have what, from a letter for each layer to the fields of a model that say it in the
// fewest words.

/// Letters of `layer_pattern` that Megatron-Core does not have. Attention and Mamba-2 read the same
/// norm, side by side, and their sum is the branch, without a norm behind the scan (Falcon-H1); a
/// convolution over three positions between two gates (LFM2); a delta net whose decay is a number
/// per channel (Kimi Linear); Mamba-1, whose channels have a state and a step each (Jamba).
namespace layer_letter {
inline constexpr char kSideBySide = 'H', kShortConvolution = 'C', kKimiDelta = 'K', kScan = 'S';
}
/// Numbers per token that the steps of Mamba-1's channels come from. Source: mamba_ssm
/// modules/mamba_simple.py, dt_rank "auto".
constexpr std::int64_t scan_rank_of(const ModelSpec& m) {
  return (m.hidden + 15) / 16;
}

/// The shortest beginning of `letters` whose repetition is all of it: "wwf" of "wwfwwfww".
std::string shortest_period(const std::string& letters);

/// Sets window, full_every and attention_pattern by `letters` (attention_letter), one for each
/// layer; `window` [tokens] is that of layers with one.
void set_attention_pattern(ModelSpec& model, std::int64_t window, const std::string& letters);

/// Sets layer_pattern and layers: each layer of a mixer and a feed-forward (of `seconds`, - or E)
/// becomes two of one branch.
void set_layer_pairs(ModelSpec& model, const std::string& mixers, const std::string& seconds);

/// Sets dense_layers or expert_pattern by `letters`, E or - for each layer. False where no layer
/// has experts.
bool set_expert_pattern(ModelSpec& model, const std::string& letters);

}  // namespace tessera
