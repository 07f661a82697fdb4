// Graphs that are deep or wide, on a stack of 256 KiB: forward, backward and destruction must not recurse. The program
// starts itself once more through a shell that sets the limit, as a stack's size is fixed when a process begins.

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops.h"

namespace prenorm {
namespace {

constexpr rlim_t kStack = 256 * 1024;
constexpr int kNodes = 1'000'000;

int failures = 0;

void expect(bool ok, const std::string& what) {
  std::printf("%s: %s\n", ok ? "ok" : "FAILED", what.c_str());
  failures += ok ? 0 : 1;
}

Tensor leaf(double value) { return Tensor::scalar(value, {.dtype = float64, .requires_grad = true}); }

// Runs f, which may keep no tensors, and looks for nodes left behind.
template <class F>
void test(const std::string& name, F f) {
  const std::int64_t before = Node::live_count();
  f(name);
  expect(Node::live_count() == before, name + ": no node is left");
}

Tensor chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < kNodes; ++i) y = -y;
  return y;
}

void run_all() {
  test("a chain of a million nodes", [](const std::string& name) {
    const std::int64_t before = Node::live_count();
    const Tensor x = leaf(1), y = chain(x);
    expect(Node::live_count() == before + kNodes + 1, name + ": all are alive");
    y.backward();
    expect(x.grad().item() == 1, name + ": the gradient is right");
  });
  test("a chain destroyed without backward", [](const std::string&) { chain(leaf(1)); });
  test("a chain destroyed from within", [](const std::string& name) {
    const Tensor x = leaf(2);
    Tensor middle;
    {
      Tensor y = x;
      for (int i = 0; i < kNodes / 2; ++i) y = -y;
      middle = y;
      for (int i = 0; i < kNodes / 2; ++i) y = -y;
    }
    middle.backward();
    expect(x.grad().item() == 1, name + ": what is still held works");
  });
  test("a ladder: each node uses the last one and the leaf", [](const std::string& name) {
    const Tensor x = leaf(0.5);
    Tensor y = x;
    for (int i = 0; i < kNodes / 4; ++i) y = y + x;
    y.backward();
    expect(x.grad().item() == std::floor(kNodes / 4.0) + 1, name + ": the gradient counts the uses");
  });
  test("a fan: a hundred thousand nodes beside each other", [](const std::string& name) {
    const Tensor x = Tensor::of({1}, {.dtype = float64, .requires_grad = true});
    Tensors parts;
    for (int i = 0; i < kNodes / 10; ++i) parts.push_back(x * 2);
    sum(concat(parts)).backward();
    expect(x.grad().item() == 2 * std::floor(kNodes / 10.0), name + ": the gradient is the sum");
  });
  test("a fan destroyed without backward", [](const std::string&) {
    const Tensor x = Tensor::of({1}, {.dtype = float64, .requires_grad = true});
    Tensors parts;
    for (int i = 0; i < kNodes / 10; ++i) parts.push_back(-(x * 2));
    concat(parts);
  });
  for (const int depth : {20, 1000}) {
    test("a diamond chain with 2^" + std::to_string(depth) + " paths", [depth](const std::string& name) {
      const Tensor x = leaf(1);
      Tensor y = x * 1;
      for (int i = 0; i < depth; ++i) y = y + y;
      y.backward();
      expect(x.grad().item() == std::pow(2, depth), name + ": each node runs once");
    });
  }
  test("a graph of gradients", [](const std::string& name) {
    const Tensor x = leaf(1);
    Tensor y = x;
    for (int i = 0; i < kNodes / 20; ++i) y = y * 1;
    const Tensor g = grad({y * y}, {x}, {}, {.create_graph = true})[0];
    expect(grad({g}, {x})[0].item() == 2, name + ": the second derivative is right");
  });
  test("hooks that hold other graphs", [](const std::string&) {
    const Tensor x = leaf(1);
    Tensor y = -x;
    for (int i = 0; i < kNodes / 20; ++i) {
      const Tensor next = -x;
      next.register_hook([held = y](const Tensor&) { return Tensor(); });
      y = -next;
    }
  });
}

}  // namespace
}  // namespace prenorm

int main(int argc, char** argv) {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur > prenorm::kStack) {
    if (argc > 1) return std::fprintf(stderr, "the limit of the stack could not be set\n"), 1;
    execl("/bin/sh", "sh", "-c", "ulimit -s 256 && exec \"$0\" limited", argv[0], static_cast<char*>(nullptr));
    return std::perror("/bin/sh"), 1;
  }
  prenorm::run_all();
  std::printf("%d failed\n", prenorm::failures);
  return prenorm::failures == 0 ? 0 : 1;
}
