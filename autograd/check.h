// Errors: one exception type, one way to raise it.
//
// A message is one sentence that starts with the op or function, shows the shapes or values as given, and says what
// would have been right: "matmul: inner sizes differ: [2, 3] @ [4, 5], expected [2, 3] @ [3, 5]".
#pragma once

#include <sstream>
#include <stdexcept>

namespace prenorm {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Error with all parts joined by operator<<.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}

// Throws Error unless `ok`; the parts are only formatted on failure. Active in every build type.
template <class... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(parts...);
}

}  // namespace prenorm
