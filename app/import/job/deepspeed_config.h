#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"

namespace tessera {

/// Fields of JSON or YAML, as fields_of() has them. Throws InputError for what holds none.
ForeignFields read_fields(const std::string& text, const std::string& name,
                          bool keeps_empty = false);

/// leave_out(), with the value in the message.
void leave_out_value(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                     const std::string& name, const std::string& what, const std::string& hint);

/// Reads DeepSpeed's configuration into a scenario that has its model. `mixed`
/// is the precision of whoever launches ("bf16"), which "auto" follows; empty:
/// not known. Returns the sizes of the batch.
BatchSizes read_deepspeed(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                          const std::string& mixed);

/// What nothing has asked for yet in its configuration: harmless, refused by name, or not known.
void judge_deepspeed_keys(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options);

/// Precision of DeepSpeed's engine: 16-bit weights and gradients, fp32 states
/// and master weights.
void set_engine_precision(ScenarioDraft& draft, const std::string& precision);
/// ZeRO's stage as the scenario's sharding; 2 and 3 reduce gradients behind
/// every micro-batch. Buckets and overlap are DeepSpeed's defaults for the
/// stage.
void set_zero_stage(ScenarioDraft& draft, std::int64_t stage, const std::string& precision);
/// Keys that say a device, or, before version 0.5, "true" for the CPU.
struct OffloadKeys {
  std::vector<std::string> states, weights;
};
/// Optimizer states on the CPU are `training.offload_optimizer`, weights that are there too
/// `training.offload_parameters`, which ZeRO-3 alone has. Drives are left out by name.
void read_offload(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                  const OffloadKeys& keys, std::int64_t stage);
/// Clipping by a norm; "auto" is the Trainer's 1.0, nothing is none.
void set_clipping(ScenarioDraft& draft, ForeignFields& in, const std::string& name);

}  // namespace tessera
