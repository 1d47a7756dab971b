// S3FakeStore: an S3-compatible object store in memory, for tests of what a store may do wrong. A
// process of its own, in Python.
//
// It compares checksums, keeps If-None-Match and knows ranges, lists and copies. It does not check
// signatures; it refuses URLs without one.
#ifndef LENGTHWISE_SERVER_STORAGE_TESTING_S3_FAKE_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_TESTING_S3_FAKE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "server/storage/s3_presign.h"

namespace lengthwise::server {

class S3FakeStore {
 public:
  // Ends the test if the store does not start. `directory` exists.
  explicit S3FakeStore(const std::string& directory);

  // Its options. Any bucket and prefix exist.
  S3Options options() const;

  // Sets a fault; an empty value ends it.
  //   hang TEXT     requests whose "METHOD path" contains TEXT are not answered
  //   slow TEXT     are answered after a second
  //   status TEXT=N are answered with status N, and for 400 with the code ExpiredToken
  //   answer TEXT=BODY are answered with 200 and BODY
  //   proxy TEXT    are answered with 503 and a page that shows their whole URL
  //   hide TEXT     lists leave out keys that contain TEXT
  //   copy error    copies are answered with 200 and an error
  //   flip TEXT     a bit of the bytes of GET is wrong
  void Set(const std::string& fault, const std::string& value);
  // "METHOD path" of the requests so far, without faults and marks.
  std::vector<std::string> Requests() const;
  // Number of those that contain `text`.
  int64_t CountRequests(const std::string& text) const;
  // Waits until there are more than `count` of them, answered or not. False after 30 s.
  bool AwaitMoreRequests(const std::string& text, int64_t count) const;

 private:
  std::string Ask(const std::string& method, const std::string& path,
                  const std::string& body) const;

  std::unique_ptr<platform::ChildProcess> process_;
  std::string address_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_TESTING_S3_FAKE_STORE_H_
