#pragma once

#include <cstdint>
#include <string>

#include "hw/units/id.h"
#include "hw/units/precision.h"
#include "hw/units/quantity.h"
#include "workloads/graph/strided_shape.h"

namespace tessera {

/// What a piece of memory holds.
enum class TensorRole : std::uint8_t {
  parameter,
  gradient,          ///< of a parameter; persistent
  optimizer_state,   ///< persistent
  activation,        ///< dies within the forward pass
  saved_activation,  ///< kept because backward reads it
  temporary,         ///< made and freed within backward
  input,             ///< token ids, masks, labels
  buffer,            ///< persistent scratch memory, tables, tensors that many blocks share
};

std::string_view name_of(TensorRole role);

using StorageId = Id<struct StorageTag>;  ///< memory; views of a tensor share it
using ValueId = Id<struct ValueTag>;      ///< a tensor as autograd sees it; every view is its own

/// How the life of a storage relates to the block that it belongs to.
enum class StorageScope : std::uint8_t {
  local,            ///< from its first write to its last use
  enters_forward,   ///< the block's input, allocated by the block before; freed after its last use
  leaves_forward,   ///< the block's output; freed by the block behind
  enters_backward,  ///< gradient of the output, allocated by the block behind
  leaves_backward,  ///< gradient of the input; freed by the block before
  held,             ///< results that the caller keeps until the block's last operator
  persistent,       ///< static memory
};

struct Storage {
  std::string name;
  TensorRole role = TensorRole::activation;
  StorageScope scope = StorageScope::local;
  Bytes bytes;
  bool communicated = false;  ///< a collective reads or writes it, on a stream of its own
};

/// A strided window on a storage.
struct Tensor {
  StorageId storage;
  ValueId value;
  StridedShape shape;
  Precision precision = Precision::fp32;

  const Sizes& sizes() const { return shape.sizes(); }
  std::int64_t elements() const { return shape.elements(); }
  /// Memory that reading or writing the whole tensor once moves.
  Bytes traffic() const { return Bytes(bytes_of(shape.distinct_elements(), precision)); }
};

}  // namespace tessera
