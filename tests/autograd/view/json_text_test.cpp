#include "autograd/view/json_text.h"

#include "autograd/view/run_json.h"
#include "autograd/view/tensor_json.h"

namespace prenorm::view {
namespace {

TEST_CASE("numbers read back as the same value") {
  Generator generator(1);
  for (int i = 0; i < 1000; ++i) {
    const double wide = generator.standard_normal() * std::pow(10, 40 * generator.uniform() - 20);
    const auto single = static_cast<float>(wide);
    CHECK(Json::parse(json_number(wide)).get<double>() == wide);
    CHECK(static_cast<float>(Json::parse(json_number(single)).get<double>()) == single);
    CHECK(json_number(single).size() <= 15);
  }
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(0.1F) == "0.1");
  CHECK(json_number(1234567.0, 4) == "1.235e+06");
  for (double limit : {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(), -0.0}) {
    CHECK(Json::parse(json_number(limit)).get<double>() == limit);
  }
  CHECK(json_number(NAN) == "\"nan\"");
  CHECK(json_number(INFINITY) == "\"inf\"");
  CHECK(json_number(-INFINITY, 4) == "\"-inf\"");
}

TEST_CASE("strings are inert in a script and valid UTF-8") {
  for (const std::string& text : {std::string("</script>"), std::string("<!--<script>"), std::string("a\"b\\c\n\t\x01"),
                                  std::string("größe → 1"), std::string("nul\0l", 5)}) {
    const std::string json = json_string(text);
    CHECK(json.find('<') == std::string::npos);
    CHECK(Json::parse(json).get<std::string>() == text);
  }
  CHECK(Json::parse(json_string("a\xff")).get<std::string>() == "a\xEF\xBF\xBD");
}

TEST_CASE("a tensor in full") {
  const Json single = Json::parse(full_json(Tensor::of({1, 2.5, NAN, INFINITY, -INFINITY, 0.1}, {2, 3})));
  CHECK(single["shape"] == Json::parse("[2,3]"));
  CHECK(single["dtype"] == "float32");
  CHECK(single["values"] == Json::parse(R"([1,2.5,"nan","inf","-inf",0.1])"));
  const Tensor strided = transpose(Tensor::of({1, 2, 3, 4}, {2, 2}), 0, 1);
  CHECK(values(Json::parse(full_json(strided))) == std::vector<double>{1, 3, 2, 4});
  const std::int64_t large = (std::int64_t{1} << 60) + 1;  // beyond what a double holds
  CHECK(Json::parse(full_json(Tensor::of(std::vector<std::int64_t>{large}, {1}, {.dtype = int64})))["values"][0] ==
        large);
  CHECK(values(Json::parse(full_json(Tensor::of(std::vector<bool>{true, false}, {2}, {.dtype = boolean})))) ==
        std::vector<double>{1, 0});
  CHECK(Json::parse(full_json(Tensor::scalar(2)))["shape"] == Json::array());
  CHECK(Json::parse(full_json(Tensor::empty({0, 3})))["values"] == Json::array());
}

TEST_CASE("a summary says what fits") {
  std::vector<double> numbers(300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) - 100;
  numbers[7] = NAN;
  numbers[8] = INFINITY;
  const Tensor tensor = Tensor::of(numbers, {3, 10, 10});
  const Json all = Json::parse(summary_json(tensor, 1000));
  CHECK(all["stats"]["min"] == -100);
  CHECK(all["stats"]["max"] == 199);
  CHECK(all["stats"]["zeros"] == 1);
  CHECK(all["stats"]["nan"] == 1);
  CHECK(all["stats"]["inf"] == 1);
  CHECK(all["largest"][0][0] == 7);  // NaN and infinity first
  CHECK(all["largest"][2] == Json::parse("[299,199]"));
  CHECK(all["corner"]["rows"] == 4);
  CHECK(all["corner"]["values"][4] == -90);
  std::int64_t counted = 0;
  for (const Json& count : all["histogram"]["counts"]) counted += count.get<std::int64_t>();
  CHECK(counted == 298);
  for (std::size_t bytes = 0; bytes < 600; bytes += 7) {
    const std::string text = summary_json(tensor, bytes);
    CHECK(text.size() <= std::max<std::size_t>(bytes, 42));  // shape and dtype in any case
    CHECK(Json::parse(text)["shape"] == Json::parse("[3,10,10]"));
  }
  CHECK(Json::parse(summary_json(Tensor::empty({0, 7}), 400)).size() == 2);
}

}  // namespace
}  // namespace prenorm::view
