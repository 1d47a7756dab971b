// For tests on a real S3-compatible store, named by LENGTHWISE_TEST_S3: "ENDPOINT ACCESS_KEY
// SECRET_KEY" (tests/object_store). They use the bucket lengthwise-test.
//
// Every test of a target that sets LENGTHWISE_TEST_ON_S3 is skipped if no store is named.
#ifndef LENGTHWISE_SERVER_STORAGE_TESTING_S3_TEST_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_TESTING_S3_TEST_STORE_H_

#include <optional>
#include <string>

#include "server/storage/s3_presign.h"

namespace lengthwise::server {

// nullopt without a store.
std::optional<S3Options> S3TestStore();

// True in the tests of a target that sets LENGTHWISE_TEST_ON_S3.
bool TestsRunOnS3();

// "s3://lengthwise-test/<a prefix that nobody used>". Creates the bucket if it is missing.
std::string NewS3Place();

// A new directory below the test's own.
std::string NewDataDir();

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_TESTING_S3_TEST_STORE_H_
