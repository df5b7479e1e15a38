#include "workloads/graph/tape.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/python_calls.h"

namespace tessera {

// What operators are made of.

StorageId Tape::add_storage(const std::string& name, TensorRole role, StorageScope scope,
                            Bytes bytes) {
  block_.storages.push_back({name, role, scope, bytes});
  return StorageId(static_cast<std::int32_t>(block_.storages.size()) - 1);
}

Tensor Tape::add_tensor(StorageId storage, StridedShape shape, Precision precision) {
  values_.emplace_back();
  return {storage, ValueId(static_cast<std::int32_t>(values_.size()) - 1), std::move(shape),
          precision};
}

Tensor Tape::persistent(const std::string& name, Sizes sizes, Precision precision,
                        TensorRole role) {
  const StridedShape shape(std::move(sizes));
  const Bytes bytes(bytes_of(shape.elements(), precision));
  return add_tensor(add_storage(name, role, StorageScope::persistent, bytes), shape, precision);
}

Tensor Tape::make(const std::string& name, const StridedShape& shape) {
  return make(name, shape, options_.precision);
}

Tensor Tape::make(const std::string& name, const StridedShape& shape, Precision precision) {
  return make(name, shape, precision, Bytes());
}

Tensor Tape::make(const std::string& name, const StridedShape& shape, Precision precision,
                  Bytes beside) {
  const Bytes bytes = Bytes(bytes_of(shape.elements(), precision)) + beside;
  const StorageId storage = add_storage(name, TensorRole::activation, StorageScope::local, bytes);
  return add_tensor(storage, shape, precision);
}

Tensor Tape::alias(const Tensor& tensor, StridedShape shape) {
  push(GraphOpKind::view, storage(tensor).name);
  return add_tensor(tensor.storage, std::move(shape), tensor.precision);
}

void Tape::push(GraphOpKind kind, const std::string& name) {
  GraphOp op;
  op.kind = kind;
  op.phase = in_backward_ ? Phase::backward : phase_;
  op.name = name;
  op.origin = origin_;
  op.recomputed = recomputes_;
  ops().push_back(std::move(op));
}

void Tape::launch(const std::string& name, Kernel kernel, std::span<const Tensor> reads,
                  std::span<const Tensor> writes) {
  const auto accesses = [](std::span<const Tensor> tensors) {
    std::vector<Access> result;
    result.reserve(tensors.size());
    for (const Tensor& tensor : tensors) result.push_back({tensor.storage, tensor.traffic()});
    return result;
  };
  launch_partial(name, kernel, accesses(reads), accesses(writes));
}

void Tape::launch_partial(const std::string& name, Kernel kernel, std::vector<Access> reads,
                          std::vector<Access> writes) {
  if (kept_ != Kept::nothing) note_result(kernel, writes);
  if (recomputes_ && reuse_result(kernel, writes)) return;
  require(reads);
  for (const Access& access : reads) kernel.bytes_read += access.bytes;
  for (const Access& access : writes) kernel.bytes_written += access.bytes;
  push(GraphOpKind::kernel, name);
  ops().back().kernel = kernel;
  ops().back().host_calls = calls_per_launch_;
  ops().back().reads = at_kept(std::move(reads));
  ops().back().writes = at_kept(std::move(writes));
}

void Tape::drop_names(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) ops().back().unnamed.push_back(tensor.storage);
}

void Tape::all_reduce(const std::string& name, const Tensor& tensor, GroupKind group) {
  collective(OpKind::all_reduce, name, group, tensor, tensor);
}

void Tape::collective(OpKind kind, const std::string& name, GroupKind group, const Tensor& sent,
                      const Tensor& received) {
  if (keeps_scattered(kind, received)) return;
  require({whole(sent)});
  push(GraphOpKind::collective, name);
  GraphOp& op = ops().back();
  op.collective = kind;
  op.group = group;
  op.bytes = std::max(sent.traffic(), received.traffic());
  op.reads = at_kept({{sent.storage, sent.traffic()}});
  op.writes = at_kept({{received.storage, received.traffic()}});
  for (const std::vector<Access>* accesses : {&op.reads, &op.writes})
    block_.storages[static_cast<std::size_t>(accesses->front().storage.index())].communicated =
        true;
}

void Tape::lies_in_shared_buffer(const Tensor& tensor) {
  storage(tensor).communicated = false;
}

void Tape::wait() {
  push(GraphOpKind::wait, "wait");
}

void Tape::reads_bits(const Tensor& tensor) {
  if (!ops().empty()) ops().back().bits = tensor.storage;
}

void Tape::python_calls(int calls) {
  if (!options_.python_functions || calls == 0) return;
  const bool counts = !ops().empty() && (ops().back().kind == GraphOpKind::kernel ||
                                         ops().back().kind == GraphOpKind::view);
  if (counts) {
    ops().back().host_calls += calls;
  } else {
    push(GraphOpKind::view, "python");
    ops().back().host_calls = calls;
  }
}

void Tape::host_sync(const std::string& name) {
  push(GraphOpKind::host_sync, name);
}

// Autograd.

bool Tape::requires_gradient(const Tensor& tensor) const {
  return values_[static_cast<std::size_t>(tensor.value.index())].requires_gradient;
}

void Tape::differentiable(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                          Rule rule) {
  if (!keeps_rules_) return;
  Node node;
  for (const Tensor& tensor : inputs) {
    if (!requires_gradient(tensor)) continue;
    ++value(tensor).pending_uses;
    node.inputs.push_back(tensor.value);
  }
  if (node.inputs.empty()) return;
  for (const Tensor& tensor : outputs) value(tensor).requires_gradient = true;
  node.outputs.assign(outputs.begin(), outputs.end());
  node.rule = std::move(rule);
  node.origin = in_backward_ ? -1 : static_cast<int>(block_.forward.size()) - 1;
  nodes_.push_back(std::move(node));
}

void Tape::add_gradient(const Tensor& tensor, const Tensor& gradient) {
  if (!requires_gradient(tensor)) return;
  assert(tensor.elements() == gradient.elements());
  const Tensor known = value(tensor).gradient;
  const int origin = std::exchange(origin_, -1);
  const Tensor sum = known.storage.valid() ? joined(tensor, known, gradient) : gradient;
  value(tensor).gradient = sum;
  origin_ = origin;
}

/// In place where no other tensor waits for the same memory, of which the gradient is no part, and
/// where it does not come from the block behind to go on to the one before: such memory would be
/// both blocks' to free.
/// Source: PyTorch torch/csrc/autograd/input_buffer.cpp, accumulate.
Tensor Tape::joined(const Tensor& tensor, const Tensor& first, const Tensor& second) {
  const std::string name = storage(tensor).name + ".join";
  const auto waits = [&](const Value& other) { return other.gradient.storage == first.storage; };
  const bool alone = std::ranges::count_if(values_, waits) == 1 && second.storage != first.storage;
  const bool ends_here = value(tensor).is_parameter && !value(tensor).finished_elsewhere;
  const bool whole = storage(first).bytes == first.traffic();
  const bool own = whole && (storage(first).scope == StorageScope::local || ends_here);
  if (!options_.joins_in_place || !alone || !own) return add_into_new(*this, name, first, second);
  add_in_place(*this, name, first, second);
  return first;
}

void Tape::seed_gradient(const Tensor& tensor, StorageScope scope) {
  const StorageId id =
      add_storage(storage(tensor).name + ".grad", TensorRole::temporary, scope, tensor.traffic());
  const Tensor gradient = add_tensor(id, StridedShape(tensor.sizes()), tensor.precision);
  value(tensor).gradient = gradient;
}

Tensor Tape::accumulation_target(const Tensor& weight) const {
  const Value& parameter = values_[static_cast<std::size_t>(weight.value.index())];
  const bool has_buffer = parameter.is_parameter && parameter.accumulated.storage.valid();
  return options_.products_accumulate && has_buffer ? parameter.accumulated : Tensor();
}

// The block's ends.

void Tape::output(const Tensor& tensor) {
  storage(tensor).scope = StorageScope::leaves_forward;
  seeds_.emplace_back(tensor, StorageScope::enters_backward);
}

void Tape::keep(const Tensor& tensor) {
  storage(tensor).scope = StorageScope::held;
}

void Tape::shared_output(const Tensor& tensor) {
  storage(tensor).scope = StorageScope::persistent;
  storage(tensor).role = TensorRole::buffer;
  block_.buffers += tensor.traffic();
  if (requires_gradient(tensor)) block_.buffers += tensor.traffic();
  seeds_.emplace_back(tensor, StorageScope::persistent);
}

void Tape::differentiate(const Tensor& tensor) {
  seeds_.emplace_back(tensor, StorageScope::local);
}

void Tape::run_backward() {
  in_backward_ = true;
  keeps_rules_ = false;
  for (const auto& [tensor, scope] : seeds_) {
    if (requires_gradient(tensor)) seed_gradient(tensor, scope);
  }
  for (std::size_t n = nodes_.size(); n-- > 0;) run_node(nodes_[n]);
  for (const Tensor& leaf : leaves_) {
    const Value& leaf_value = value(leaf);
    if (!leaf_value.gradient.storage.valid()) continue;
    if (leaf_value.shared) {
      add_in_place(*this, storage(leaf).name + ".join", leaf_value.accumulated,
                   leaf_value.gradient);
    } else {
      storage(leaf_value.gradient).scope = StorageScope::leaves_backward;
    }
  }
}

void Tape::run_node(Node& node) {
  std::vector<Tensor> gradients;
  bool reached = false;
  origin_ = node.origin;
  for (const Tensor& output : node.outputs) {
    gradients.push_back(std::exchange(value(output).gradient, Tensor()));
    reached = reached || gradients.back().storage.valid();
  }
  if (reached) node.rule(*this, gradients);
  for (const ValueId id : node.inputs) {
    Value& input = values_[static_cast<std::size_t>(id.index())];
    const bool complete = --input.pending_uses == 0 && input.gradient.storage.valid();
    if (!complete || !input.is_parameter) continue;
    if (input.finished_elsewhere) {
      storage(input.gradient).scope = StorageScope::leaves_backward;
    } else {
      const Tensor gradient = std::exchange(input.gradient, Tensor());
      add_in_place(*this, storage(input.accumulated).name, input.accumulated, gradient);
      ops().back().accumulates_gradient = true;
      python_calls(kAccumulation);
    }
  }
  origin_ = -1;
}

void Tape::end_gradient() {
  if (!options_.frozen || !block_.backward.empty()) return;
  for (const auto& [tensor, scope] : seeds_) {
    if (scope == StorageScope::enters_backward) seed_gradient(tensor, scope);
  }
  push(GraphOpKind::view, "frozen");
}

Block Tape::finish(std::string name) && {
  if (records()) {
    run_backward();
    end_gradient();
  }
  block_.name = std::move(name);
  plan_memory(block_);
  return std::move(block_);
}

}  // namespace tessera
