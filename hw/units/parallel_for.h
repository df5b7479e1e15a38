#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera {

/// As many threads as there are processors.
inline std::size_t processors() {
  return std::max(1U, std::thread::hardware_concurrency());
}

/// Calls `task(i)` for i in [0, count) on `most` threads, this one among them. Tasks must not share
/// state; results are the same in any order of execution. The first exception is thrown again when
/// all have stopped.
template <class Task>
void parallel_for(std::size_t count, const Task& task, std::size_t most = processors()) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t t = 1; t < std::min(most, count); ++t) threads.emplace_back(work);
  work();
  threads.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tessera
