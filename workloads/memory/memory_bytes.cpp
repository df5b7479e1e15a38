#include "workloads/memory/memory_bytes.h"

namespace tessera {

std::string_view name_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::parameters:
      return "parameters";
    case MemoryCategory::gradients:
      return "gradients";
    case MemoryCategory::optimizer:
      return "optimizer";
    case MemoryCategory::activations:
      return "activations";
    case MemoryCategory::temporary:
      return "temporary";
    case MemoryCategory::buffers:
      return "buffers";
    case MemoryCategory::workspace:
      return "workspace";
  }
  return "";
}

}  // namespace tessera
