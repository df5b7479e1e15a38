#include "sim/plan/host_costs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace tessera {

namespace {

/// What of a layer a kernel belongs to, as Megatron-Core's --cuda-graph-scope names it; empty: what
/// no graph can hold. Source: Megatron-Core transformer/transformer_layer.py.
std::string_view module_of(std::string_view kernel) {
  struct Part {
    std::string_view prefix, module;
  };
  constexpr std::array kParts{Part{"mlp.experts", ""},
                              Part{"mlp.return", ""},
                              Part{"mlp.combine", ""},
                              Part{"mlp.dispatch.layout", "moe_preprocess"},
                              Part{"mlp.dispatch", ""},
                              Part{"mlp.router.counts", "moe_preprocess"},
                              Part{"mlp.router.histogram", "moe_preprocess"},
                              Part{"mlp.router.places", "moe_preprocess"},
                              Part{"mlp.router.permute", ""},
                              Part{"mlp.router", "moe_router"},
                              Part{"mlp.shared", "moe_router"},
                              Part{"mlp", "mlp"},
                              Part{"ln_mlp", "moe_router"},
                              Part{"ln_mamba", "mamba"},
                              Part{"mamba", "mamba"},
                              Part{"ln_attention", "attn"},
                              Part{"attention", "attn"},
                              Part{"rotary", "attn"}};
  const auto found = std::ranges::find_if(
      kParts, [&](const Part& part) { return kernel.starts_with(part.prefix); });
  return found == kParts.end() ? std::string_view() : found->module;
}

/// Calls that launch a segment some of whose kernels are in graphs, one for each module.
double calls_beside_graphs(const Segment& segment, const std::vector<std::string>& modules) {
  std::set<std::string_view> graphs;
  double outside = 0;
  for (const KernelLaunch& launch : segment.kernels) {
    const std::string_view module = module_of(launch.name);
    const bool held = std::ranges::find(modules, module) != modules.end();
    held ? void(graphs.insert(module)) : void(++outside);
  }
  const double all = static_cast<double>(std::max<std::size_t>(1, segment.kernels.size()));
  return segment.host_ops * outside / all + static_cast<double>(graphs.size());
}

}  // namespace

Seconds HostCosts::to_launch(const Segment& segment) const {
  if (graphs == CudaGraphs::layers && !modules.empty() && segment.phase != Phase::optimizer)
    return per_call * calls_beside_graphs(segment, modules);
  const bool captured = segment.phase != Phase::optimizer && !segment.host_sync;
  if (captured && graphs == CudaGraphs::full_iteration) return Seconds();
  const bool one_call = captured && graphs == CudaGraphs::layers && segment.host_ops > 0;
  return per_call * static_cast<double>(one_call ? 1 : segment.host_ops);
}

HostCosts host_costs(const StepOptions& step) {
  const FrameworkProfile& profile = step.framework;
  const HostTable& host = step.host;
  const bool compiled = step.kernels == KernelMode::fused;
  const bool whole = profile.cuda_graphs == CudaGraphs::full_iteration;
  const auto measured = [&](Seconds of_host, Seconds otherwise) {
    return host.factor * (of_host > Seconds() ? of_host : otherwise);
  };
  const Seconds call = compiled ? measured(host.per_compiled_call, profile.host_per_compiled_call)
                                : measured(host.per_call, profile.host_per_call);
  const Seconds collective = measured(host.per_communication, profile.host_per_communication);
  const Seconds message =
      host.per_message > Seconds() ? host.factor * host.per_message : collective;
  return {.per_call = call,
          .per_communication = whole ? Seconds() : collective,
          .per_message = whole ? Seconds() : message,
          .graphs = profile.cuda_graphs,
          .modules = profile.graph_modules,
          .memory = {}};
}

HostCosts host_costs(const Scenario& scenario) {
  HostCosts costs = host_costs(scenario.step);
  costs.memory = host_bandwidth_of_gpu(scenario.cluster.node);
  return costs;
}

}  // namespace tessera
