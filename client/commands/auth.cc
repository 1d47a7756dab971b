// `lengthwise auth create-token|list-tokens|revoke-token|whoami`.
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "platform/flag_checks.h"
#include "platform/status_macros.h"
#include "proto/role_name.h"
#include "proto/timestamps.h"
#include "rpc/token.h"

namespace lengthwise::client {
namespace {

std::string FormatDay(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(time.seconds()), absl::UTCTimeZone());
}

struct CreateOptions {
  std::string principal;
  std::string role;
  std::string lifetime;
  std::string out;
};

absl::StatusOr<int> CreateToken(Program& program, const CreateOptions& options) {
  v1::CreateTokenRequest request;
  request.set_principal(options.principal);
  v1::Role role = v1::ROLE_UNSPECIFIED;
  v1::Role_Parse(absl::AsciiStrToUpper(options.role), &role);
  request.set_role(role);
  if (!options.lifetime.empty()) {
    ASSIGN_OR_RETURN(const absl::Duration lifetime, ParseTime("--lifetime", options.lifetime));
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime));
  }
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto created, connection->Call<v1::CreateTokenResponse>(request));
  const v1::Token& token = created.token();
  if (options.out == "-") {
    program.out() << created.text() << "\n";
    return kSuccess;
  }
  if (absl::Status status = rpc::WriteTokenFile(options.out, created.text()); !status.ok()) {
    // The secret was not stored, so nobody can use the token.
    v1::RevokeTokenRequest revoke;
    revoke.set_token_id(token.token_id());
    connection->Call<v1::RevokeTokenResponse>(revoke).IgnoreError();
    return status;
  }
  program.out() << "Wrote the token " << token.token_id() << " of " << token.principal() << " ("
                << RoleName(token.role()) << ", until " << FormatDay(token.expire_time()) << ") to "
                << options.out
                << "; pass it with --token_file or name it in the configuration file.\n";
  return kSuccess;
}

absl::StatusOr<int> ListTokens(Program& program) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto list,
                   connection->Call<v1::ListTokensResponse>(v1::ListTokensRequest()));
  if (!program.output_is_table()) {
    Records records{
        .columns = {"token_id", "principal", "role", "create_time", "expire_time", "maker"}};
    for (const v1::Token& token : list.tokens()) {
      records.rows.push_back({token.token_id(), token.principal(), RoleName(token.role()),
                              FormatUtcTime(ToTime(token.create_time())),
                              FormatUtcTime(ToTime(token.expire_time())), token.maker()});
    }
    return program.Write(records);
  }
  if (list.tokens().empty()) {
    program.out() << "No tokens.\n";
    return kSuccess;
  }
  Table table({{.header = "token"},
               {.header = "principal", .shrinks_to = 8},
               {.header = "role"},
               {.header = "created (UTC)"},
               {.header = "until (UTC)"}});
  for (const v1::Token& token : list.tokens()) {
    const bool over = absl::FromUnixSeconds(token.expire_time().seconds()) <= absl::Now();
    table.AddRow(
        {Table::Cell(token.token_id(), Paint::kBold), token.principal(), RoleName(token.role()),
         FormatDay(token.create_time()),
         over ? Table::Cell(absl::StrCat(FormatDay(token.expire_time()), ", over"), Paint::kRed)
              : Table::Cell(FormatDay(token.expire_time()))});
  }
  return program.Write(table);
}

absl::StatusOr<int> RevokeToken(Program& program, const v1::RevokeTokenRequest& request) {
  if (request.token_id().empty() == request.principal().empty()) {
    return absl::InvalidArgumentError(
        "give the id of a token, or --principal for all tokens of one; `lengthwise auth "
        "list-tokens` shows them");
  }
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto revoked, connection->Call<v1::RevokeTokenResponse>(request));
  if (request.token_id().empty()) {
    program.out() << "Revoked all tokens of " << revoked.principal() << ": " << revoked.count()
                  << ".\n";
  } else {
    program.out() << "Revoked the token " << request.token_id() << " of " << revoked.principal()
                  << ".\n";
  }
  return kSuccess;
}

absl::StatusOr<int> WhoAmI(Program& program) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto caller, connection->Call<v1::Caller>(v1::GetCallerRequest()));
  const std::string until =
      caller.has_expire_time() ? FormatUtcTime(ToTime(caller.expire_time())) : "";
  if (!program.output_is_table()) {
    return program.Write(
        {.columns = {"server", "principal", "role", "expire_time"},
         .rows = {{connection->address(), caller.principal(), RoleName(caller.role()), until}}});
  }
  program.out() << caller.principal() << " (" << RoleName(caller.role()) << ") at "
                << connection->address()
                << (until.empty() ? ", which requires no tokens" : absl::StrCat(", until ", until))
                << "\n";
  return kSuccess;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseTime(const std::string& option, const std::string& text) {
  if (const auto time = platform::ParseDays(text)) return *time;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", text, "\" is not a time such as 90d or 12h"));
}

void AddAuth(Command root, Program& program) {
  const Command auth =
      root.AddCommand("auth", "Creates, lists and revokes tokens; shows your identity");
  auth.Group(kServerGroup).RequireCommand();
  auth.Footer(
      "Examples:\n"
      "  lengthwise auth create-token ada --role submitter --out ada.token\n"
      "  lengthwise auth whoami --token_file ada.token\n"
      "Create the first token of a server on its machine: `lengthwise_server --data_dir DIR "
      "--create_admin_token PATH`.");

  auto create = std::make_shared<CreateOptions>();
  Command command = program.AddCommand(
      auth, "create-token", "Creates a token and writes it to a new file that only you may read",
      kNestedGroup,
      "lengthwise auth create-token ada --role submitter --out ada.token\n"
      "lengthwise auth create-token gpu-cluster --role worker --lifetime 365d --out worker.token",
      [&program, create] { return CreateToken(program, *create); });
  command.AddOption("principal", create->principal,
                    "Identity of the token: the owner of submitted experiments");
  command
      .AddOption("--role ROLE", create->role,
                 "viewer reads, submitter also submits and changes what it owns, worker trains, "
                 "backup makes backups, admin may do everything")
      .Required()
      .OneOf({"viewer", "submitter", "worker", "backup", "admin"});
  command.AddOption("--lifetime TIME", create->lifetime,
                    "Lifetime, from a minute to ten years; default 90d");
  command.AddOption("--out PATH", create->out, "New file for the token; - prints it").Required();
  program.AddServerOption(command);

  command =
      program.AddCommand(auth, "list-tokens", "Lists tokens, newest first", kNestedGroup,
                         "lengthwise auth list-tokens", [&program] { return ListTokens(program); });
  program.AddServerOption(command);
  program.AddOutputOption(command);

  const auto [revoke, token] = program.AddCommand(
      auth, "revoke-token", "Revokes a token, or all tokens of a principal, at once", kNestedGroup,
      "lengthwise auth revoke-token 3f0c9a51b2d7\n"
      "lengthwise auth revoke-token --principal sam",
      RevokeToken);
  revoke.AddOption("[token]", *token->mutable_token_id(),
                   "Id of the token, as list-tokens shows it");
  revoke.AddOption("--principal NAME", *token->mutable_principal(), "All tokens of this principal");
  program.AddServerOption(revoke);

  command = program.AddCommand(auth, "whoami", "Shows the identity and role that the server sees",
                               kNestedGroup, "lengthwise auth whoami",
                               [&program] { return WhoAmI(program); });
  program.AddServerOption(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
