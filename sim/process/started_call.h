#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "sim/process/answer.h"
#include "sim/process/forked_pool.h"

namespace tessera {

/// A call that runs in a fork of this process while this one does something else. Threads of it may
/// start later: a fork has none of them, but what they hold at its time stays locked there.
template <class Answer>
class StartedCall {
 public:
  explicit StartedCall(const std::function<Answer()>& call) {
    pool_.start(0, [&call] { return packed(call()); });
  }

  /// What has become of it, once: waits for its end.
  ForkedAnswer<Answer> answer() && {
    EndedCall ended = pool_.wait().front();
    if (ended.how == EndedCall::How::returned) return {unpacked<Answer>(ended.text), ""};
    return {std::nullopt, ended.text.empty() ? "unknown error" : std::move(ended.text)};
  }

 private:
  ForkedPool pool_{1, kNoTimeLimit};
};

}  // namespace tessera
