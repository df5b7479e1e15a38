#include "lab/validate/validation_page.h"

#include <gtest/gtest.h>

#include "tests/app/html/inert_page.h"

namespace tessera {
namespace {

TEST(ValidationPage, TextOfTheUserIsData) {
  TrainingRunValidation validation;
  TrainingRunScore row;
  for (std::string* text : {&row.run.id, &row.run.source, &row.run.gpu, &row.run.framework,
                            &row.run.precision, &row.run.model, &row.skipped})
    *text = kAttack;
  row.run.step_time = 1_s;
  row.simulated = 2_s;
  row.error_pct = 100;
  validation.rows = {row};
  validation.groups = {{"gpu", kAttack, summarize_errors({100})}};
  const std::string page = validation_page(validation, kAttack, "1");
  expect_inert(page);
  EXPECT_EQ(data_of(page)["scatter"]["points"].size(), 1u);
}

}  // namespace
}  // namespace tessera
