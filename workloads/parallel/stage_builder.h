#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/parallel/gradient_reduction.h"
#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pipeline_plan.h"
#include "workloads/parallel/stage_program.h"
#include "workloads/parallel/unit_gathers.h"
#include "workloads/parallel/update/dealt_tensors.h"
#include "workloads/parallel/update/host_offload.h"
#include "workloads/parallel/update/muon_update.h"
#include "workloads/parallel/update/update_gathers.h"
#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {

/// Builds the program of a pipeline stage. Passes and messages: stage_passes.cpp; memory, sums of
/// gradients and the update: stage_program.cpp.
class StageBuilder {
 public:
  StageBuilder(PassLibrary& library, const StepOptions& step, int stage)
      : library_(library),
        graph_(library.graph()),
        step_(step),
        stage_(stage),
        stages_(step.layout.pipeline),
        pipeline_(step),
        units_(library, step, queue_),
        gradients_(library, step, stage, queue_),
        updates_(library, step, stage, queue_),
        offload_(library, queue_) {
    const std::vector<int> layers = layers_of_parts(graph_, step);
    for (int chunk = 0; chunk < pipeline_.chunks(); ++chunk) {
      const int part = pipeline_.part({stage, chunk});
      blocks_.push_back(blocks_of_part(graph_, part, layers));
    }
  }

  RankProgram build() &&;

 private:
  void count_memory();
  void run_passes();
  void run(const ScheduledPass& pass);
  PassSpan begin(const ScheduledPass& pass);
  void end(const ScheduledPass& pass, PassSpan span);
  PassRun begin_block(int position, const ScheduledPass& pass, int next);
  void end_block(int position, const ScheduledPass& pass);
  void run_block(int position, const ScheduledPass& pass, int next);
  void run_together(const ScheduledPass& forward, const ScheduledPass& backward);
  bool overlaps(const PlannedPass& pass, const PlannedPass& next) const;
  void hold_outputs(const ScheduledPass& pass);
  bool forwards_first(const ScheduledPass& pass);
  void exchange(const Exchange& exchange);
  Bytes boundary_bytes(const ScheduledPass& pass, const ModelChunk& other) const;
  StageMessage message(const ScheduledPass& pass, const ModelChunk& other) const;
  std::vector<StageMessage> messages(const ScheduledPass& pass, const ModelChunk& other) const;
  /// Whose result the pass works on, and who works on its result.
  std::optional<ModelChunk> giver(const ScheduledPass& pass) const;
  std::optional<ModelChunk> taker(const ScheduledPass& pass) const;
  bool keeps_sent(const ScheduledPass& pass) const;
  /// Parameters of experts that other ranks hold than those that hold the same dense parameters.
  std::int64_t spread_experts() const {
    return step_.layout.experts_apart() ? expert_parameters_ : 0;
  }
  void reduce_gradients();
  void join_copies(std::int64_t parameters);
  void reduce_scalar();
  std::int64_t master_weights() const;
  void count_matrices(int position);
  void deal();
  void update_by_muon(const OptimizerStep& optimizer);
  UpdatedParameters updated_parameters() const;
  void update(const OptimizerStep& optimizer);
  void update_on_host();
  void run_ops(const std::vector<GraphOp>& ops, const std::string& name) {
    queue_.run(library_.cut(ops, name), -1, -1);
  }

  PassLibrary& library_;
  const ModelGraph& graph_;
  const StepOptions& step_;
  int stage_;
  int stages_;
  VirtualPipeline pipeline_;
  std::vector<StageBlocks> blocks_;               ///< by model chunk
  std::map<ScheduledPass, std::int32_t> inputs_;  ///< ops that receive what passes work on
  std::map<int, int> gradient_passes_;            ///< that are left, by model chunk
  std::map<int, int> first_micro_batch_;          ///< whose backward ran first, likewise
  std::map<int, int> first_forward_;              ///< micro-batch whose forward ran first, likewise
  GradientReduction::Turn turn_;                  ///< of the pass that runs
  std::int64_t partial_parameters_ = 0;           ///< Block::partial_parameters of all blocks
  std::int64_t expert_parameters_ = 0;            ///< Block::expert_parameters, likewise
  Bytes held_outputs_;                            ///< logits that wait for the last backward
  std::int64_t cast_parameters_ = 0;              ///< Block::cast_parameters, likewise
  std::int64_t saved_by_fp8_shards_ = 0;          ///< bytes of weights that are divided
  int tensors_ = 0;                               ///< of Block::parameter_sizes, likewise
  std::vector<ParameterMatrices> matrices_;       ///< of layers, where Muon runs
  std::vector<std::int64_t> other_tensors_;       ///< sizes of all others, where it does
  std::vector<DealtTensors> dealt_;               ///< where replicas update whole tensors each
  OpQueue queue_;
  UnitGathers units_;
  GradientReduction gradients_;
  UpdateGathers updates_;
  HostOffload offload_;
  RankProgram program_;
};

}  // namespace tessera
