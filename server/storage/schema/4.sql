-- What lease ids are made of (LeaseKey of records.h); one row.
CREATE TABLE lease_keys (
  key         TEXT NOT NULL,
  first_token INTEGER NOT NULL
);
-- Requests whose experiment was deleted: repeated, they create nothing.
CREATE TABLE deleted_requests (
  request_id          TEXT PRIMARY KEY,
  request_fingerprint TEXT NOT NULL,
  experiment_id       TEXT NOT NULL
) WITHOUT ROWID;
-- Each time that a backup became this database. Ids of experiments that were made since carry the
-- newest tag.
CREATE TABLE restores (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tag    TEXT NOT NULL,
  time   INTEGER NOT NULL
);
