#include "sim/plan/memory/packed_ops.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tessera {
namespace {

constexpr int kNeverUsed = -1;
constexpr std::int64_t kBitsOfByte = 8;
/// Below this two more kernels cost more than the bytes are worth.
constexpr Bytes kLeastSaved = 1_MiB;

/// Where a tensor waits, and what for.
struct Wait {
  int last_forward = kNeverUsed, first_backward = kNeverUsed;
  bool written_late = false;           ///< by backward
  bool bits_alone = true;              ///< all that backward reads
  std::optional<Kernel> reader;        ///< of bits: its rows and columns are the elements
  std::optional<Precision> precision;  ///< of what products read
};

/// A tensor that is packed.
struct Packed {
  int tensor = 0, bits = 0, again = 0;  ///< in `StageOps::tensors`: it, its bits, and unpacked
  int behind = 0, ahead_of = 0;         ///< operators
  Kernel kernel;                        ///< that packs
};

bool multiplies(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::convolution;
}

class Packer {
 public:
  Packer(const StageOps& stage, ActivationPacking packing) : result_(stage), packing_(packing) {}

  StageOps run() && {
    find_waits();
    for (int tensor = 0; tensor < static_cast<int>(waits_.size()); ++tensor) choose(tensor);
    if (packed_.empty()) return std::move(result_);
    added_ = std::make_shared<std::deque<GraphOp>>();
    rewrite();
    result_.added = added_;
    return std::move(result_);
  }

 private:
  const StageOp& op(int i) const { return result_.ops[static_cast<std::size_t>(i)]; }
  StageTensor& tensor(int t) { return result_.tensors[static_cast<std::size_t>(t)]; }

  void find_waits() {
    waits_.resize(result_.tensors.size());
    for (int i = 0; i < static_cast<int>(result_.ops.size()); ++i) {
      for (const int read : op(i).reads) touch(read, i, false);
      for (const int written : op(i).writes) touch(written, i, true);
    }
  }
  void touch(int touched, int i, bool writes) {
    Wait& wait = waits_[static_cast<std::size_t>(touched)];
    if (i < result_.forward_ops) {
      wait.last_forward = i;
      return;
    }
    if (wait.first_backward == kNeverUsed) wait.first_backward = i;
    const Kernel& kernel = op(i).op->kernel;
    const bool bits = op(i).bits == touched && op(i).op->kind == GraphOpKind::kernel;
    if (writes) wait.written_late = true;
    if (bits && !wait.reader) wait.reader = kernel;
    if (!bits) wait.bits_alone = false;
    if (!bits && multiplies(kernel)) wait.precision = kernel.precision;
  }

  bool is_message(int t) const {
    return t == result_.received_input || t == result_.sent_output ||
           t == result_.received_gradient || t == result_.sent_gradient;
  }

  void choose(int t) {
    const Wait& wait = waits_[static_cast<std::size_t>(t)];
    if (wait.last_forward == kNeverUsed || wait.first_backward == kNeverUsed || wait.written_late ||
        is_message(t))
      return;
    const Bytes bytes = tensor(t).bytes;
    std::int64_t elements = 0;
    Bytes small;
    if (wait.bits_alone && wait.reader) {
      elements = wait.reader->rows * wait.reader->cols;
      small = Bytes((elements + kBitsOfByte - 1) / kBitsOfByte);
    } else if (packing_ == ActivationPacking::eight_bit && wait.precision &&
               element_bytes(*wait.precision) > 1) {
      elements = bytes.value() / static_cast<std::int64_t>(element_bytes(*wait.precision));
      small = Bytes(elements);
    } else {
      return;
    }
    small = allocated_size(small);
    if (elements > 0 && bytes - small >= kLeastSaved) add(t, wait, elements, small);
  }

  void add(int t, const Wait& wait, std::int64_t elements, Bytes small) {
    Packed packed;
    packed.tensor = t;
    packed.behind = wait.last_forward;
    packed.ahead_of = wait.first_backward;
    const StageTensor whole = tensor(t);
    packed.bits = static_cast<int>(result_.tensors.size());
    result_.tensors.push_back({whole.name + ".packed", small, whole.role});
    packed.again = static_cast<int>(result_.tensors.size());
    result_.tensors.push_back({whole.name + ".unpacked", whole.bytes, TensorRole::temporary});
    packed.kernel.cols = wait.reader ? wait.reader->cols : 1;
    packed.kernel.rows = elements / packed.kernel.cols;
    packed.kernel.precision = wait.reader      ? wait.reader->precision
                              : wait.precision ? *wait.precision
                                               : Precision::fp32;
    packed.kernel.flops = Flops(static_cast<double>(elements));
    packed.kernel.bytes_read = whole.bytes;
    packed.kernel.bytes_written = small;
    packed_.push_back(packed);
  }

  void rewrite() {
    const std::vector<StageOp> before = std::move(result_.ops);
    const int forward = result_.forward_ops, late = result_.late_ops;
    result_.ops.clear();
    for (int i = 0; i <= static_cast<int>(before.size()); ++i) {
      if (i == forward) result_.forward_ops = static_cast<int>(result_.ops.size());
      if (i == late) result_.late_ops = static_cast<int>(result_.ops.size());
      if (i == static_cast<int>(before.size())) break;
      const StageOp& old = before[static_cast<std::size_t>(i)];
      for (const Packed& packed : packed_)
        if (packed.ahead_of == i) put(old, packed, false);
      result_.ops.push_back(old);
      if (i >= forward) rename(result_.ops.back());
      for (const Packed& packed : packed_)
        if (packed.behind == i) put(old, packed, true);
    }
  }
  void rename(StageOp& entry) const {
    for (const Packed& packed : packed_) {
      std::ranges::replace(entry.reads, packed.tensor, packed.again);
      if (entry.bits == packed.tensor) entry.bits = packed.again;
    }
  }
  /// The kernel that packs, or unpacks, beside `place`.
  void put(const StageOp& place, const Packed& packed, bool packs) {
    GraphOp& made = added_->emplace_back();
    made.phase = packs ? Phase::forward : Phase::backward;
    made.name = place.op->name + (packs ? ".pack" : ".unpack");
    made.kernel = packed.kernel;
    if (!packs) std::swap(made.kernel.bytes_read, made.kernel.bytes_written);
    StageOp entry;
    entry.op = &made;
    entry.block = place.block;
    entry.layer = place.layer;
    entry.reads = {packs ? packed.tensor : packed.bits};
    entry.writes = {packs ? packed.bits : packed.again};
    result_.ops.push_back(std::move(entry));
  }

  StageOps result_;
  ActivationPacking packing_;
  std::vector<Wait> waits_;  ///< by tensor
  std::vector<Packed> packed_;
  std::shared_ptr<std::deque<GraphOp>> added_;
};

}  // namespace

StageOps with_packed_tensors(const StageOps& stage, ActivationPacking packing) {
  if (packing == ActivationPacking::as_it_is) return stage;
  return Packer(stage, packing).run();
}

}  // namespace tessera
