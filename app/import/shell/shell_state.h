#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/import/shell/shell_words.h"

namespace tessera {

/// How a command ends. `program`: as a program decides that is not run.
enum class ShellStatus : std::uint8_t { yes, no, unknown, program };

/// Why the following commands do not run.
enum class ShellHalt : std::uint8_t { none, next_round, loop, function, script };

struct ShellFunction {
  std::string body;
  int line = 1;
};

/// What a script has come to. Readers of its parts share one.
struct ShellState {
  const std::string& name;
  const ShellSettings& settings;
  ShellScript script;
  std::vector<std::string> arguments;  ///< of the script or the function
  std::map<std::string, ShellFunction> functions;
  std::vector<std::string> conditions;  ///< undecided ones around the command
  std::string doubt;                    ///< what the last undecided condition depends on
  ShellHalt halt = ShellHalt::none;
  int depth = 0;             ///< of functions, evaluated texts and default values
  int steps = 0;             ///< commands
  int branches = 0;          ///< undecided ones
  std::size_t expanded = 0;  ///< characters

  /// The value of a variable; nothing where it is unset or undecided.
  std::optional<std::vector<std::string>> value_of(const std::string& variable) const;
  /// `appends`: a list to a list, a text to the first value.
  void assign(const std::string& variable, std::vector<std::string> values, bool appends = false,
              bool is_list = false);
  /// Its value depends on `why`.
  void make_unknown(const std::string& variable, const std::string& why);
};

/// The ways through an undecided condition: what they leave behind is joined.
class ShellBranches {
 public:
  explicit ShellBranches(ShellState& state)
      : state_(state), start_(state.script.variables), undecided_(state.script.undecided) {}

  bool any() const { return any_; }
  /// Follows a way that is taken if `why`. One that ends the script is none.
  template <class Way>
  void follow(const std::string& why, Way way) {
    begin(why);
    way();
    end();
  }
  void join();

 private:
  void begin(const std::string& why);
  void end();

  ShellState& state_;
  ShellVariables start_;
  std::map<std::string, std::string> undecided_;
  std::vector<ShellVariables> ends_;
  std::map<std::string, std::string> late_;  ///< undecided at the end of a way
  std::string why_;
  bool any_ = false;
};

std::string joined(const std::vector<std::string>& words);

std::vector<std::string> texts_of(const std::vector<ShellWord>& words);

/// Length of the name at the start of `text`; 0 where there is none.
std::size_t name_length(std::string_view text);

/// Whether `text` matches a pattern of * ? and [abc].
bool matches_glob(std::string_view text, std::string_view pattern);

/// Of test, [ and [[: `words` without the brackets. `state` says which variables are unset, and
/// gets the doubt.
ShellStatus shell_test(const std::vector<std::string>& words, ShellState& state);

}  // namespace tessera
