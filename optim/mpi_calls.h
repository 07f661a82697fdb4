// MPI as ranks.cpp and data_parallel.cpp use it: the only door to it. Not for users.
#pragma once

#include <mpi.h>

#include <string>
#include <thread>

#include "autograd/check.h"
#include "autograd/dtype.h"
#include "optim/ranks.h"

namespace prenorm::optim {

struct Ranks::Communicators {
  MPI_Comm world;
  int rank = 0, size = 1;
};

// Communicators return their errors (MPI_ERRORS_RETURN); here they become exceptions.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(call, ": ", std::string(text, static_cast<std::size_t>(length)));
}

// MPI_Wait, but for giving way to others that want the processor: perhaps the rank that is waited for.
inline void wait_for(MPI_Request& request) {
  for (int done = 0; done == 0;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) std::this_thread::yield();
  }
}

// A communicator of its own on the same ranks: what is sent over it never meets the messages of others.
inline MPI_Comm duplicate(MPI_Comm communicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(communicator, &copy), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return copy;
}

}  // namespace prenorm::optim
