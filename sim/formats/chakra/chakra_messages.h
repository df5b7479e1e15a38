#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "hw/units/input_error.h"
#include "sim/formats/chakra/chakra_reader.h"

namespace tessera {

struct ChakraJob;

/// Numbers the messages of a job. A trace may use a tag again: the n-th send of one tag from one
/// rank to another belongs to the n-th receive there.
class ChakraMessages {
 public:
  explicit ChakraMessages(const ChakraJob& job);

  /// The number of the next message of that tag and peer, the same at both of its ends; call it for
  /// the sends and receives of a rank in their order.
  std::int32_t number_of(const ChakraNode& node, int rank);
  /// Messages that lack an end, and ends that no rank can be.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  ///< from, to, tag
  struct Counts {
    std::int32_t first = 0;  ///< number of the first message
    std::int32_t sends = 0, receives = 0;
    std::int32_t next_send = 0, next_receive = 0;
  };

  static Channel channel_of(const ChakraNode& node, int rank);

  std::map<Channel, Counts> channels_;
  std::vector<Problem> problems_;
};

}  // namespace tessera
