#include "app/import/job/torchtitan/torchtitan_idle.h"

#include <array>
#include <string>
#include <string_view>

namespace tessera::torchtitan {
namespace {

/// Keys behind their section, by how they begin; why they are idle where a job is without `what`.
struct IdleKey {
  std::string_view begin;
  bool Absent::*what;
  const char* why;
};
constexpr std::array<IdleKey, 8> kIdle{{
    {"enable_async_tensor_parallel", &Absent::tensor, "there is no tensor group"},
    {"pipeline_parallel_schedule", &Absent::stages, "there are no stages"},
    {"pipeline_parallel_microbatch", &Absent::stages, "there are no stages"},
    {"pipeline_parallel_split_points", &Absent::stages, "there are no stages"},
    {"context_parallel_rotate_method", &Absent::context, "there is no context group"},
    {"components", &Absent::compilation, "nothing is compiled"},
    {"float8.", &Absent::float8, "no product is in fp8"},
    {"linear.float8.", &Absent::float8, "no product is in fp8"},
}};

bool is_of(const std::string& key, std::string_view begin) {
  const bool is_section = begin.ends_with(".");
  const std::size_t dot = key.find('.');
  const std::string_view behind =
      std::string_view(key).substr(dot == std::string::npos ? 0 : dot + 1);
  return behind.starts_with(begin) || (is_section && key.starts_with(begin));
}

}  // namespace

void say_idle_keys(ScenarioDraft& draft, ForeignFields& in, const Absent& absent) {
  for (const auto& [key, value] : in.values()) {
    if (value.text.empty() || value.text == "false") continue;
    for (const IdleKey& idle : kIdle) {
      if (!(absent.*idle.what) || !is_of(key, idle.begin)) continue;
      in.word(key);  // said here
      draft.ignore(key + " = " + value.text + ": " + idle.why);
      break;
    }
  }
}

}  // namespace tessera::torchtitan
