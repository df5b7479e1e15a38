#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What the importer does with an argument of Megatron-LM or Megatron-DeepSpeed.
enum class ArgumentUse : std::uint8_t {
  read,      ///< becomes part of the scenario, or is checked against what a scenario can say
  harmless,  ///< does not change the step: no kernel, message, byte or wait of it
  refused,   ///< changes the step in a way that scenarios do not know
};

struct KnownArgument {
  std::string_view name;  ///< "--lr"
  ArgumentUse use = ArgumentUse::harmless;
  std::string_view why;      ///< of a refused one: what is not simulated
  std::string_view neutral;  ///< values, "1|none", with which a refused one changes nothing
};

/// All arguments of the table, in its order.
const std::vector<KnownArgument>& megatron_arguments();

/// Options of what starts a job (torchrun, deepspeed, srun, mpirun): read or harmless.
const std::vector<KnownArgument>& launcher_options();

/// Nothing where the table does not have `name`.
const KnownArgument* megatron_argument(std::string_view name);
const KnownArgument* launcher_option(std::string_view name);

/// Why a program ("pretrain_bert.py", a path may stand ahead of it) is no training of a GPT or
/// Llama model; nothing where it may be one.
std::optional<std::string> why_no_gpt_training(std::string_view program);

}  // namespace tessera
