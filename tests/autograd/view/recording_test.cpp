#include "autograd/view/recording.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "autograd/view/run_json.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"

namespace prenorm::view {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("prenorm_view_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of another's making, and no norm: one input, one output.
struct Namesake final : Node {
  const OpInfo& info() const override {
    static constexpr OpInfo info{
        .name = "layer_norm", .formula = "y = x", .derivative = "dx = dy", .reference = "", .file = "elsewhere.cpp"};
    return info;
  }
  Tensors forward(const Tensors& in) const override { return {clone(in[0].detach())}; }
  void backward(const Tensors& dy, GradientSink& dx) const override { dx.add(0, dy[0]); }
};

TEST_CASE("an op from elsewhere may go by the name of a norm") {
  Recording run;
  const Tensor x = randn64({2, 3});
  sum(apply_op<Namesake>({x})[0]).backward();
  const Json json = parse(run);
  CHECK(only(json, "layer_norm")["verdict"] == "ok");
  CHECK(json["norms"].empty());
}

TEST_CASE("a run is recorded with values, cotangents, gradients and names") {
  Recording run;
  const Tensor x = randn64({2, 3}, 1), w = randn64({3}, 2);
  run.name(x, "x");
  run.name({{"layer.w", w}});
  const Tensor y = x * w, z = exp(y), loss = sum(z);
  loss.backward();
  const Json json = parse(run, {.title = "a title", .note = "a note"});

  CHECK(json["format"] == "prenorm run");
  CHECK(json["version"] == 1);
  CHECK(json["title"] == "a title");
  CHECK(json["note"] == "a note");
  CHECK(json["broken"].is_null());
  CHECK(json["truncated"] == false);
  REQUIRE(json["nodes"].size() == 5);
  for (std::size_t id = 0; id < 5; ++id) CHECK(json["nodes"][id]["id"] == id);

  const Json& mul = only(json, "mul");
  CHECK(mul["inputs"] == Json::parse(R"([{"node":0,"output":0},{"node":1,"output":0}])"));
  CHECK(values(mul["outputs"][0]) == y.to_vector());
  CHECK(mul["outputs"][0]["shape"] == Json::parse("[2,3]"));
  CHECK(mul["outputs"][0]["dtype"] == "float64");
  CHECK(values(mul["cotangents"][0]) == z.to_vector());  // d exp = exp, times 1
  CHECK(values(mul["gradients"][0]) == x.grad().to_vector());
  CHECK(values(mul["gradients"][1]) == w.grad().to_vector());
  CHECK(mul["verdict"] == "ok");

  const Json& leaf = named(json, "x");
  CHECK(leaf["op"] == "leaf");
  CHECK(leaf["scope"] == "");
  CHECK(values(leaf["outputs"][0]) == x.to_vector());
  CHECK(values(leaf["cotangents"][0]) == x.grad().to_vector());
  for (const char* empty : {"inputs", "gradients", "checks"}) CHECK(leaf[empty].empty());
  CHECK(leaf["verdict"] == "none");
  CHECK(named(json, "layer.w")["scope"] == "layer");

  // Backward: the newest first, leaves as soon as they are final.
  CHECK(json["backward"].size() == 5);
  CHECK(json["nodes"][json["backward"][0].get<std::size_t>()]["op"] == "sum");
  for (std::size_t place = 0; place < 5; ++place) {
    CHECK(json["nodes"][json["backward"][place].get<std::size_t>()]["backward_index"] == place);
  }
  CHECK(json["ops"]["mul"]["file"] == "autograd/ops/mul.cpp");
  CHECK(json["sources"]["autograd/ops/mul.cpp"]["text"].get<std::string>().find("struct Mul") != std::string::npos);
}

TEST_CASE("a forward pass alone can be looked at") {
  Recording run;
  const Tensor x = randn64({2});
  const Tensor y = exp(x);
  const Json json = parse(run);
  CHECK(json["backward"].empty());
  CHECK(only(json, "exp")["verdict"] == "none");
  CHECK(only(json, "exp")["cotangents"][0].is_null());
}

TEST_CASE("constants, ids and optional inputs") {
  Recording run;
  const Tensor ids = Tensor::of(std::vector<std::int64_t>{2, 0, 2}, {3}, {.dtype = int64});
  const Tensor table = randn64({4, 2}), w = randn64({3, 2}, 1);
  run.name(ids, "ids");
  linear(embedding(ids, table), w).backward(ones({3, 3}, float64));
  const Json json = parse(run);
  CHECK(named(json, "ids")["op"] == "constant");
  CHECK(values(named(json, "ids")["outputs"][0]) == std::vector<double>{2, 0, 2});
  CHECK(named(json, "ids")["outputs"][0]["dtype"] == "int64");
  CHECK(only(json, "embedding")["checks"][0].is_null());
  CHECK(only(json, "embedding")["checks"][1]["ok"] == true);
  CHECK(only(json, "linear")["inputs"][2].is_null());
  CHECK(only(json, "linear")["gradients"][2].is_null());
  CHECK(with_verdict(json, "wrong").empty());
}

TEST_CASE("what is written in place later shows as it was") {
  Recording run;
  const Tensor x = randn64({3}, 1), w = randn64({3}, 2);
  run.name(w, "w");
  const std::vector<double> before = w.to_vector();
  const Tensor loss = sum(exp(x * w));
  loss.backward();
  optim::Adam adam(NamedTensors{{"w", w}}, {.lr = 0.1});
  adam.step();
  REQUIRE(w.to_vector() != before);
  fill_(w.grad(), 0);
  Json json = parse(run);
  CHECK(values(named(json, "w")["outputs"][0]) == before);
  CHECK(values(named(json, "w")["cotangents"][0]) != std::vector<double>{0, 0, 0});
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(with_verdict(json, "unchecked").empty());

  // The next step meets the parameter in another state: another leaf, of the same name.
  sum(exp(x * w)).backward();
  json = parse(run);
  std::vector<std::vector<double>> states;
  for (const Json& node : json["nodes"]) {
    if (node["name"] == "w") states.push_back(values(node["outputs"][0]));
  }
  CHECK(states == std::vector<std::vector<double>>{before, w.to_vector()});
  CHECK(with_verdict(json, "wrong").empty());
}

TEST_CASE("a value that is written to before its use is what the user saw") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  const Tensor y = x * 2.0;
  {
    const NoGrad no_grad;
    mul_(y, 3);
  }
  sum(tanh(y)).backward();
  const Json json = parse(run);
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(only(json, "tanh")["verdict"] == "ok");
}

TEST_CASE("several backward passes add up") {
  Recording run;
  const Tensor x = randn64({3}, 1), w = randn64({3}, 2);
  run.name(x, "x");
  const Tensor y = x * w;
  const Tensor a = sum(exp(y)), b = sum(y * y);
  a.backward({}, {.keep_graph = true});
  b.backward();
  const Json json = parse(run);
  expect_close(x.grad(), values(named(json, "x")["cotangents"][0]));
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(with_verdict(json, "unchecked").empty());
}

TEST_CASE("grad() asks for some gradients only; a second backward runs through the first") {
  Recording run;
  const Tensor x = randn64({3}, 1), w = randn64({3}, 2);
  const Tensor y = sum(exp(x * w));
  const Tensor dx = grad({y}, {x}, {}, {.create_graph = true})[0];
  sum(dx * dx).backward();
  const Json json = parse(run);
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(ids_of(json, "mul").size() > 2);  // those of the first backward, too
  CHECK(json["backward"].size() > 5);
}

TEST_CASE("a recording may begin in the middle of a graph, on its own thread, beside others") {
  const Tensor x = randn64({3}, 1);
  const Tensor before = exp(x);
  Recording outer;
  {
    Recording inner;
    sum(before * x).backward();
    const Json json = parse(inner);
    CHECK(ids_of(json, "leaf").size() == 2);  // x, and what was computed before
    CHECK(only(json, "mul")["verdict"] == "ok");
    CHECK(with_verdict(json, "wrong").empty());
    std::thread([] { sum(exp(randn64({3}))).backward(); }).join();
    CHECK(parse(inner) == json);
  }
  CHECK(parse(outer)["nodes"].size() == 4);
}

TEST_CASE("a forward that throws leaves no trace") {
  Recording run;
  const Tensor x = randn64({3}, 1);
  const Tensor y = exp(x);
  expect_error([&] { (void)(y + randn64({4})); }, "add");
  sum(y).backward();
  CHECK(parse(run)["nodes"].size() == 3);
}

TEST_CASE("nothing is left behind, nothing else is touched") {
  const std::int64_t nodes = Node::live_count();
  manual_seed(3);
  const Tensor state = default_generator().state();
  std::vector<double> with, without;
  for (std::vector<double>* gradient : {&with, &without}) {
    const Tensor x = randn64({300}, 1);
    const std::unique_ptr<Recording> run = gradient == &with ? std::make_unique<Recording>() : nullptr;
    sum(exp(x) * x).backward();
    if (run != nullptr) (void)run->json();
    *gradient = x.grad().to_vector();
  }
  CHECK(with == without);
  CHECK(default_generator().state().to_vector<std::int64_t>() == state.to_vector<std::int64_t>());
  CHECK(Node::live_count() == nodes);
}

TEST_CASE("tensors without elements") {
  Recording run;
  const Tensor x = Tensor::of(std::vector<double>{}, {0, 3}, {.dtype = float64, .requires_grad = true});
  sum(layer_norm(exp(x))).backward();
  const Json json = parse(run);
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(only(json, "exp")["checks"][0]["reason"] == "there are no elements");
  CHECK(only(json, "exp")["verdict"] == "unchecked");
}

TEST_CASE("scopes are the module paths, parameters go by their names") {
  manual_seed(0);
  nn::TinyLM model(11, {.d_model = 8, .n_heads = 2, .n_layers = 2, .max_len = 4});
  Recording run;
  const Tensor ids = randint(0, 11, {2, 4});
  cross_entropy(model(ids), ids).backward();
  const Json json = parse(run, {.names = model.parameters()});
  CHECK(only(json, "cross_entropy")["scope"] == "");
  CHECK(named(json, "blocks.1.ln1.gamma")["scope"] == "blocks.1.ln1");
  std::map<std::string, int> norms;
  for (std::int64_t id : ids_of(json, "layer_norm")) ++norms[json["nodes"][static_cast<std::size_t>(id)]["scope"]];
  CHECK(norms == std::map<std::string, int>{
                     {"blocks.0.ln1", 1}, {"blocks.0.ln2", 1}, {"blocks.1.ln1", 1}, {"blocks.1.ln2", 1}, {"ln_f", 1}});
  std::size_t parameters = 0;
  for (const NamedTensor& parameter : model.parameters()) {
    const Json& node = named(json, parameter.path);
    ++parameters;
    CHECK(node["op"] == "leaf");
  }
  CHECK(parameters == model.parameters().size());
  CHECK(with_verdict(json, "wrong").empty());
  CHECK(with_verdict(json, "unchecked").empty());
}

TEST_CASE("files") {
  const Folder folder;
  Recording run;
  const Tensor x = randn64({2});
  run.name(x, "</script><u7>\"x\\");
  sum(exp(x)).backward();
  run.write_json(folder.path / "run.json");
  run.write_html(folder.path / "run.html");
  run.write_dot(folder.path / "run.dot");
  const std::string json = content(folder.path / "run.json"), html = content(folder.path / "run.html"),
                    dot = content(folder.path / "run.dot");
  CHECK(json == run.json());
  CHECK(named(Json::parse(json), "</script><u7>\"x\\")["op"] == "leaf");
  CHECK(json.find('<') == std::string::npos);
  CHECK(html.find(json) != std::string::npos);
  CHECK(html.find("<u7>") == std::string::npos);
  CHECK(dot.find("n0 -> n1") != std::string::npos);
  CHECK(dot.find(R"(label="</script><u7>\"x\\)") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 3);  // no temporary file

  expect_error([&] { run.write_html(folder.path / "missing" / "run.html"); }, {"write_html", "missing"});
  expect_error([&] { run.write_json(folder.path); }, {"write_json", folder.path.string()});
  expect_error([&] { run.write_dot(folder.path / "missing" / "run.dot"); }, {"write_dot", "missing"});
}

TEST_CASE("errors") {
  Recording run;
  expect_error([&] { (void)run.json(); }, {"nothing was recorded", "before the forward pass"});
  expect_error([&] { (void)run.dot(); }, "nothing was recorded");
  expect_error([&] { run.write_html("never_written.html"); }, "nothing was recorded");
  expect_error([&] { run.name(Tensor(), "y"); }, {"\"y\"", "undefined"});
  CHECK(!fs::exists("never_written.html"));
  CHECK(run.size() == 0);
  const Tensor none = exp(randn64({2}).detach());  // nothing that requires grad: no node
  CHECK(run.size() == 0);
}

}  // namespace
}  // namespace prenorm::view
