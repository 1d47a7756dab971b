// How to reach an S3-compatible object store.
#ifndef LENGTHWISE_SERVER_STORAGE_S3_OPTIONS_H_
#define LENGTHWISE_SERVER_STORAGE_S3_OPTIONS_H_

#include <string>

namespace lengthwise::server {

struct S3Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty: none
};

struct S3Options {
  std::string endpoint;  // empty: Amazon's of the region
  std::string region = "us-east-1";
  S3Credentials credentials;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_S3_OPTIONS_H_
