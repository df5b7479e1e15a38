#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workloads/graph/block.h"
#include "workloads/graph/tensor.h"

namespace tessera {

enum class Differentiation : std::uint8_t {
  none,      ///< under no_grad: nothing is recorded or saved
  recorded,  ///< operators leave backward rules on the tape
};

struct TapeOptions {
  Differentiation differentiation = Differentiation::recorded;
  Precision precision = Precision::fp32;            ///< of activations
  Precision gemm_precision = Precision::fp32;       ///< arithmetic of matrix products
  Precision parameter_precision = Precision::fp32;  ///< in which the model holds its weights,
  Precision frozen_precision = Precision::fp32;     ///< and those that nothing trains
  Precision gradient_precision = Precision::fp32;   ///< of the buffers that gradients go to
  bool scales_by_largest = false;  ///< FP8: a kernel finds a matrix's largest value, others cast it
  bool casts_both_orders = true;   ///< FP8: one cast writes a matrix by rows and by columns
  bool transposes = true;          ///< FP8: products want the latter; else both are one copy
  int numbers_per_scale = 0;       ///< of a block; their scales are rearranged ahead of a product
  int tile = 0;  ///< FP8: so many numbers of a row share a scale of 4 bytes, of weights a square
  bool gathers_fp8 = false;          ///< FP8: weights of products come as such
  bool keeps_cast_weights = false;   ///< FP8: copies of weights are made once per step, and kept
  bool frozen = false;               ///< nothing trains parameters but adapters: they are buffers,
  bool gathers_frozen = false;       ///< or Block::frozen_parameters
  bool quantizes = false;            ///< frozen weights of linear layers are held in 4 bits,
  bool quantizes_scales = false;     ///< their scales in 8
  bool joins_in_place = false;       ///< FrameworkProfile::gradients_join_in_place
  bool reentrant = false;            ///< FrameworkProfile::reentrant_checkpoints
  bool python_functions = false;     ///< FrameworkProfile::python_functions
  bool products_accumulate = false;  ///< a weight-gradient product may add to such a buffer itself
  bool reorders_images = false;      ///< FrameworkProfile::channels_last is not set
};

/// What a checkpoint keeps of its first run; the rest runs again.
enum class Kept : std::uint8_t {
  nothing,
  /// Results of fused attention, of every second matrix product, the first one included, and of
  /// reduce-scatters, as torchtitan's list of operators says. Source: torchtitan,
  /// activation_checkpoint.py, 2024.
  attention_and_alternate_products,
};

/// A kernel's use of all of a tensor.
inline Access whole(const Tensor& tensor) {
  return {tensor.storage, tensor.traffic()};
}

/// Records a block's forward operators and derives its backward pass as PyTorch's autograd engine
/// does: rules run in reverse order, gradients that meet at a tensor are added by a kernel, a
/// parameter's gradient is accumulated when its last use has contributed.
///
/// Operators are free functions (workloads/ops/) that launch kernels and register a rule; a rule
/// launches its kernels through the same tape and hands gradients on with `add_gradient`.
class Tape {
 public:
  using Recomputable = std::function<Tensor(Tape&)>;
  using Rule = std::function<void(Tape&, std::span<const Tensor> output_gradients)>;

  explicit Tape(TapeOptions options) : options_(options) {}

  // Tensors that a block starts from.
  /// Trainable; its gradient is accumulated into a persistent buffer. In the format of activations:
  /// where the model holds another, a kernel casts it. A name that is there already, as when a
  /// checkpoint runs again, gives the same tensor, or another cast of it.
  Tensor parameter(const std::string& name, Sizes sizes);
  /// Trained even where others are frozen.
  Tensor adapter_parameter(const std::string& name, Sizes sizes);
  /// Parameter of the experts that this rank holds: summed over the ranks that hold the same ones.
  Tensor expert_parameter(const std::string& name, Sizes sizes);
  /// Parameter that another block registers too, and that runs backward earlier (tied embeddings):
  /// its gradient from there joins the one found here.
  Tensor parameter_with_pending_gradient(const std::string& name, Sizes sizes);
  /// The other end of that: not counted, and its gradient stays alive instead of being accumulated.
  Tensor parameter_finished_elsewhere(const std::string& name, Sizes sizes);
  /// Between the two: joins the pending gradient with the one found here and passes the sum on.
  Tensor parameter_joined_elsewhere(const std::string& name, Sizes sizes);
  /// Parameters, inputs and buffers of names in another scope are others; gives the one before.
  std::string enter_scope(std::string scope) { return std::exchange(scope_, std::move(scope)); }
  /// Token ids, masks, labels: no gradient.
  Tensor input(const std::string& name, Sizes sizes, Precision precision);
  /// Persistent memory without gradient, counted in `Block::buffers`.
  Tensor buffer(const std::string& name, Sizes sizes, Precision precision, Bytes beside = {});
  /// Output of the block before this one.
  Tensor block_input(const std::string& name, Sizes sizes);
  /// Tensor of an earlier block that many blocks read (encoder output); gradients are summed in a
  /// persistent buffer.
  Tensor shared_input(const std::string& name, const StridedShape& shape);

  // What operators are made of.
  Tensor make(const std::string& name, const StridedShape& shape);
  Tensor make(const std::string& name, const StridedShape& shape, Precision precision);
  /// With `beside` in the same memory, which no kernel's traffic counts by itself.
  Tensor make(const std::string& name, const StridedShape& shape, Precision precision,
              Bytes beside);
  /// Another window on the memory of `tensor`: free for the GPU, a call for the host.
  Tensor alias(const Tensor& tensor, StridedShape shape);
  /// `tensor` after a kernel wrote over it: the same memory, another value to autograd.
  Tensor written_over(const Tensor& tensor) {
    return add_tensor(tensor.storage, tensor.shape, tensor.precision);
  }
  /// One kernel; its traffic is every operand once.
  void launch(const std::string& name, Kernel kernel, std::span<const Tensor> reads,
              std::span<const Tensor> writes);
  void launch(const std::string& name, const Kernel& kernel, std::initializer_list<Tensor> reads,
              std::initializer_list<Tensor> writes) {
    launch(name, kernel, std::span(reads.begin(), reads.size()),
           std::span(writes.begin(), writes.size()));
  }
  /// One kernel that reads or writes only `read` and `written` bytes of its operands.
  void launch_partial(const std::string& name, Kernel kernel, std::vector<Access> reads,
                      std::vector<Access> writes);
  /// Runs `forward` on `inputs` without keeping what backward needs; backward runs it once more and
  /// then differentiates it (torch.utils.checkpoint). Nothing special where nothing is
  /// differentiated. `forward` runs after this returns: it must not refer to locals of its caller.
  /// Kernels whose results are `kept` run once; checkpoints that keep some do not nest.
  Tensor checkpoint(const std::vector<Tensor>& inputs, const Recomputable& forward,
                    Kept kept = Kept::nothing);
  /// What `forward` gives, whose memory lives as long as forward needs it: ahead of its first use
  /// in backward, `forward` runs again and its results stand for those of the first time, its
  /// backward rules included (Megatron-Core tensor_parallel/random.py, CheckpointWithoutOutput). It
  /// must not refer to locals of its caller. Inside of a checkpoint it is nothing special.
  Tensor remade(const Recomputable& forward);
  std::vector<Tensor> remade(const std::function<std::vector<Tensor>(Tape&)>& forward);
  /// Buffer that a weight-gradient product may add to itself; an invalid storage where it may not.
  Tensor accumulation_target(const Tensor& weight) const;
  /// A function of the framework's returns, or gives its variables other values: what they named
  /// lives at least until the operators so far have run.
  void drop_names(std::span<const Tensor> tensors);
  void drop_names(std::initializer_list<Tensor> tensors) {
    drop_names(std::span(tensors.begin(), tensors.size()));
  }
  /// Sums `tensor` over the ranks of `group` in place; others may use it after `wait`.
  void all_reduce(const std::string& name, const Tensor& tensor, GroupKind group);
  /// What a collective brings lies in memory that is never given back.
  void lies_in_shared_buffer(const Tensor& tensor);
  /// Any collective over the ranks of `group`, from `sent` to `received`, which others may use
  /// after `wait`.
  void collective(OpKind kind, const std::string& name, GroupKind group, const Tensor& sent,
                  const Tensor& received);
  void wait();
  void host_sync(const std::string& name);
  /// The operator recorded last costs the host `calls` more where functions are Python's
  /// (workloads/ops/python_calls.h).
  void python_calls(int calls);
  /// The operator recorded last reads one bit of each element of `tensor`: a mask, or the sign.
  void reads_bits(const Tensor& tensor);
  /// The host makes so many calls for every launch from here on; gives the number before.
  int set_calls_per_launch(int calls) { return std::exchange(calls_per_launch_, calls); }
  /// Phase of the operators that follow.
  void set_phase(Phase phase) { phase_ = phase; }

  const std::string& name_of(const Tensor& tensor) const {
    return block_.storage(tensor.storage).name;
  }
  /// Of activations.
  Precision precision() const { return options_.precision; }
  Precision gemm_precision() const { return options_.gemm_precision; }
  bool scales_by_largest() const { return options_.scales_by_largest; }
  bool casts_both_orders() const { return options_.casts_both_orders; }
  bool transposes() const { return options_.transposes; }
  int numbers_per_scale() const { return options_.numbers_per_scale; }
  int tile() const { return options_.tile; }
  bool keeps_cast_weights() const { return options_.keeps_cast_weights; }
  bool reorders_images() const { return options_.reorders_images; }
  bool gathers_fp8() const { return options_.gathers_fp8; }
  bool quantizes() const { return options_.frozen && options_.quantizes; }
  bool quantizes_scales() const { return options_.quantizes_scales; }
  /// `weight` as FP8 numbers, which it is gathered as.
  Tensor gathered_in_fp8(const Tensor& weight) {
    if (!recomputes_) block_.fp8_parameters += weight.elements();
    return add_tensor(weight.storage, weight.shape, Precision::fp8);
  }

  /// A weight of which copies in the format of products are kept.
  void keeps_copies_of(const Tensor& weight) {
    if (!recomputes_) block_.cast_parameters += weight.elements();
  }

  // Autograd.
  bool requires_gradient(const Tensor& tensor) const;
  /// `outputs` are differentiable functions of `inputs`; `rule` runs when their gradients are
  /// known (gradients of unused outputs have an invalid storage).
  void differentiable(std::span<const Tensor> inputs, std::span<const Tensor> outputs, Rule rule);
  void differentiable(std::initializer_list<Tensor> inputs, std::span<const Tensor> outputs,
                      Rule rule) {
    differentiable(std::span(inputs.begin(), inputs.size()), outputs, std::move(rule));
  }
  void differentiable(std::initializer_list<Tensor> inputs, const Tensor& output, Rule rule) {
    differentiable(inputs, std::span(&output, 1), std::move(rule));
  }
  void add_gradient(const Tensor& tensor, const Tensor& gradient);

  // The block's ends.
  /// Input of the next block.
  void output(const Tensor& tensor);
  /// A result that the caller holds to the block's end (logits).
  void keep(const Tensor& tensor);
  /// Output that many later blocks read; becomes persistent.
  void shared_output(const Tensor& tensor);
  /// Where backward starts: the loss, or a result whose gradient somebody else computes.
  void differentiate(const Tensor& tensor);

  /// Differentiates what was recorded and gives the finished block.
  Block finish(std::string name) &&;

 private:
  struct Value {
    bool requires_gradient = false;
    bool is_parameter = false;
    bool shared = false;              ///< gradient is summed in `accumulated`
    bool finished_elsewhere = false;  ///< gradient leaves the block
    int pending_uses = 0;             ///< of a parameter, by recorded rules
    Tensor gradient;                  ///< invalid storage: none yet
    Tensor accumulated;               ///< persistent gradient buffer
  };
  struct Node {
    std::vector<Tensor> outputs;
    std::vector<ValueId> inputs;
    Rule rule;
    int origin = -1;  ///< index of the forward operator that the rule differentiates
  };

  StorageId add_storage(const std::string& name, TensorRole role, StorageScope scope, Bytes bytes);
  Tensor add_tensor(StorageId storage, StridedShape shape, Precision precision);
  Tensor persistent(const std::string& name, Sizes sizes, Precision precision, TensorRole role);
  Tensor trainable(const std::string& name, Sizes sizes);
  void count_frozen(const Tensor& tensor);
  Tensor in_format_of_activations(const std::string& name, const Tensor& tensor);
  /// What `make()` gives, or gave before where a checkpoint runs again.
  Tensor named_leaf(const std::string& name, const std::function<Tensor()>& make);
  Value& value(const Tensor& tensor) {
    return values_[static_cast<std::size_t>(tensor.value.index())];
  }
  Storage& storage(const Tensor& tensor) {
    return block_.storages[static_cast<std::size_t>(tensor.storage.index())];
  }
  std::vector<GraphOp>& ops() { return in_backward_ ? block_.backward : block_.forward; }
  void push(GraphOpKind kind, const std::string& name);
  void seed_gradient(const Tensor& tensor, StorageScope scope);
  /// The sum of two gradients of `tensor`.
  Tensor joined(const Tensor& tensor, const Tensor& first, const Tensor& second);
  bool records() const { return options_.differentiation == Differentiation::recorded; }
  /// Results of the kernels that a checkpoint may keep, in launch order; empty ones run again.
  using Results = std::vector<std::vector<StorageId>>;
  void recompute(const Recomputable& forward, const Tensor& gradient, Results results,
                 std::span<const Tensor> cached_casts);
  /// Storages that a second run makes again, and how.
  struct Remade {
    std::function<std::vector<Tensor>(Tape&)> forward;
    std::vector<StorageId> storages;
    std::string scope;
    bool done = false;
  };
  std::vector<StorageId> local_storages(std::size_t first) const;
  void make_again(Remade& remade);
  /// Makes again what the reads of a backward operator need.
  void require(const std::vector<Access>& reads);
  void note_result(const Kernel& kernel, const std::vector<Access>& writes);
  bool reuse_result(const Kernel& kernel, const std::vector<Access>& writes);
  bool take_result(const std::vector<Access>& writes);
  /// The result of a reduce-scatter counts among those kept; true where it is there already.
  bool keeps_scattered(OpKind kind, const Tensor& received);
  /// With kept storages in place of those that stand for them where a checkpoint runs again.
  std::vector<Access> at_kept(std::vector<Access> accesses) const;
  void run_backward();
  /// A block in which nothing is trained and that begins the model ends gradients all the same.
  void end_gradient();
  void run_node(Node& node);

  TapeOptions options_;
  Phase phase_ = Phase::forward;
  bool in_backward_ = false;
  bool keeps_rules_ = true;    ///< operators leave backward rules; not in backward or a checkpoint
  bool recomputes_ = false;    ///< operators repeat what forward did
  int origin_ = -1;            ///< `GraphOp::origin` of the operators that follow
  Kept kept_ = Kept::nothing;  ///< of the checkpoint that runs for the first time
  Results results_;            ///< of that one, or left of the one that runs again
  int calls_per_launch_ = 1;   ///< GraphOp::host_calls of kernels
  int products_ = 0;           ///< matrix products of the checkpoint so far
  std::map<StorageId, StorageId> kept_as_;  ///< storages of a second run -> of the first
  std::vector<Remade> remade_;
  std::map<StorageId, std::size_t> remade_by_;  ///< storage -> in `remade_`
  Block block_;
  std::vector<Value> values_;
  std::deque<Node> nodes_;  ///< a checkpoint adds some while a rule of one runs
  std::string scope_;       ///< ahead of the names of leaves
  std::map<std::string, Tensor>
      leaves_by_name_;                ///< parameters, inputs, buffers, for recomputation
  std::vector<Tensor> cached_casts_;  ///< of the checkpoint that runs for the first time
  std::vector<Tensor> leaves_;        ///< parameters, shared and block inputs
  std::vector<std::pair<Tensor, StorageScope>> seeds_;  ///< where backward starts
};

}  // namespace tessera
