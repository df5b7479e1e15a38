#pragma once

#include <array>
#include <string_view>

namespace tessera {

/// How NCCL's time differs from the latencies and bandwidths that its tuner expects; ratios unless
/// said otherwise. The defaults are fitted to published sweeps of A100, H100 and V100 nodes;
/// docs/decisions/0011-collectives.md says how, and what they score on systems that are left out.
struct CollectiveConstants {
  double base_before_hopper = 1.56;  ///< of the tuner's base latency
  double base_hopper = 0.88;         ///< Hopper and later
  double step_before_hopper = 1.69;  ///< of the tuner's step over NVLink
  double step_hopper = 1.20;
  double step_pcie = 0.52;          ///< of the tuner's step over PCIe
  double base_simple = 1.57;        ///< Simple's base, besides the above
  double step_simple = 1.14;        ///< Simple's step, besides the above
  double step_ll128 = 0.75;         ///< LL128's step, besides the above
  double share_ll = 0.46;           ///< part of the links' rate that LL moves; 0: the tuner's cap
  double share_ll128 = 0.84;        ///< part of the links' rate that LL128 moves
  double extra_ll = 0.72;           ///< steps that LL adds to those of a ring
  double extra_simple = 0.28;       ///< steps that Simple adds: the last one sends nothing
  double fill_simple = 0.45;        ///< of the first round of chunks, before the ring is full
  double nvls_latency = 1.03;       ///< of the tuner's latency
  double nvls_fill = 0.74;          ///< of the first round of chunks
  double pairwise_share = 1.00;     ///< part of NVLink's rate in an all-to-all
  double pairwise_share_ll = 0.32;  ///< the same with LL; 0: as in a ring
  double pairwise_fill = 0.27;      ///< of the first round of chunks
  /// Blackwell over NVLink 5 against Hopper, not part of the fit above: every latency inside a
  /// node, and the rate of an all-to-all. Medians over B200 and over GB200 agree (decision 40).
  double latency_blackwell = 1.5;
  double pairwise_blackwell = 0.8;
};

/// NCCL's own constants: its tuner taken at its word.
constexpr CollectiveConstants nccl_constants() {
  return {.base_before_hopper = 1,
          .base_hopper = 1,
          .step_before_hopper = 1,
          .step_hopper = 1,
          .step_pcie = 1,
          .base_simple = 1,
          .step_simple = 1,
          .step_ll128 = 1,
          .share_ll = 0,
          .share_ll128 = 0.92,
          .extra_ll = 0,
          .extra_simple = 0,
          .fill_simple = 0,
          .nvls_latency = 1,
          .nvls_fill = 0,
          .pairwise_share = 1,
          .pairwise_share_ll = 0,
          .pairwise_fill = 0,
          .latency_blackwell = 1,
          .pairwise_blackwell = 1};
}

/// Where fits start, from what the protocols do: the last of a ring's steps receives half a chunk
/// (one of its two slices) while nothing is sent, LL spends half of its words on flags and ends
/// with a step of its own, the first round of chunks runs without overlap of its two halves.
constexpr CollectiveConstants constants_before_fit() {
  CollectiveConstants start = nccl_constants();
  start.share_ll = 0.5;
  start.pairwise_share_ll = 0.5;
  start.extra_ll = 1;
  start.extra_simple = 0.5;
  start.fill_simple = 0.5;
  start.nvls_fill = 0.5;
  start.pairwise_fill = 0.5;
  return start;
}

struct ConstantName {
  std::string_view name;
  double CollectiveConstants::*value;
};

/// Every constant, for fits and files.
inline constexpr std::array<ConstantName, 18> kConstantNames = {
    {{"base_before_hopper", &CollectiveConstants::base_before_hopper},
     {"base_hopper", &CollectiveConstants::base_hopper},
     {"step_before_hopper", &CollectiveConstants::step_before_hopper},
     {"step_hopper", &CollectiveConstants::step_hopper},
     {"step_pcie", &CollectiveConstants::step_pcie},
     {"base_simple", &CollectiveConstants::base_simple},
     {"step_simple", &CollectiveConstants::step_simple},
     {"step_ll128", &CollectiveConstants::step_ll128},
     {"share_ll", &CollectiveConstants::share_ll},
     {"share_ll128", &CollectiveConstants::share_ll128},
     {"extra_ll", &CollectiveConstants::extra_ll},
     {"extra_simple", &CollectiveConstants::extra_simple},
     {"fill_simple", &CollectiveConstants::fill_simple},
     {"nvls_latency", &CollectiveConstants::nvls_latency},
     {"nvls_fill", &CollectiveConstants::nvls_fill},
     {"pairwise_share", &CollectiveConstants::pairwise_share},
     {"pairwise_share_ll", &CollectiveConstants::pairwise_share_ll},
     {"pairwise_fill", &CollectiveConstants::pairwise_fill}}};

}  // namespace tessera
