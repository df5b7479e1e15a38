#pragma once

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "app/import/job/imported_job.h"
#include "hw/units/input_error.h"
#include "tests/app/import/yaml_leaves.h"
#include "tests/hw/units/scratch.h"

namespace tessera::test {

using Fields = std::map<std::string, std::string>;

/// Scripts that start Hugging Face's Trainer, beside files of a folder.
class TrainerJob : public testing::Test {
 protected:
  JobOptions options() const {
    JobOptions options{.model = "llama-3-8b"};
    options.folder = folder_.path();
    return options;
  }
  ImportedJob import(const std::string& script) const {
    return import_script(script, "job.sh", options());
  }
  Fields fields(const std::string& script) const { return leaves_of(import(script).scenario); }
  std::string refusal(const std::string& script) const {
    try {
      import(script);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  /// Of 8 GPUs, with further arguments.
  static std::string torchrun(const std::string& arguments) {
    return "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B " +
           arguments + "\n";
  }

  ScratchFolder folder_;
};

}  // namespace tessera::test
