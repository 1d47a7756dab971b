// RETURN_IF_ERROR and ASSIGN_OR_RETURN: propagate errors without repeating the test for them. Names
// and behaviour are Abseil's (absl/status/status_macros.h of later releases than Debian's), without
// its StatusBuilder.
#ifndef LENGTHWISE_PLATFORM_STATUS_MACROS_H_
#define LENGTHWISE_PLATFORM_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the absl::Status that `expression` evaluates to from the enclosing function, unless it is
// OK. Evaluates `expression` once. The function returns absl::Status or absl::StatusOr<T>.
//
//   RETURN_IF_ERROR(writer.Commit());
#define RETURN_IF_ERROR(expression)                                                         \
  LENGTHWISE_STATUS_MACROS_BLOCK_ELSE_                                                      \
  if (absl::Status lengthwise_status = (expression); lengthwise_status.ok()) { /* go on */  \
  } else                                                                       /* NOLINT */ \
    return lengthwise_status

// Evaluates `expression`, an absl::StatusOr<T>, once. Returns its status from the enclosing
// function, or initialises or assigns `left` with its value. `left` is a declaration or an
// lvalue; put it in parentheses where it has a comma. Expands to several statements: not for the
// body of an `if` without braces.
//
//   ASSIGN_OR_RETURN(const Trial trial, FindTrial(name));
//   ASSIGN_OR_RETURN((const auto [id, key]), Parse(name));
//
// An optional third argument is returned instead of the status. It can use the status as `_`:
//
//   ASSIGN_OR_RETURN(const Trial trial, FindTrial(name), Explained(_));
#define ASSIGN_OR_RETURN(...)                                                     \
  LENGTHWISE_STATUS_MACROS_PICK_(__VA_ARGS__, LENGTHWISE_STATUS_MACROS_ASSIGN_3_, \
                                 LENGTHWISE_STATUS_MACROS_ASSIGN_2_, unused)      \
  (__VA_ARGS__)

// Implementation details.
// Keeps an `else` that follows the macro from belonging to the macro's `if`.
#define LENGTHWISE_STATUS_MACROS_BLOCK_ELSE_ \
  switch (0)                                 \
  case 0:                                    \
  default:
#define LENGTHWISE_STATUS_MACROS_PICK_(_1, _2, _3, pick, ...) pick
#define LENGTHWISE_STATUS_MACROS_ASSIGN_2_(left, expression) \
  LENGTHWISE_STATUS_MACROS_ASSIGN_3_(left, expression, _)
#define LENGTHWISE_STATUS_MACROS_ASSIGN_3_(left, expression, error)                                \
  LENGTHWISE_STATUS_MACROS_ASSIGN_(LENGTHWISE_STATUS_MACROS_JOIN_(lengthwise_statusor_, __LINE__), \
                                   left, expression, error)
#define LENGTHWISE_STATUS_MACROS_ASSIGN_(statusor, left, expression, error) \
  auto statusor = (expression);                                             \
  if (!statusor.ok()) {                                                     \
    [[maybe_unused]] absl::Status _ = std::move(statusor).status();         \
    return error;                                                           \
  }                                                                         \
  LENGTHWISE_STATUS_MACROS_WITHOUT_PARENTHESES_(left) = *std::move(statusor)
#define LENGTHWISE_STATUS_MACROS_JOIN_(a, b) LENGTHWISE_STATUS_MACROS_JOIN_AGAIN_(a, b)
#define LENGTHWISE_STATUS_MACROS_JOIN_AGAIN_(a, b) a##b
// `(x)` becomes `x`, and `x` stays.
#define LENGTHWISE_STATUS_MACROS_WITHOUT_PARENTHESES_(left) \
  LENGTHWISE_STATUS_MACROS_REMOVE_(LENGTHWISE_STATUS_MACROS_UNWRAP_ left)
#define LENGTHWISE_STATUS_MACROS_UNWRAP_(...) LENGTHWISE_STATUS_MACROS_UNWRAP_ __VA_ARGS__
#define LENGTHWISE_STATUS_MACROS_REMOVE_(...) LENGTHWISE_STATUS_MACROS_REMOVE_AGAIN_(__VA_ARGS__)
#define LENGTHWISE_STATUS_MACROS_REMOVE_AGAIN_(...) LENGTHWISE_STATUS_MACROS_NOTHING_##__VA_ARGS__
#define LENGTHWISE_STATUS_MACROS_NOTHING_LENGTHWISE_STATUS_MACROS_UNWRAP_

#endif  // LENGTHWISE_PLATFORM_STATUS_MACROS_H_
