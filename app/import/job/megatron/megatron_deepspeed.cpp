// Megatron-DeepSpeed: the arguments are Megatron's, and DeepSpeed's engine reads a file of its own.
// What both say has to be the same; what the file alone says is read as import deepspeed reads it.
// Source: DeepSpeed runtime/engine.py and config.py, Megatron-DeepSpeed megatron/training.py
// (recalled).
#include <algorithm>
#include <filesystem>
#include <string>

#include "app/import/job/deepspeed_config.h"
#include "app/import/job/megatron/megatron_job.h"
#include "hw/units/lower_case.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

/// Sections that the engine does not read: Megatron hands it an optimizer and a schedule.
void ignore_optimizer(ScenarioDraft& draft, ForeignFields& file) {
  for (const std::string& name : file.unread_names())
    if (name.starts_with("optimizer.") || name.starts_with("scheduler."))
      draft.ignore(name + " = " + file.word(name).value_or("") +
                   ": Megatron's own optimizer and schedule run");
}

/// Formats that the file names; the profile has the others.
void read_formats_of_file(ScenarioDraft& draft, ForeignFields& file) {
  const auto read = [&](const char* key, const char* part) {
    const auto given = file.text(key);
    if (!given) return;
    if (*given != "fp32" && *given != "bf16" && *given != "fp16")
      return file.refuse(key, "is " + *given, "known: fp32, bf16, fp16");
    draft.set(std::string("training.mixed_precision.") + part, *given);
  };
  read("data_types.grad_accum_dtype", "gradients");
  read("communication_data_type", "reduce");
  if (file.flag("fp32_allreduce")) draft.set("training.mixed_precision.reduce", "fp32");
}

}  // namespace

/// What DeepSpeed's configuration says, where the script writes it; else its --zero-stage.
void MegatronJob::read_deepspeed() {
  const char* argument = given("--deepspeed-config") ? "--deepspeed-config" : "--deepspeed_config";
  const std::string file = text(argument).value_or("");
  const std::string title = std::filesystem::path(file).filename().string();
  for (const auto& [name, content] : script_.files) {
    const std::filesystem::path written(name);
    if (!file.empty() && written.filename() == title) return read_deepspeed_file(content, title);
  }
  const std::filesystem::path beside = options_.folder / file;
  const bool is_there = !file.empty() && !options_.folder.empty() && !is_unknown(file) &&
                        std::filesystem::is_regular_file(beside);
  if (is_there) return read_deepspeed_file(read_text_file(beside), title);
  if (given("--zero-stage") && !file.empty())
    draft_.ignore(std::string(argument) + " = " + file + ": is not there; --zero-stage decides");
  if (given("--zero-stage") || file.empty()) return;
  cannot(argument, "is not read, and decides what is sharded",
         "add --zero-stage with its stage to the arguments");
}

void MegatronJob::read_deepspeed_file(const std::string& content, const std::string& title) {
  ForeignFields file;
  try {
    file = read_fields(content, title);
  } catch (const InputError&) {
    return cannot("--deepspeed_config", "is no JSON");
  }
  const std::int64_t stage = read_deepspeed_stage(file);
  hold_batches(file);
  hold_precision(file);
  read_formats_of_file(draft_, file);
  read_engine(file, stage);
  ignore_optimizer(draft_, file);
  judge_deepspeed_keys(draft_, file, options_);
  for (const Problem& one : file.problems()) in_.add_problem(one);
}

std::int64_t MegatronJob::read_deepspeed_stage(ForeignFields& file) {
  const auto stage = file.integer("zero_optimization.stage", 0);
  const auto argued = in_.integer("--zero-stage", 0);
  if (stage && argued && *stage != *argued)
    problem("--zero-stage",
            "is " + std::to_string(*argued) + ", its configuration says " + std::to_string(*stage),
            "give both the same stage");
  const std::int64_t runs = stage.value_or(argued.value_or(0));
  in_.add("--zero-stage", {std::to_string(runs), launch_.where});
  for (const char* name :
       {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device",
        "zero_optimization.cpu_offload"}) {
    const auto device = file.text(name);
    if (device && lower_case(*device) != "false")
      cannot("--deepspeed_config", std::string("has ") + name + " = " + *device +
                                       ": copies to host memory are not simulated");
  }
  return runs;
}

/// The engine counts micro-batches by its file, Megatron by its arguments.
void MegatronJob::hold_batches(ForeignFields& file) {
  const auto hold = [&](const char* key, std::int64_t own) {
    const auto said = file.integer(key);
    if (said && *said != own)
      file.refuse(key,
                  "is " + std::to_string(*said) + ", and the arguments say " + std::to_string(own),
                  "give both the same number");
  };
  const bool overruled = options_.micro_batch > 0 || options_.global_batch > 0 ||
                         options_.gpus > 0 || given("--rampup-batch-size");
  const std::int64_t data = std::max<std::int64_t>(1, replicas_ / context_);
  constexpr std::int64_t kMost = 1'000'000'000;  // times GPUs within 64 bits
  const std::int64_t of_replicas = std::min(micro_batch_, kMost) * data;
  const std::int64_t global = integer("--global-batch-size").value_or(of_replicas);
  constexpr const char* kBatches[] = {"train_micro_batch_size_per_gpu", "train_batch_size",
                                      "gradient_accumulation_steps"};
  if (overruled) {
    for (const char* key : kBatches) file.take(key);
    return;
  }
  hold(kBatches[0], micro_batch_);
  hold(kBatches[1], global);
  if (global % of_replicas == 0) hold(kBatches[2], global / of_replicas);
}

void MegatronJob::hold_precision(ForeignFields& file) {
  const std::string own = half_ ? "fp16" : bfloat_ ? "bf16" : "fp32";
  bool is_enabled = own == "fp32";
  for (const auto& [key, format] :
       {std::pair("fp16.enabled", "fp16"), std::pair("bf16.enabled", "bf16"),
        std::pair("bfloat16.enabled", "bf16")}) {
    if (!file.flag(key)) continue;
    is_enabled = true;
    if (own != format)
      file.refuse(key, "is true, and the arguments say " + own, "give both the same format");
  }
  if (!is_enabled)
    draft_.approximate("DeepSpeed's configuration does not enable " + own +
                       ": fp32 master weights are counted, as where it does");
}

void MegatronJob::read_engine(ForeignFields& file, std::int64_t stage) {
  const auto norm = file.number("gradient_clipping");
  if (norm && *norm <= 0) draft_.set("training.clip_gradients", "false");
  const char* overlap = "zero_optimization.overlap_comm";
  const char* bucket = "zero_optimization.reduce_bucket_size";
  const bool divides = stage > 0 && pipeline_ == 1;
  const bool overlaps = file.flag(overlap);
  const auto elements = file.integer(bucket);
  if (!divides) {
    for (const char* key : {overlap, bucket})
      if (file.has(key)) draft_.ignore(std::string(key) + ": without effect in this job");
    return;
  }
  if (file.has(overlap))
    draft_.set("training.data_parallel.overlap_gradients", overlaps ? "true" : "false");
  if (!elements) return;
  const std::int64_t size = half_ || bfloat_ ? 2 : 4;
  draft_.set("training.data_parallel.bucket",
             std::to_string(std::min<std::int64_t>(*elements, 1'000'000'000'000) * size) + " B");
}

}  // namespace tessera
