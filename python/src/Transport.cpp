//===- Transport.cpp - Ranks that are processes of Python -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Transport.h"
#include "Errors.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <numeric>

namespace nb = nanobind;
using namespace mlir::tp::python;

namespace {

class PythonTransport final : public tprt::Transport {
public:
  explicit PythonTransport(nb::handle object)
      : object(nb::borrow(object)),
        rank(nb::cast<int64_t>(object.attr("rank"))),
        worldSize(nb::cast<int64_t>(object.attr("world_size"))) {}
  ~PythonTransport() override {
    if (!Py_IsInitialized()) { // the interpreter has freed everything
      (void)object.release();
      return;
    }
    nb::gil_scoped_acquire locked;
    object.reset();
  }

  int64_t getRank() const override { return rank; }
  int64_t getWorldSize() const override { return worldSize; }
  void connect(const std::vector<std::vector<int64_t>> &groups) override {
    call([&] { object.attr("connect")(groups); });
  }
  void allToAll(size_t group, const std::byte *sent,
                const std::vector<int64_t> &sentBytes, std::byte *received,
                const std::vector<int64_t> &receivedBytes) override {
    call([&] {
      object.attr("all_to_all")(
          group, view(const_cast<std::byte *>(sent), sentBytes, PyBUF_WRITE),
          sentBytes, view(received, receivedBytes, PyBUF_WRITE), receivedBytes);
    });
  }
  void abort(const std::string &reason) override {
    call([&] { object.attr("abort")(reason); });
  }

private:
  template <typename Body>
  static void call(Body body) {
    nb::gil_scoped_acquire locked;
    try {
      body();
    } catch (nb::python_error &error) {
      std::string text = nb::cast<std::string>(nb::str(error.value()));
      if (isAborted(error))
        throw tprt::AbortedError(text);
      throw tprt::executionError(text);
    }
  }

  /// Memory as a memoryview, which the callee doesn't keep.
  static nb::object view(std::byte *data, const std::vector<int64_t> &sizes,
                         int access) {
    int64_t size = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
    nb::object made = nb::steal(
        PyMemoryView_FromMemory(reinterpret_cast<char *>(data), size, access));
    if (!made.is_valid())
      nb::raise_python_error();
    return made;
  }

  nb::object object;
  const int64_t rank, worldSize;
};

} // namespace

std::shared_ptr<tprt::Transport>
mlir::tp::python::makeTransport(nb::handle object) {
  return std::make_shared<PythonTransport>(object);
}
