#include "app/import/job/torchtitan/torchtitan_precision.h"

#include <string>

#include "app/import/job/deepspeed_config.h"

namespace tessera::torchtitan {
namespace {

/// In bfloat16 nothing is held in fp32 (torchtitan/config/job_config.py).
void read_dtype(ScenarioDraft& draft, ForeignFields& in) {
  const std::string dtype = in.text("training.dtype").value_or("float32");
  if (dtype == "float32") return;
  if (dtype != "bfloat16")
    return in.refuse("training.dtype", "is " + dtype, "known: float32, bfloat16");
  for (const char* part : {"parameters", "gradients", "optimizer_states"})
    draft.set("training.mixed_precision." + std::string(part), "bf16");
}

/// Layers that stay in 16 bits: of the products the head's alone do, always.
void read_filter(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                 const std::string& name) {
  const std::string layers = in.text(name).value_or("");
  if (layers.empty()) return;
  if (layers == "output") return draft.ignore(name + " = output: the head stays in bf16 anyway");
  leave_out_value(draft, in, options, name, "keeps layers in bf16, which is not simulated",
                  "known: output");
}

void read_float8(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options) {
  for (const char* section : {"float8.", "quantize.linear.float8."}) {
    const std::string prefix(section);
    read_filter(draft, in, options, prefix + "filter_fqns");
    if (in.flag(prefix + "enable_fsdp_float8_all_gather"))
      draft.set("training.data_parallel.gather_fp8", "true");
    if (in.flag(prefix + "precompute_float8_dynamic_scale_for_fsdp"))
      draft.ignore(prefix +
                   "precompute_float8_dynamic_scale_for_fsdp = true: scales of gathered "
                   "weights come from one all-reduce anyway");
    if (in.flag(prefix + "force_recompute_fp8_weight_in_bwd"))
      draft.ignore(prefix +
                   "force_recompute_fp8_weight_in_bwd = true: weights are cast again in "
                   "backward anyway");
  }
}

/// Ranks of tensors or stages alone run in training.dtype (maybe_enable_amp of
/// torchtitan/distributed/utils.py).
void say_uncast(ScenarioDraft& draft, const std::string& format, bool fp8) {
  if (fp8)
    return draft.approximate(
        "what is between products counts in bf16: without FSDP torchtitan leaves it in fp32");
  draft.assume("products in fp32: mixed_precision_param = " + format +
               " is FSDP's, and no ranks divide the weights; torchtitan warns and goes on "
               "(recalled). data_parallel_shard_degree above 1, or training.dtype, changes it");
}

}  // namespace

bool read_precision(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                    bool casts) {
  const std::string format = in.text("training.mixed_precision_param").value_or("bfloat16");
  const std::string reduce = in.text("training.mixed_precision_reduce").value_or("float32");
  const std::string converters = in.text("model.converters").value_or("");
  const bool fp8 =
      in.flag("float8.enable_float8_linear") || converters.find("float8") != std::string::npos;
  if (!converters.empty() && converters != "float8" && converters != "quantize.linear.float8")
    leave_out_value(draft, in, options, "model.converters", "is not all simulated",
                    "known: float8");
  if (format != "bfloat16" && format != "float32")
    in.refuse("training.mixed_precision_param", "is " + format, "known: bfloat16, float32");
  const bool held_in_16_bits = in.text("training.dtype").value_or("float32") != "float32";
  const bool mixes = format != "float32" && (casts || held_in_16_bits);
  if (format != "float32" && !mixes) say_uncast(draft, format, fp8);
  draft.set_text("training.precision", fp8 ? "fp8" : mixes ? "bf16" : "fp32");
  if (reduce == "bfloat16") draft.set("training.mixed_precision.reduce", "bf16");
  read_dtype(draft, in);
  if (fp8) read_float8(draft, in, options);
  return fp8;
}

}  // namespace tessera::torchtitan
