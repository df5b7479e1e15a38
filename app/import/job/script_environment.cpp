#include "app/import/job/script_environment.h"

#include <array>
#include <string_view>

namespace tessera {
namespace {

struct Variable {
  const char* name;
  std::string_view neutral;  ///< the value that it has anyway
};
/// What NCCL, CUDA, PyTorch and Transformer Engine read.
constexpr std::array<Variable, 25> kOfTime{{
    {"NCCL_ALGO", ""},
    {"NCCL_PROTO", ""},
    {"NCCL_NVLS_ENABLE", "1"},
    {"NCCL_MIN_NCHANNELS", ""},
    {"NCCL_MAX_NCHANNELS", ""},
    {"NCCL_MIN_CTAS", ""},
    {"NCCL_MAX_CTAS", ""},
    {"NCCL_BUFFSIZE", "4194304"},
    {"NCCL_P2P_DISABLE", "0"},
    {"NCCL_P2P_LEVEL", ""},
    {"NCCL_IB_DISABLE", "0"},
    {"NCCL_IB_HCA", ""},
    {"NCCL_NET", "IB"},
    {"NCCL_NET_GDR_LEVEL", ""},
    {"NCCL_SHM_DISABLE", "0"},
    {"NVTE_FWD_LAYERNORM_SM_MARGIN", "0"},
    {"NVTE_BWD_LAYERNORM_SM_MARGIN", "0"},
    {"NVTE_BATCH_MHA_P2P_COMM", "0"},
    {"NVTE_UB_OVERLAP_RS_DGRAD", "0"},
    {"NVTE_NORM_FWD_USE_CUDNN", "0"},
    {"NVTE_NORM_BWD_USE_CUDNN", "0"},
    {"CUDA_LAUNCH_BLOCKING", "0"},
    {"TORCH_NCCL_BLOCKING_WAIT", "0"},
    {"TORCH_DISTRIBUTED_DEBUG", "OFF"},
    {"NVIDIA_TF32_OVERRIDE", ""},
}};
constexpr std::array<Variable, 3> kOfMemory{{{"PYTORCH_CUDA_ALLOC_CONF", ""},
                                             {"PYTORCH_ALLOC_CONF", ""},
                                             {"TORCH_NCCL_AVOID_RECORD_STREAMS", ""}}};

template <std::size_t count>
std::vector<std::string> set_among(const std::array<Variable, count>& variables,
                                   const ShellScript& script) {
  std::vector<std::string> lines;
  for (const auto& [name, neutral] : variables) {
    const std::string value = environment_value(name, script);
    if (!value.empty() && value != neutral)
      lines.push_back(std::string(name) + " = " + value + " of the environment is left out");
  }
  return lines;
}

}  // namespace

std::string environment_value(const std::string& name, const ShellScript& script) {
  for (const ShellCommand& command : script.commands)
    for (const ShellWord& word : command.words) {
      if (word.text.starts_with(name + "=")) return word.text.substr(name.size() + 1);
      if (word.text.find('=') == std::string::npos) break;
    }
  const auto found = script.variables.find(name);
  const bool is_one = found != script.variables.end() && found->second.size() == 1;
  return is_one ? found->second.front() : "";
}

LeftOutVariables left_out_variables(const ShellScript& script) {
  LeftOutVariables all{.of_time = set_among(kOfTime, script),
                       .of_memory = set_among(kOfMemory, script)};
  for (std::string& line : all.of_memory) line += ": the allocator is simulated as without it";
  return all;
}

}  // namespace tessera
