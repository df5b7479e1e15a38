#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_tuning.h"
#include "workloads/program/program.h"

namespace tessera {

/// How a collective meets other traffic. Alone, the three take the same time.
enum class NetworkFidelity : std::uint8_t {
#include "configs/schema/words/network_fidelity.inc"
};

/// As CollectiveAlgorithm and CollectiveProtocol, one further: 0 leaves the choice to the tuner.
enum class AlgorithmChoice : std::uint8_t {
#include "configs/schema/words/algorithm_choice.inc"
};
enum class ProtocolChoice : std::uint8_t {
#include "configs/schema/words/protocol_choice.inc"
};

/// Which collective an op runs; all_reduce for ops that run none.
constexpr CollectiveKind collective_kind_of(OpKind kind) {
  switch (kind) {
    case OpKind::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case OpKind::all_gather:
      return CollectiveKind::all_gather;
    case OpKind::broadcast:
      return CollectiveKind::broadcast;
    case OpKind::all_to_all:
      return CollectiveKind::all_to_all;
    case OpKind::send:
    case OpKind::recv:
    case OpKind::ring_shift:
      return CollectiveKind::send_recv;
    default:
      return CollectiveKind::all_reduce;
  }
}

/// What NCCL_ALGO, NCCL_PROTO and NCCL_CTA_POLICY would say to the communicators of one kind.
struct CollectiveOverride {
#include "configs/schema/fields/collective_override.inc"
};

/// The section `collectives` of a scenario.
struct CollectiveSettings {
#include "configs/schema/fields/collective_settings.inc"

  CollectiveTuning tuning() const {
    return {CollectiveConstants(), groups};
  }
  /// `call` with what the overrides say of `group`; the last one wins.
  CollectiveCall call_of(GroupKind group, CollectiveKind kind, Bytes bytes) const {
    CollectiveCall call{.kind = kind, .bytes = bytes, .tuner = tuner};
    for (const CollectiveOverride& choice : overrides) {
      if (choice.group != group) continue;
      const int algorithm = static_cast<int>(choice.algorithm);
      const int protocol = static_cast<int>(choice.protocol);
      if (algorithm > 0) call.algorithm = static_cast<CollectiveAlgorithm>(algorithm - 1);
      if (protocol > 0) call.protocol = static_cast<CollectiveProtocol>(protocol - 1);
      call.copy_engines = call.copy_engines || choice.copy_engines;
    }
    return call;
  }
  /// The collective that `op` of `program` runs.
  CollectiveCall call_of(const Program& program, const ProgramOp& op) const {
    CollectiveCall call = call_of(op.group, collective_kind_of(op.kind), op.bytes);
    const bool spreads = op.kind == OpKind::all_to_all && op.group == GroupKind::expert;
    if (spreads && program.tokens.experts > 0)
      call.tokens = {program.tokens.experts, program.tokens.per_token,
                     program.tokens.multiprocessors};
    return call;
  }
};

}  // namespace tessera
