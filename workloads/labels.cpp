#include "workloads/labels.h"

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
  }
  return "";
}

std::string_view label_of(OpKind kind) {
  switch (kind) {
    case OpKind::kernels:
      return "kernels";
    case OpKind::all_reduce:
      return "all_reduce";
    case OpKind::send:
      return "send";
    case OpKind::recv:
      return "recv";
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
