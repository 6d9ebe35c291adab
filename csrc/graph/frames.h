// The running Python frames, read without making frame objects.
// May include: Python.h.
// Invariant: layouts are those of the Python version compiled for; versions not known here go
// through the public functions.
#pragma once
#include <Python.h>
#include <frameobject.h>

#include <cstdint>

namespace clew {

// What stands for an instruction where its address cannot: functions of equal text share their
// instructions in Python 3.10. Other objects and other offsets give other values.
inline const void* instruction_of(const PyCodeObject* code, int32_t offset) {
  uint64_t value = reinterpret_cast<uintptr_t>(code) * 0x9E3779B97F4A7C15u;
  return reinterpret_cast<const void*>(
      static_cast<uintptr_t>(value + static_cast<uint64_t>(offset)));
}

// A walk from the innermost frame outwards. code() is borrowed; at() names the instruction.
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000
class Frames {
  // The first fields of an interpreter frame.
  struct Raw {
#if PY_VERSION_HEX < 0x030c0000
    void* func;
    void* globals;
    void* builtins;
    void* locals;
    PyObject* code;
    void* frame_object;
    Raw* previous;
#else
    PyObject* code;
    Raw* previous;
    void* func;
    void* globals;
    void* builtins;
    void* locals;
    void* frame_object;
#endif
    const char* instruction;
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030d0000
    int stack_top;
    uint16_t return_offset;
    char owner;
#endif
  };
  Raw* raw_;

 public:
  Frames() {
    PyThreadState* thread = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030d0000
    raw_ = reinterpret_cast<Raw*>(thread->cframe->current_frame);
#else
    raw_ = reinterpret_cast<Raw*>(thread->current_frame);
#endif
    skip_entries();
  }
  explicit operator bool() const { return raw_ != nullptr; }
  void next() {
    raw_ = raw_->previous;
    skip_entries();
  }
  PyCodeObject* code() const { return reinterpret_cast<PyCodeObject*>(raw_->code); }
  const void* at() const { return raw_->instruction; }
  int32_t offset() const {
    return static_cast<int32_t>(raw_->instruction -
                                reinterpret_cast<const char*>(code()->co_code_adaptive));
  }

 private:
  // A frame that only marks an entry from C has no code object of its own. In Python 3.12 such
  // frames share a code object of the interpreter; they are recognized by their owner, the C stack.
  bool is_entry() const {
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030d0000
    if (raw_->owner == 3) return true;
#endif
    return !(raw_->code && PyCode_Check(raw_->code));
  }
  void skip_entries() {
    while (raw_ && is_entry()) raw_ = raw_->previous;
  }
};
#elif PY_VERSION_HEX < 0x030b0000
class Frames {
  PyFrameObject* frame_ = PyEval_GetFrame();

 public:
  explicit operator bool() const { return frame_ != nullptr; }
  void next() { frame_ = frame_->f_back; }
  PyCodeObject* code() const { return frame_->f_code; }
  int32_t offset() const { return frame_->f_lasti * 2; }
  const void* at() const { return instruction_of(code(), offset()); }
};
#else
class Frames {
  PyFrameObject* frame_ = PyEval_GetFrame();

 public:
  Frames() { Py_XINCREF(frame_); }
  Frames(const Frames& other) : frame_(other.frame_) { Py_XINCREF(frame_); }
  Frames& operator=(const Frames&) = delete;
  ~Frames() { Py_XDECREF(frame_); }
  explicit operator bool() const { return frame_ != nullptr; }
  void next() {
    PyFrameObject* back = PyFrame_GetBack(frame_);
    Py_DECREF(frame_);
    frame_ = back;
  }
  // The frame keeps its code alive.
  PyCodeObject* code() const {
    PyCodeObject* code = PyFrame_GetCode(frame_);
    Py_DECREF(code);
    return code;
  }
  int32_t offset() const { return PyFrame_GetLasti(frame_); }
  const void* at() const { return instruction_of(code(), offset()); }
};
#endif

}  // namespace clew
