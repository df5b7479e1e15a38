#include "tests/app/search/small_spaces.h"

namespace tessera {
namespace {

using enum PipelineSchedule;

LayoutSpace plain(int gpus) {
  LayoutSpace space{.gpus = gpus};
  space.recompute = {Recompute::none};
  space.sharding = {Sharding::none};
  space.sequence_parallel = {false};
  space.context = {1};
  space.micro_batches = {1, 2};
  return space;
}

template <class Change>
LayoutSpace with(LayoutSpace space, const Change& change) {
  change(space);
  return space;
}

std::vector<SmallSpace> small_clusters() {
  return {
      {"", plain(2)},
      {"", plain(4)},
      {"training.global_batch=4", plain(8)},
      {"cluster=dgx-a100 training.sequence_length=512", plain(4)},
      {"cluster=a100-pcie-4", plain(4)},
      {"cluster=l4-pcie-8 training.global_batch=4", plain(4)},
      {"cluster=dgx-h100-x2 training.global_batch=16",
       with(plain(16), [](LayoutSpace& s) { s.schedules = {one_f_one_b}; })},
      {"model.layers=8 training.global_batch=16", with(plain(4),
                                                       [](LayoutSpace& s) {
                                                         s.tensor = {1};
                                                         s.micro_batches = {1};
                                                       })},
      {"", with(plain(2), [](LayoutSpace& s) { s.recompute = {}; })},
      {"", with(plain(4),
                [](LayoutSpace& s) {
                  s.sharding = {};
                  s.schedules = {one_f_one_b};
                })},
      {"training.data_parallel.overlap_gradients=true", with(plain(4),
                                                             [](LayoutSpace& s) {
                                                               s.sharding = {};
                                                               s.pipeline = {1, 2};
                                                               s.tensor = {1};
                                                             })},
  };
}

/// The CUDA context takes 900 MiB and each communicator of NCCL 662 MiB over NVSwitch, 331 MiB over
/// PCIe.
std::vector<SmallSpace> shared_sequences_and_little_memory() {
  return {
      {"training.sequence_length=512", with(plain(4),
                                            [](LayoutSpace& s) {
                                              s.sequence_parallel = {};
                                              s.pipeline = {1, 2};
                                            })},
      {"training.sequence_length=512", with(plain(4),
                                            [](LayoutSpace& s) {
                                              s.context = {1, 2, 4};
                                              s.pipeline = {1};
                                            })},
      {"cluster.node.gpu.memory=4200MiB training.sequence_length=1024",
       with(plain(4),
            [](LayoutSpace& s) {
              s.recompute = {};
              s.schedules = {gpipe, one_f_one_b};
            })},
      {"model=gpt2-large model.layers=4 cluster.node.gpu.memory=8400MiB",
       with(plain(4),
            [](LayoutSpace& s) {
              s.sharding = {};
              s.pipeline = {1, 2};
            })},
  };
}

/// Likewise of little memory.
std::vector<SmallSpace> planned_spaces() {
  return {
      {"cluster.node.gpu.memory=4423MiB training.sequence_length=1024 training.global_batch=16",
       with(plain(2),
            [](LayoutSpace& s) {
              s.plans = true;
              s.recompute = {};
              s.sharding = {};
              s.micro_batches = {4, 8};
              s.schedules = {gpipe, one_f_one_b};
            })},
      {"cluster.node.gpu.memory=4746MiB training.sequence_length=1024 training.global_batch=16",
       with(plain(4),
            [](LayoutSpace& s) {
              s.plans = true;
              s.pipeline = {2};
              s.micro_batches = {4};
              s.schedules = {interleaved_1f1b, zb_h1, dualpipe};
            })},
      {"cluster=a100-pcie-4 cluster.node.gpu.memory=3161MiB training.sequence_length=1024 "
       "training.global_batch=32 training.framework=megatron-local",
       with(plain(4),
            [](LayoutSpace& s) {
              s.plans = true;
              s.sequence_parallel = {};
              s.micro_batches = {4, 8};
              s.schedules = {one_f_one_b};
            })},
  };
}

std::vector<SmallSpace> models_with_experts_and_without() {
  return {
      {"model=llama-3-8b model.layers=2 training.global_batch=4", plain(4)},
      {"model=mixtral-8x7b model.layers=2 training.global_batch=4", plain(4)},
      {"model=mixtral-8x7b model.layers=2 training.global_batch=4 parallelism.expert_tensor=1",
       with(plain(4),
            [](LayoutSpace& s) {
              s.sharding = {};
              s.sequence_parallel = {true};
              s.schedules = {one_f_one_b};
            })},
      {"model=mixtral-8x7b model.layers=2 training.global_batch=8",
       with(plain(8),
            [](LayoutSpace& s) {
              s.sharding = {Sharding::gradients, Sharding::parameters};
              s.tensor = {1, 2};
              s.schedules = {one_f_one_b};
            })},
  };
}

std::vector<SmallSpace> frameworks() {
  return {
      {"model=mixtral-8x7b model.layers=2 training.framework=fsdp training.global_batch=16",
       with(plain(4),
            [](LayoutSpace& s) {
              s.sharding = {};
              s.recompute = {Recompute::none, Recompute::full};
            })},
      {"training.framework=hf-eager training.global_batch=16",
       with(plain(4), [](LayoutSpace& s) { s.recompute = {}; })},
      {"model=llama-3-8b model.layers=4 training.framework=torchtitan",
       with(plain(4),
            [](LayoutSpace& s) {
              s.sequence_parallel = {};
              s.sharding = {Sharding::gradients, Sharding::parameters};
              s.schedules = {one_f_one_b, interleaved_1f1b, zbv};
            })},
      {"model=llama-3-8b model.layers=4 training.framework=torchtitan training.sequence_length=512",
       with(plain(4),
            [](LayoutSpace& s) {
              s.sequence_parallel = {};
              s.context = {1, 2};
              s.recompute = {};
              s.schedules = {gpipe, zb_h1};
            })},
      {"model=llama-3-8b model.layers=2 training.framework=fsdp training.global_batch=16",
       with(plain(4), [](LayoutSpace& s) { s.recompute = {}; })},
      {"training.precision=fp16 training.framework=megatron-local", plain(4)},
      {"collectives.fidelity=analytic training.optimizer=sgd", plain(4)},
  };
}

std::vector<SmallSpace> pipelines() {
  return {
      {"model.layers=6", with(plain(4),
                              [](LayoutSpace& s) {
                                s.pipeline = {2, 4};
                              })},
      {"model.layers=14 training.global_batch=16",
       with(plain(8),
            [](LayoutSpace& s) {
              s.pipeline = {4, 8};
              s.sharding = {};
              s.schedules = {one_f_one_b, interleaved_1f1b};
            })},
      {"model.layers=14 training.global_batch=16", with(plain(8),
                                                        [](LayoutSpace& s) {
                                                          s.pipeline = {4, 8};
                                                          s.schedules = {gpipe, zb_h1, dualpipe};
                                                        })},
      // The first layers cost the most: bounds must not take the others for their like.
      {"model=llama-3-8b model.layers=4 model.layer_pattern=--** training.global_batch=4",
       with(plain(4), [](LayoutSpace& s) { s.schedules = {one_f_one_b}; })},
  };
}

}  // namespace

std::vector<SmallSpace> small_spaces() {
  std::vector<SmallSpace> spaces;
  for (const auto& some : {small_clusters(), shared_sequences_and_little_memory(), planned_spaces(),
                           models_with_experts_and_without(), frameworks(), pipelines()})
    spaces.insert(spaces.end(), some.begin(), some.end());
  // Half of the schedules in each, for the test's time.
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (!spaces[i].space.schedules.empty()) continue;
    spaces[i].space.schedules = i % 2 == 0 ? std::vector{one_f_one_b, zb_h1, zb_h2}
                                           : std::vector{gpipe, interleaved_1f1b, dualpipe};
  }
  return spaces;
}

}  // namespace tessera
