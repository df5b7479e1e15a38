#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/communication/communication_plan.h"
#include "sim/engine/network/transfers.h"

namespace tessera {

/// Which message: a tag is unique between two ranks within a step.
struct MessageKey {
  int from_rank = 0;
  int to_rank = 0;
  int tag = 0;
  auto operator<=>(const MessageKey&) const = default;
};

/// Messages between ranks. Sends are eager: the bytes flow as soon as the sender's stream gets to
/// the send, whether or not the receiver waits already.
class MessageBoard {
 public:
  MessageBoard(const CommunicationPlan& plan, SimClock& clock, Transfers& transfers)
      : plan_(plan), clock_(clock), transfers_(transfers) {}

  /// `on_sent` runs when the message has arrived. A message to a rank that is not simulated goes to
  /// the one that stands for it.
  void send(const PlannedTransfer& message, int tag, Action on_sent);
  /// `on_arrival` runs when the message is there; never directly from within this call.
  void receive(MessageKey key, Action on_arrival);
  /// `on_end` runs when the bytes of a copy to or from host memory have arrived.
  void copy(const PlannedTransfer& copy, Action on_end) {
    transfers_.start(copy.transfer, std::move(on_end));
  }
  /// "message 5 from gpu 0 to gpu 2 was never received", a line for each.
  std::vector<std::string> unreceived() const;

 private:
  struct Message {
    bool arrived = false;
    Action on_arrival;  // empty: nobody waits yet
  };
  void deliver(MessageKey key);
  /// The key with the ranks that stand for those of `key`.
  MessageKey folded(MessageKey key) const;

  const CommunicationPlan& plan_;
  SimClock& clock_;
  Transfers& transfers_;
  std::map<MessageKey, Message> messages_;  // under way, or awaited
};

}  // namespace tessera
