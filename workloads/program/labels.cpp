#include "workloads/program/labels.h"

namespace tessera {

std::string_view label_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::loss:
      return "loss";
    case Phase::backward:
      return "backward";
    case Phase::gradient_reduction:
      return "gradient_reduction";
    case Phase::optimizer:
      return "optimizer";
  }
  return "";
}

std::string_view label_of(StreamKind stream) {
  switch (stream) {
    case StreamKind::compute:
      return "compute";
    case StreamKind::tensor_comm:
      return "tensor_comm";
    case StreamKind::data_comm:
      return "data_comm";
    case StreamKind::pipeline_send:
      return "pipeline_send";
    case StreamKind::pipeline_recv:
      return "pipeline_recv";
    case StreamKind::device_to_host:
      return "device_to_host";
    case StreamKind::host_to_device:
      return "host_to_device";
    case StreamKind::context_comm:
      return "context_comm";
    case StreamKind::replica_comm:
      return "replica_comm";
    case StreamKind::expert_comm:
      return "expert_comm";
    case StreamKind::host:
      return "host";
  }
  return "";
}

std::string_view label_of(GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return "tensor";
    case GroupKind::data:
      return "data";
    case GroupKind::pipeline:
      return "pipeline";
    case GroupKind::embedding:
      return "embedding";
    case GroupKind::world:
      return "world";
    case GroupKind::shard:
      return "shard";
    case GroupKind::replica:
      return "replica";
    case GroupKind::context:
      return "context";
    case GroupKind::expert:
      return "expert";
    case GroupKind::expert_data:
      return "expert_data";
    case GroupKind::expert_tensor:
      return "expert_tensor";
    case GroupKind::listed:
      return "listed";
  }
  return "";
}

std::string_view label_of(OpKind kind) {
  switch (kind) {
    case OpKind::kernels:
      return "kernels";
    case OpKind::all_reduce:
      return "all_reduce";
    case OpKind::reduce_scatter:
      return "reduce_scatter";
    case OpKind::all_gather:
      return "all_gather";
    case OpKind::broadcast:
      return "broadcast";
    case OpKind::all_to_all:
      return "all_to_all";
    case OpKind::ring_shift:
      return "ring_shift";
    case OpKind::send:
      return "send";
    case OpKind::recv:
      return "recv";
    case OpKind::copy_out:
      return "copy_out";
    case OpKind::copy_in:
      return "copy_in";
  }
  return "";
}

std::string_view label_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return "gemm";
    case KernelKind::batched_gemm:
      return "batched_gemm";
    case KernelKind::elementwise:
      return "elementwise";
    case KernelKind::copy:
      return "copy";
    case KernelKind::fill:
      return "fill";
    case KernelKind::softmax:
      return "softmax";
    case KernelKind::layer_norm:
      return "layer_norm";
    case KernelKind::reduction:
      return "reduction";
    case KernelKind::gather:
      return "gather";
    case KernelKind::scatter:
      return "scatter";
    case KernelKind::multi_tensor:
      return "multi_tensor";
    case KernelKind::convolution:
      return "convolution";
    case KernelKind::attention:
      return "attention";
    case KernelKind::grouped_gemm:
      return "grouped_gemm";
  }
  return "";
}

namespace {

std::string product_shape(const Kernel& kernel) {
  std::string text = kernel.batch > 1 ? std::to_string(kernel.batch) + " * " : std::string();
  text += std::to_string(kernel.m) + " x " + std::to_string(kernel.n) + " x " +
          std::to_string(kernel.k) + ' ' + std::string(label_of(kernel.layout));
  return kernel.bias ? text + " + bias" : text;
}

std::string attention_shape_label(const AttentionCall& call) {
  std::string text = call.batch > 1 ? std::to_string(call.batch) + " * " : std::string();
  text += std::to_string(call.heads);
  if (call.kv_heads != call.heads) text += "/" + std::to_string(call.kv_heads);
  text += " x " + std::to_string(call.seq_q) + " x " + std::to_string(call.seq_kv) + " x " +
          std::to_string(call.head_dim);
  if (call.value_dim > 0 && call.value_dim != call.head_dim)
    text += "/" + std::to_string(call.value_dim);
  if (call.window > 0) text += " window " + std::to_string(call.window);
  return call.causal ? text + " causal" : text;
}

}  // namespace

std::string shape_label(const Kernel& kernel) {
  std::string text = kernel.kind == KernelKind::attention ? attention_shape_label(kernel.attention)
                     : kernel.k > 0
                         ? product_shape(kernel)
                         : std::to_string(kernel.rows) + " x " + std::to_string(kernel.cols);
  if (kernel.precision == Precision::fp32) return text;
  return text + ' ' + std::string(name_of(kernel.precision));
}

std::string_view label_of(GemmLayout layout) {
  switch (layout) {
    case GemmLayout::tn:
      return "tn";
    case GemmLayout::nn:
      return "nn";
    case GemmLayout::nt:
      return "nt";
  }
  return "";
}

}  // namespace tessera
