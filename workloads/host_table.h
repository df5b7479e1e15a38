#pragma once

#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// What the host process of a GPU takes to hand work over, as measured; 0: the framework profile's.
struct HostTable {
  std::string name;
  std::string cpu;            ///< that it was measured on
  std::string source;         ///< what was measured, and how
  double factor = 1;          ///< on all figures, the framework profile's included; 0 or more
  Seconds per_call;           ///< of a framework call, Python and dispatcher
  Seconds per_compiled_call;  ///< of a launch from compiled code
  Seconds per_communication;  ///< of a collective
  Seconds per_message;        ///< of a message between stages, sent or received; 0: as a collective

  bool operator==(const HostTable&) const = default;
};

}  // namespace tessera
