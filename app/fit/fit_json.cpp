#include <nlohmann/json.hpp>

#include "app/fit/fit_answer.h"

namespace tessera {
namespace {

using FitJson = nlohmann::ordered_json;

FitJson json_of(const LargestSize& size) {
  return {{"fits", size.fits}, {"surely", size.sure}, {"limit", size.limit}};
}

/// "fits", "within_error", "does_not_fit".
std::string word_of(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::fits:
      return "fits";
    case FitVerdict::within_error:
      return "within_error";
    case FitVerdict::does_not_fit:
      return "does_not_fit";
  }
  return "";
}

FitJson json_of(const FitStep& step, const MemorySpread& spread) {
  const Bytes needed = step.device.total();
  return {{"verdict", word_of(step.verdict)},
          {"step_time_s", step.time ? FitJson(step.time->value()) : FitJson(nullptr)},
          {"capacity_bytes", step.capacity.value()},
          {"needed_bytes", needed.value()},
          {"needed_bytes_80", {spread.low_of(needed).value(), spread.high_of(needed).value()}},
          {"margin_bytes", step.margin().value()},
          {"margin_bytes_80",
           {(step.capacity - spread.high_of(needed)).value(),
            (step.capacity - spread.low_of(needed)).value()}},
          {"allocated_bytes", step.device.allocated.value()},
          {"reserved_bytes", step.device.reserved.value()},
          {"context_bytes", step.device.context.value()},
          {"nccl_bytes", step.device.communicators.value()}};
}

FitJson layout_json(const StepOptions& step) {
  const ParallelLayout& layout = step.layout;
  return {{"tensor", layout.tensor},
          {"pipeline", layout.pipeline},
          {"data", layout.data},
          {"context", layout.context},
          {"expert", layout.expert},
          {"sharding", static_cast<int>(step.data_parallel.sharding)},
          {"micro_batch", step.micro_batch},
          {"global_batch", step.global_batch},
          {"sequence_length", step.sequence_length}};
}

FitJson changes_json(const FitAnswer& answer) {
  FitJson list = FitJson::array();
  for (const ChangedStep& changed : answer.changes) {
    FitJson entry{
        {"change", changed.change.name}, {"settings", changed.settings}, {"gpus", changed.gpus}};
    entry.update(json_of(changed.step, answer.spread));
    list.push_back(std::move(entry));
  }
  return list;
}

FitJson refused_json(const FitAnswer& answer) {
  FitJson list = FitJson::array();
  for (const ChangedStep& changed : answer.refused)
    list.push_back({{"change", changed.change.name},
                    {"settings", changed.settings},
                    {"reason", changed.step.refused}});
  return list;
}

}  // namespace

std::string fit_json(const FitAnswer& answer) {
  FitJson parts = FitJson::object();
  for (const FitPart& part : parts_of(answer)) parts[part.key] = part.bytes.value();
  FitJson json{{"schema", "tessera.fit/1"},     {"name", answer.name},
               {"read_as", answer.kind},        {"model", answer.model},
               {"cluster", answer.cluster},     {"gpu", answer.gpu},
               {"gpus", answer.gpus},           {"framework", answer.framework},
               {"precision", answer.precision}, {"layout", layout_json(answer.options)}};
  json.update(json_of(answer.step, answer.spread));
  json["refused"] = answer.step.refused;
  json["interval"] = {
      {"low", answer.spread.low}, {"high", answer.spread.high}, {"basis", answer.spread.basis}};
  json["fullest_stage"] = answer.need.stage;
  json["parts_bytes"] = std::move(parts);
  json["largest_micro_batch"] = json_of(answer.micro_batch);
  json["longest_sequence"] = answer.sequence ? json_of(*answer.sequence) : FitJson(nullptr);
  json["changes"] = changes_json(answer);
  json["not_possible"] = refused_json(answer);
  json["not_simulated"] = answer.not_simulated;
  json["assumed"] = answer.assumed;
  json["ignored"] = answer.ignored;
  json["approximations"] = answer.approximations;
  return json.dump(2) + "\n";
}

}  // namespace tessera
