// Tensors that a block starts from.
#include <utility>

#include "workloads/graph/tape.h"
#include "workloads/ops/pointwise.h"

namespace tessera {

Tensor Tape::trainable(const std::string& name, Sizes sizes) {
  const Tensor tensor =
      persistent(name, std::move(sizes),
                 options_.frozen ? options_.frozen_precision : options_.parameter_precision,
                 TensorRole::parameter);
  value(tensor).is_parameter = true;
  value(tensor).requires_gradient = records() && !options_.frozen;
  return tensor;
}

Tensor Tape::adapter_parameter(const std::string& name, Sizes sizes) {
  const bool frozen = std::exchange(options_.frozen, false);
  const Tensor tensor = parameter(name, std::move(sizes));
  options_.frozen = frozen;
  return tensor;
}

void Tape::count_frozen(const Tensor& tensor) {
  if (options_.gathers_frozen) {
    block_.frozen_parameters += tensor.elements();
  } else {
    block_.buffers += tensor.traffic();
  }
}

/// Autocast keeps copies of what has gradients until the forward pass ends, in the first run of a
/// checkpoint too, and makes others where that runs again; frozen weights are cast ahead of every
/// use, here once a pass. Source: PyTorch aten/src/ATen/autocast_mode.cpp, cached_cast;
/// torch/utils/checkpoint.py, which enters autocast anew.
Tensor Tape::in_format_of_activations(const std::string& name, const Tensor& tensor) {
  const Tensor copy = cast(*this, name + ".cast", tensor, options_.precision);
  const bool in_first_run = records() && !keeps_rules_ && !in_backward_;
  if (in_first_run && copy.storage != tensor.storage && requires_gradient(tensor))
    cached_casts_.push_back(copy);
  return copy;
}

Tensor Tape::named_leaf(const std::string& name, const std::function<Tensor()>& make) {
  const std::string scoped = scope_ + name;
  if (recomputes_) return leaves_by_name_.at(scoped);
  return leaves_by_name_[scoped] = make();
}

Tensor Tape::parameter(const std::string& name, Sizes sizes) {
  const Tensor held = named_leaf(name, [&] {
    const Tensor tensor = trainable(name, std::move(sizes));
    if (options_.frozen) {
      count_frozen(tensor);
      return tensor;
    }
    value(tensor).accumulated = persistent(name + ".grad", tensor.sizes(),
                                           options_.gradient_precision, TensorRole::gradient);
    block_.parameters += tensor.elements();
    block_.parameter_sizes.push_back(tensor.elements());
    return tensor;
  });
  return in_format_of_activations(name, held);
}

Tensor Tape::expert_parameter(const std::string& name, Sizes sizes) {
  const std::int64_t before = block_.parameters;
  const Tensor tensor = parameter(name, std::move(sizes));
  block_.expert_parameters += block_.parameters - before;
  return tensor;
}

Tensor Tape::parameter_with_pending_gradient(const std::string& name, Sizes sizes) {
  const Tensor tensor = parameter(name, std::move(sizes));
  if (requires_gradient(tensor) && !options_.products_accumulate)
    seed_gradient(tensor, StorageScope::enters_backward);
  return tensor;
}

Tensor Tape::parameter_finished_elsewhere(const std::string& name, Sizes sizes) {
  Tensor tensor = trainable(name, std::move(sizes));
  if (options_.frozen) return in_format_of_activations(name, tensor);
  if (options_.products_accumulate) {  // every use adds to the one buffer by itself
    value(tensor).accumulated = persistent(name + ".grad", tensor.sizes(),
                                           options_.gradient_precision, TensorRole::gradient);
    return tensor;
  }
  if (tensor.precision != options_.precision) {
    const Tensor copy = make(name + ".cast", tensor.shape);
    launch(name + ".cast", pointwise_kernel(copy, 0), {tensor}, {copy});
    value(copy) = value(tensor);
    tensor = copy;
  }
  value(tensor).finished_elsewhere = true;
  return tensor;
}

Tensor Tape::parameter_joined_elsewhere(const std::string& name, Sizes sizes) {
  const Tensor tensor = parameter_finished_elsewhere(name, std::move(sizes));
  if (requires_gradient(tensor) && !options_.products_accumulate)
    seed_gradient(tensor, StorageScope::enters_backward);
  return tensor;
}

Tensor Tape::input(const std::string& name, Sizes sizes, Precision precision) {
  return named_leaf(
      name, [&] { return persistent(name, std::move(sizes), precision, TensorRole::input); });
}

Tensor Tape::buffer(const std::string& name, Sizes sizes, Precision precision, Bytes beside) {
  return named_leaf(name, [&] {
    const Tensor tensor = persistent(name, std::move(sizes), precision, TensorRole::buffer);
    storage(tensor).bytes += beside;
    block_.buffers += tensor.traffic() + beside;
    return tensor;
  });
}

Tensor Tape::block_input(const std::string& name, Sizes sizes) {
  const StridedShape shape(std::move(sizes));
  const Bytes bytes(bytes_of(shape.elements(), options_.precision));
  const Tensor tensor =
      add_tensor(add_storage(name, TensorRole::activation, StorageScope::enters_forward, bytes),
                 shape, options_.precision);
  value(tensor).requires_gradient = records();
  value(tensor).finished_elsewhere = true;
  leaves_.push_back(tensor);
  return tensor;
}

Tensor Tape::shared_input(const std::string& name, const StridedShape& shape) {
  Tensor tensor = persistent(name, shape.sizes(), options_.precision, TensorRole::buffer);
  tensor.shape = shape;
  if (options_.differentiation == Differentiation::none) return tensor;
  const Tensor gradient =
      persistent(name + ".grad", tensor.sizes(), tensor.precision, TensorRole::buffer);
  value(tensor).requires_gradient = true;
  value(tensor).shared = true;
  value(tensor).accumulated = gradient;
  leaves_.push_back(tensor);
  return tensor;
}

}  // namespace tessera
