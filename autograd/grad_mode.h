// Whether operations record nodes on this thread. Each thread has its own mode and starts with recording on.
#pragma once

namespace prenorm {

class GradMode {
 public:
  static bool enabled() { return flag(); }

 protected:
  explicit GradMode(bool on) : outer_(flag()) { flag() = on; }
  ~GradMode() { flag() = outer_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  static bool& flag() {
    thread_local bool enabled = true;
    return enabled;
  }
  bool outer_;
};

// `NoGrad no_grad;` switches recording off until the end of the enclosing block, also when an exception leaves it.
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};

// Sets recording on or off until the end of the enclosing block.
struct SetGrad : GradMode {
  explicit SetGrad(bool on) : GradMode(on) {}
};

}  // namespace prenorm
