#include "sim/cli/output.h"

#include <cstdio>
#include <stdexcept>

namespace tessera {

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw std::runtime_error("cannot write to stdout");
}

void add_format_option(CLI::App& command, std::string& format,
                       const std::vector<std::string>& accepted) {
  format = accepted.front();
  command.add_option("--format", format, "form of the answer on stdout")
      ->check(CLI::IsMember(accepted))
      ->capture_default_str();
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides, "path=value; overrides a field of the scenario; repeatable")
      ->allow_extra_args(false);
}

void add_form_option(CLI::App& command, std::string& form) {
  form = "tessera";
  command.add_option("--form", form, "form of the kernel model")
      ->check(CLI::IsMember({"tessera", "neusight", "roofline"}))
      ->capture_default_str();
}

}  // namespace tessera
