#include "app/cli/terms.h"

#include <algorithm>
#include <utility>

#include "hw/units/lower_case.h"
#include "sim/report/definitions.h"
#include "sim/report/text/fitted_lines.h"

namespace tessera {
namespace {

constexpr std::string_view kThroughput =
    "what a step trains (its global batch in samples; times the sequence length in tokens) over "
    "the "
    "step time: of the whole job, and of one of its GPUs";

constexpr std::pair<const char*, std::string_view> kTerms[] = {
    {"step time", "from the start of a step to the end of the last op on any GPU"},
    {"throughput", kThroughput},
    {"tokens per second", kThroughput},
    {"samples per second", kThroughput},
    {"MFU", definitions::kMfu},
    {"HFU", definitions::kHfu},
    {"bubble", definitions::kBubbleFraction},
    {"exposed communication", definitions::kExposedCommunication},
    {"exposed copies", definitions::kExposedCopies},
    {"80 % interval", definitions::kInterval},
    {"host", definitions::kHost},
    {"peak memory", definitions::kPeakMemory},
    {"reserved memory",
     "segments that PyTorch's caching allocator holds, in use or not: what "
     "torch.cuda.max_memory_reserved says"},
    {"static memory",
     "weights, gradients and optimizer states, held from step to step, and what libraries hold"},
    {"fits", definitions::kFits},
    {"energy", definitions::kEnergy},
    {"zero-shot",
     "a prediction for a GPU of which nothing was measured: from kernels measured on other GPUs "
     "and from the figures of this one"},
    {"extrapolated",
     "kernels of which some input lies outside what the predictor was trained on; less certain"},
    {"contention",
     "what collectives beside the kernels, which share the GPU, add to the time of the kernels"},
    {"critical path",
     "chain of causes from the start of the step to its end: what released each op last; "
     "shortening "
     "anything else does not shorten the step"},
    {"data parallelism",
     "replicas of the model work on different sequences and add up their gradients: "
     "parallelism.data"},
    {"tensor parallelism",
     "every layer is split over GPUs, which exchange activations in each: parallelism.tensor"},
    {"pipeline parallelism",
     "stages of layers on different GPUs pass micro-batches on: parallelism.pipeline"},
    {"context parallelism",
     "a sequence is split over GPUs, which pass keys and values on: parallelism.context"},
    {"expert parallelism",
     "experts of a layer lie on different GPUs, and tokens travel to them: parallelism.expert"},
    {"ZeRO",
     "replicas share optimizer states (1), gradients too (2), weights too (3, or FSDP): "
     "training.data_parallel.sharding"},
    {"FSDP", "weights, gradients and optimizer states are shared by the replicas (ZeRO-3)"},
    {"1F1B",
     "pipeline schedule: one forward, one backward in turn, which bounds how many micro-batches "
     "keep activations"},
    {"recomputation",
     "activations are dropped and computed again in backward: less memory, more time; "
     "training.recompute"},
    {"roofline",
     "the fastest that arithmetic and memory bandwidth of the GPU allow a kernel, whichever is "
     "slower"},
    {"bus bandwidth",
     "of a collective, as nccl-tests count it: comparable to the rate of the links, whatever the "
     "number of GPUs"},
    {"oversubscription", "what could leave a part of the network over what the rest can take"},
    {"micro-batch", "sequences that go through the model at a time; their gradients add up"},
    {"global batch", "sequences of a step: micro-batch x data x micro-batches"},
    {"elasticity",
     "d ln(step time) / d ln(time that a resource takes): 1 where the step is as much faster as "
     "the resource, 0 where nothing waits for it"},
    {"goodput",
     "of tessera run: share of the time of all nodes, spares included, that went into steps which "
     "no failure undid"},
    {"approximate", "the scenario is not the job that it stands for; the line says in what"}};

}  // namespace

std::optional<std::string> term_text(std::string_view term) {
  std::string wanted = lower_case(term);
  std::ranges::replace(wanted, '_', ' ');
  for (const auto& [name, meaning] : kTerms) {
    if (lower_case(name) != wanted) continue;
    return fitted(std::string(name) + "\n  meaning: " + std::string(meaning) + "\n");
  }
  return std::nullopt;
}

std::vector<std::string> term_names() {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : kTerms) names.emplace_back(name);
  return names;
}

std::string known_terms() {
  std::string list;
  for (const auto& [name, meaning] : kTerms) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

}  // namespace tessera
