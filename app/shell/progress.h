#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tessera {

/// "[#####...............]  123/456 runs, 31/s, 11 s left": what is written to a terminal.
std::string progress_line(std::size_t done, std::size_t all, const std::string& noun,
                          double elapsed_s);

/// A line on stderr that is written over and goes away at the end: what a long command is at. On a
/// terminal alone.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// For what changes faster than an eye can follow: whether it is time for another show().
  bool is_due() const;
  /// Cut to the width of the terminal.
  void show(const std::string& text);
  /// Where stderr is no terminal: a line of its own, none within the first 10 s.
  void tell(const std::string& text) const;
  /// progress_line() of the time since this was made.
  void show(std::size_t done, std::size_t all, const std::string& noun);

 private:
  bool on_terminal_;
  bool shows_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_;
};

/// Shows on stderr how far a long command is: one line that is written over on a terminal, else a
/// line of its own per tenth, and none for work that ends within a second.
class Progress {
 public:
  /// `noun` in the plural: "runs".
  explicit Progress(std::string noun);

  /// Call whenever one more has ended.
  void show(std::size_t done, std::size_t all);

 private:
  std::string noun_;
  bool on_terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
  std::size_t tenths_ = 0;
};

}  // namespace tessera
