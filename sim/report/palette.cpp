#include "sim/report/palette.h"

#include <array>

namespace tessera {
namespace {

/// By TimeCategory. Found by annealing for the largest smallest distance, each within the hues and
/// the lightness that its meaning suggests: blue forward, orange backward, greys that wait.
constexpr std::array<ClassLook, kTimeCategoryCount> kClassLooks{{
    {"forward", "#3156bb", "light_memory_dump"},
    {"loss", "#fbdc5a", "cq_build_running"},
    {"backward", "#f59910", "rail_idle"},
    {"gradient reduction", "#aefabd", "cq_build_passed"},
    {"optimizer", "#4e1883", "vsync_highlight_color"},
    {"tensor communication", "#dd6140", "rail_animation"},
    {"data communication", "#6cc683", "thread_state_running"},
    {"pipeline communication", "#18b4ff", "rail_response"},
    {"embedding communication", "#e77ed3", "cq_build_failed"},
    {"communication of all GPUs", "#6a0103", "terrible"},
    {"copies to and from the host", "#8a3f01", "heap_dump_child_node_arrow"},
    {"context communication", "#7870e0", "thread_state_runnable"},
    {"expert communication", "#0f6455", "good"},
    {"slowed by collectives", "#bc217f", "detailed_memory_dump"},
    {"pipeline bubble", "#8b9098", "generic_work"},
    {"waits for the host", "#37354a", "black"},
    {"idle, waits for others", "#c4c9d0", "cq_build_abandoned"},
}};

}  // namespace

const ClassLook& look_of(TimeCategory category) {
  return kClassLooks[static_cast<std::size_t>(category)];
}

TimeCategory class_of(const ProgramOp& op) {
  switch (op.kind) {
    case OpKind::kernels:
      return compute_category(op.phase);
    case OpKind::send:
    case OpKind::recv:
      return TimeCategory::exposed_pipeline;
    case OpKind::copy_out:
    case OpKind::copy_in:
      return TimeCategory::exposed_swap;
    default:
      return exposed_category(op.group);
  }
}

}  // namespace tessera
